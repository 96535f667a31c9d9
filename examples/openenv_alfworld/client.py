"""Client and types of the environment: `with WorldClient(base_url=URL).sync() as env: env.reset(seed=3)`."""

from embodied_mem.serve.openenv import CommandAction, WorldClient

__all__ = ["CommandAction", "WorldClient"]
