"""The device mesh: axes `data`, `fsdp` and `tensor`, the same for one CPU, simulated devices, a GPU and a TPU pod.

    initialize_distributed()                       # first thing in a program; does nothing on a single process
    mesh = make_mesh(MeshShape(data=-1, fsdp=4))   # -1: the devices that are left
    with jax.set_mesh(mesh): ...

`data` splits the batch, `fsdp` splits the batch and every parameter along its embedding axis, `tensor` splits heads,
MLP and vocabulary. Axis types are Auto: the table in `sharding.py` places parameters and batches, the compiler
places everything in between, and a model needs no annotation.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from embodied_mem.errors import InvalidInputError

if TYPE_CHECKING:
    import jax

AXES = ("data", "fsdp", "tensor")


@dataclasses.dataclass(frozen=True)
class MeshShape:
    """Devices along each axis; at most one of them is -1, which takes the devices that are left."""

    data: int = -1
    fsdp: int = 1
    tensor: int = 1

    def __post_init__(self) -> None:
        for name, size in zip(AXES, self.sizes):
            if not isinstance(size, int) or (size < 1 and size != -1):
                raise InvalidInputError(
                    f"mesh.{name}: expected a number of devices >= 1, or -1 for the rest, got {size}"
                )
        if self.sizes.count(-1) > 1:
            raise InvalidInputError(f"mesh: expected at most one axis of -1, got {self}; only one can take the rest")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Sizes in the order of `AXES`."""
        return (self.data, self.fsdp, self.tensor)

    def for_sampling(self, tensor: int) -> MeshShape:
        """Returns the shape of the same devices for sampling.

        Every `tensor` of them hold one copy; for 0, it is this shape.

        Raises:
            InvalidInputError: the number of devices is no multiple of `tensor`.
        """
        devices = math.prod(self.sizes)
        if not tensor:
            return self
        if devices % tensor:
            raise InvalidInputError(f"mesh.sampling_tensor: expected a divisor of the {devices} devices, got {tensor}")
        return MeshShape(devices // tensor, 1, tensor)

    def resolve(self, num_devices: int) -> MeshShape:
        """Returns the shape with -1 filled in, for exactly `num_devices` devices.

        Raises:
            InvalidInputError: the axes do not multiply to the number of devices.
        """
        known = math.prod(size for size in self.sizes if size != -1)
        sizes = [num_devices // known if size == -1 else size for size in self.sizes]
        if math.prod(sizes) != num_devices:
            asked = " x ".join(f"{name} {size}" for name, size in zip(AXES, self.sizes))
            raise InvalidInputError(
                f"mesh: {asked} does not make {num_devices} devices; the product of the fixed axes ({known}) must "
                f"{'divide' if -1 in self.sizes else 'equal'} the number of devices"
            )
        return MeshShape(*sizes)


def make_mesh(shape: MeshShape = MeshShape(), devices: Sequence[Any] | None = None) -> jax.sharding.Mesh:
    """Returns a mesh over `devices`, laid out for the hardware's interconnect.

    Default: all devices of every process.
    """
    import jax

    devices = jax.devices() if devices is None else devices
    sizes = shape.resolve(len(devices)).sizes
    return jax.make_mesh(sizes, AXES, axis_types=(jax.sharding.AxisType.Auto,) * len(AXES), devices=devices)


def abstract_mesh(shape: MeshShape) -> jax.sharding.AbstractMesh:
    """Returns a mesh without devices, for planning; `shape` has no -1."""
    import jax

    if -1 in shape.sizes:
        raise InvalidInputError(f"mesh: expected sizes without -1, got {shape}; call resolve(num_devices) first")
    return jax.sharding.AbstractMesh(shape.sizes, AXES, axis_types=(jax.sharding.AxisType.Auto,) * len(AXES))


def initialize_distributed() -> bool:
    """Joins the other processes of a run launched as several.

    Returns whether it was.

    Call it before anything touches a device. Recognised are: `JAX_COORDINATOR_ADDRESS` (host:port) together with
    `JAX_NUM_PROCESSES` and `JAX_PROCESS_ID`, set by hand for each process; Slurm, Open MPI and TPU pods by the
    variables that they set; and `EMBODIED_MEM_DISTRIBUTED=1`, which leaves it to jax to find the others, as it does on
    TPU VMs.
    """
    names = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
    given = [name for name in names if os.environ.get(name)]
    if given and len(given) < len(names):
        missing = ", ".join(name for name in names if name not in given)
        raise InvalidInputError(f"distributed run: {', '.join(given)} is set but not {missing}; set all three or none")
    if given:
        import jax

        address, count, index = (os.environ[name] for name in names)
        if not (count.isdigit() and index.isdigit() and int(index) < int(count)):
            raise InvalidInputError(
                f"distributed run: expected JAX_PROCESS_ID in [0, JAX_NUM_PROCESSES), got {index!r} of {count!r}"
            )
        jax.distributed.initialize(address, int(count), int(index))
        return True
    hosts = os.environ.get("TPU_PROCESS_ADDRESSES") or os.environ.get("TPU_WORKER_HOSTNAMES") or ""
    counts = [os.environ.get(name, "1") for name in ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")]
    asked = os.environ.get("EMBODIED_MEM_DISTRIBUTED") == "1"
    if asked or "," in hosts or any(count.isdigit() and int(count) > 1 for count in counts):
        import jax

        jax.distributed.initialize()
        return True
    return False
