"""Worlds as OpenEnv environments, in this process and served, and as what TRL's `environment_factory` makes.

    env = WorldEnvironment("alfworld")                              # no data needed: the tasks of a generated home
    observation = env.reset(seed=3, episode_id="mine")
    observation = env.step(CommandAction(command="look"))           # text, reward, done, admissible_commands

    embodied-mem serve openenv alfworld --options '{"tasks": "train"}'      # a server; then anywhere:
    with WorldClient(base_url="http://localhost:8000").sync() as client:
        result = client.reset(seed=3)

    GRPOTrainer(..., environment_factory=lambda: ToolEnvironment(WorldEnvironment("alfworld", max_steps=30)))

Needs `pip install "embodied_mem[openenv]"`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from embodied_mem.envs.checks import checked_finite
from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import InvalidInputError, MissingDependencyError
from embodied_mem.serve.world_options import world_parser

try:
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
except ImportError as error:
    raise MissingDependencyError(
        f"OpenEnv is not installed ({error}); run: pip install 'embodied_mem[openenv]'"
    ) from error


MAX_COMMAND = 10_000
"""Characters of a command."""


class CommandAction(Action):
    """One command, any text."""

    command: str


class WorldObservation(Observation):
    """The answer to a command, with `reward` and `done`, which OpenEnv's class has.

    Attributes:
        text: the observation.
        admissible_commands: what can be done now; None in worlds that do not list it.
        goal: the task's sentence.
    """

    text: str
    admissible_commands: list[str] | None = None
    goal: str = ""


class WorldState(State):
    """Where an episode stands: with `episode_id` and `step_count`, which OpenEnv's class has.

    Attributes:
        world: its name.
        task_id: of the task that is played.
        won: whether the goal is reached.
        progress: share of the goal that is reached, in [0, 1].
    """

    world: str
    task_id: str = ""
    won: bool = False
    progress: float = 0.0


class WorldEnvironment(Environment):
    """One env of a world.

    Args:
        world: its name.
        options: of the world's class, such as `tasks` and `max_steps`; without `tasks` as `gymnasium.make` plays it.

    Raises:
        InvalidInputError: the world is unknown, or an option is.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, world: str, **options: Any):
        super().__init__()
        self._env = TextEnv(world, **options)
        self._state = WorldState(world=world)
        self._done = True

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> WorldObservation:
        """Start an episode: the first one of a seed, or the next.

        Args:
            seed: decides the task and all chance in it.
            episode_id: what the caller calls the episode; the task's id where it is None.
            kwargs: `task_index`, to play this task.
        """
        index = kwargs.pop("task_index", None)
        if kwargs:
            raise InvalidInputError(f"reset: expected seed, episode_id and task_index, got also {', '.join(kwargs)}")
        text, info = self._env.reset(seed=seed, options=None if index is None else {"task_indices": [index]})
        self._done = False
        self._state = WorldState(world=self._state.world, episode_id=episode_id or info["task_id"])
        return self._observed(text, None, info)

    def step(self, action: CommandAction, timeout_s: float | None = None, **kwargs: Any) -> WorldObservation:
        """Play one command; `timeout_s` is not used, a step takes microseconds.

        Raises:
            InvalidInputError: the episode is over or never began, or the command is too long.
        """
        if self._done:
            raise InvalidInputError("step: the episode is over or never began; call reset()")
        if len(action.command) > MAX_COMMAND:
            raise InvalidInputError(
                f"command: expected at most {MAX_COMMAND} characters, got {len(action.command)}; give one command"
            )
        text, reward, terminated, truncated, info = self._env.step(action.command)
        self._done = terminated or truncated
        self._state.step_count += 1
        return self._observed(text, reward, info)

    @property
    def state(self) -> WorldState:
        """Where the episode stands."""
        return self._state

    def close(self) -> None:
        """Ends what the world runs."""
        self._env.close()

    def _observed(self, text: str, reward: float | None, info: dict[str, Any]) -> WorldObservation:
        self._state.task_id, self._state.won = info["task_id"], bool(info["won"])
        self._state.progress = float(info["progress"])
        commands = info.get("admissible_commands")
        return WorldObservation(
            text=text,
            goal=info["goal"],
            reward=reward,
            done=self._done,
            admissible_commands=None if commands is None else list(commands),
        )


def app(world: str, max_sessions: int = 64, **options: Any) -> Any:
    """Return the FastAPI application that serves a world.

    Each client's session has an env of its own.

    Args:
        world: its name.
        max_sessions: sessions at a time.
        options: as for `WorldEnvironment`.
    """
    return create_fastapi_app(
        lambda: WorldEnvironment(world, **options),
        CommandAction,
        WorldObservation,
        max_concurrent_envs=max_sessions,
        env_name=world,
        state_cls=WorldState,
    )


class WorldClient(EnvClient):
    """A session with a server of `app`; `.sync()` for use without asyncio."""

    def _step_payload(self, action: CommandAction) -> dict[str, Any]:
        return {"command": action.command}

    def _parse_result(self, payload: dict[str, Any]) -> Any:
        reward, done = payload.get("reward"), bool(payload.get("done"))
        if reward is not None:
            reward = checked_finite("reward", reward)
        observation = WorldObservation(**{**payload["observation"], "reward": reward, "done": done})
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> WorldState:
        return WorldState(**payload)


class ToolEnvironment:
    """The environment for TRL's `environment_factory`: `act` is the policy's tool, the reward is the game's.

    Args:
        env: a `WorldEnvironment`, or a `WorldClient(...).sync()`.
    """

    def __init__(self, env: Any):
        self._env, self._reward, self._done = env, 0.0, True

    def reset(self, seed: int | None = None, **row: Any) -> str:
        """Start the episode of a dataset row; return the first text.

        It is that of its `seed`, else the next.
        """
        self._reward = 0.0
        return self._told(self._env.reset(seed=seed))

    def act(self, command: str) -> str:
        """
        Do one thing in the house and see what happens.

        Args:
            command: One of the commands that are possible now, word for word.

        Returns:
            What happens, and what is possible now.
        """
        if self._done:
            return "The episode is over."
        return self._told(self._env.step(CommandAction(command=command)))

    def get_reward(self) -> float:
        """Return the sum of the episode's rewards so far."""
        return self._reward

    def _told(self, answer: Any) -> str:
        observation = answer.observation if isinstance(answer, StepResult) else answer
        self._reward += checked_finite("reward", observation.reward or 0.0)
        self._done = observation.done
        if self._done or not observation.admissible_commands:
            return str(observation.text)
        return f"{observation.text}\nPossible now: {', '.join(observation.admissible_commands)}"


def main(arguments: Sequence[str] | None = None, prog: str = "python -m embodied_mem.serve.openenv") -> int:
    """Serve a world until interrupted."""
    parser = world_parser(prog, "Serves a world to OpenEnv's clients.", 8000)
    parser.add_argument("--max_sessions", type=int, default=64, help="sessions at a time (default 64)")
    args = parser.parse_args(arguments)
    import uvicorn

    uvicorn.run(app(args.world, args.max_sessions, **args.options), host=args.host, port=args.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
