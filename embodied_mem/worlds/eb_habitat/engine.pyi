from typing import Any

ACTIONS: tuple[str, ...]
TARGETS: tuple[tuple[str, str, str], ...]

class Scenes:
    def __init__(self) -> None: ...
    @staticmethod
    def from_text(json: bytes, name: str) -> Scenes: ...
    def stands(self, scene: str) -> dict[str, tuple[float, float, float, float]]: ...

class Task:
    name: str
    task: str
    scene: str
    layout: str
    satisfied_at_start: bool
    goal: tuple[Any, ...]
    subgoals: list[list[tuple[str, ...]]]

class Env:
    task: Task
    observation: str
    ended: bool
    won: bool
    progress: float
    num_steps: int
    num_invalid: int
    def __init__(
        self,
        task: Task,
        seed: int = 0,
        reach: str = "group",
        max_invalid: int = 10,
        ends_when_won: bool = True,
        relations: bool = True,
    ) -> None: ...
    def step(self, action: str) -> str: ...
    def copy(self) -> Env: ...
    def state(self) -> dict[str, Any]: ...

class VectorEnv:
    def __init__(self, num_envs: int, max_steps: int, num_threads: int, *options: object) -> None: ...

def read_tasks(json: bytes, name: str, scenes: Scenes) -> list[Task]: ...
