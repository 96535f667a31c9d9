"""Devices, disks, hosts: the mesh, the sharding table, checkpoints, the board of episodes.

    from embodied_mem.parallel.mesh import MeshShape, make_mesh
    from embodied_mem.parallel.sharding import shardings
    from embodied_mem.parallel.placement import placement_of
    from embodied_mem.parallel.checkpoints import Checkpoints

Nothing is imported here, so that a reader of checkpoints need not load jax before it restores one.
"""
