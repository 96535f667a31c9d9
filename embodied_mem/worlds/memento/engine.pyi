from collections.abc import Mapping, Sequence
from typing import Any

class Houses:
    @staticmethod
    def from_text(json: bytes, name: str) -> Houses: ...

class Task:
    name: str
    task: str
    scene_id: str
    house: dict[str, Any]

def read_tasks(
    json: bytes,
    name: str,
    houses: Houses,
    captions: Sequence[tuple[str, str, str | None]],
    text_places: Mapping[str, Mapping[str, str]],
) -> list[Task]: ...

class Env:
    task: Task
    observation: str
    response: str
    ended: bool
    won: bool
    progress: float
    num_steps: int
    sim_steps: int
    def __init__(self, task: Task, seed: int = 0) -> None: ...
    def step(self, action: str, recorded: Mapping[str, Any] | None = None) -> str: ...
    def copy(self) -> Env: ...
    def state(self) -> dict[str, Any]: ...

class VectorEnv:
    def __init__(self, num_envs: int, max_steps: int, num_threads: int) -> None: ...
