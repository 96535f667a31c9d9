"""What programs hold per device is counted as it is stored and as it is split."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from embodied_mem.parallel.mesh import MeshShape, abstract_mesh
from embodied_mem.training.compiled import _bytes


def test_bytes_per_device():
    """[8, 6] over fsdp 4 and tensor 2 is [2, 3] a device: 12 bytes in bfloat16, though compiled in float32."""
    split = NamedSharding(abstract_mesh(MeshShape(1, 4, 2)), PartitionSpec("fsdp", "tensor"))
    weight = jax.ShapeDtypeStruct((8, 6), jnp.float32, sharding=split)
    whole = jax.ShapeDtypeStruct((5,), jnp.int32)
    key = jax.eval_shape(lambda: jax.random.key(0))
    assert _bytes(weight, 2) == 12
    assert _bytes(weight) == 24
    assert _bytes({"weight": weight, "tokens": whole, "key": key}) == 24 + 20
