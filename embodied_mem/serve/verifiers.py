"""Worlds as a verifiers environment (v1): `WorldTaskset` gives the tasks, `WorldEnv` plays one with an agent.

    vf-eval embodied_mem_verifiers --env.taskset.world alfworld --env.taskset.num_tasks 20

The world plays the user: the first text is the task's prompt, a reply's last line is the command, the next text is the
next user turn. The trace gets the reward `won` and the metrics `progress` and `steps`; its `info` has the task's id.

Needs `pip install "embodied_mem[verifiers]"`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import MissingDependencyError
from embodied_mem.serve.replies import SYSTEM_PROMPT, command_of, prompt_of

try:
    import verifiers.v1 as vf
    from pydantic import Field
except ImportError as error:
    raise MissingDependencyError(
        f"verifiers is not installed ({error}); run: pip install 'embodied_mem[verifiers]'"
    ) from error

__all__ = ["WorldEnv", "WorldTaskset"]


class WorldConfig(vf.TasksetConfig):
    """Which tasks: `--env.taskset.*`."""

    world: str = "alfworld"
    """Name of the world."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the world's class, such as `tasks` and `max_steps`; without `tasks` as `gymnasium.make` plays it."""
    num_tasks: int = Field(100, ge=1)
    """Number of tasks: of the seeds from 0 on."""


class WorldData(vf.TaskData):
    """Data that make the episode again: the world, its options and the seed of its reset."""

    world: str
    options: dict[str, Any]
    seed: int


class WorldTask(vf.Task[WorldData, vf.State, vf.TaskConfig]):
    """One episode of a world."""


class WorldEnvConfig(vf.EnvConfig):
    """The one seat: `--env.player.*`."""

    player: vf.AgentConfig = vf.AgentConfig()


class WorldEnv(vf.Env[WorldEnvConfig]):
    """Plays a task with the agent `player`."""

    async def run(self, task: WorldTask, agents: Any) -> None:
        """Play until the episode or the agent's run ends."""
        world = TextEnv(task.data.world, **task.data.options)
        try:
            _, info = world.reset(seed=task.data.seed)
            steps, over = 0, False
            async with agents.player.interaction(task) as interaction:
                segment = await interaction.turn()
                while not segment.terminated:
                    text, _, terminated, truncated, info = world.step(command_of(segment.last_reply))
                    steps, over = steps + 1, terminated or truncated
                    if over:
                        break
                    segment = await interaction.turn(prompt_of(text, info))
            trace = interaction.trace
            trace.record_reward("won", float(info["won"]))
            trace.record_metric("progress", float(info["progress"]))
            trace.record_metric("steps", float(steps))
            trace.info["task_id"] = info["task_id"]
        finally:
            world.close()


class WorldTaskset(vf.Taskset[WorldTask, WorldConfig]):
    """The tasks of a world, one per seed."""

    def load(self) -> Iterator[WorldTask]:
        """Yield the tasks, the first text as their prompt."""
        world = TextEnv(self.config.world, **self.config.options)
        try:
            for seed in range(self.config.num_tasks):
                text, info = world.reset(seed=seed)
                data = WorldData(
                    name=f"{self.config.world}#{seed}",
                    prompt=prompt_of(text, info),
                    system_prompt=SYSTEM_PROMPT,
                    world=self.config.world,
                    options=self.config.options,
                    seed=seed,
                )
                yield WorldTask(data, self.config.task)
        finally:
            world.close()
