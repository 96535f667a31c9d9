from typing import Any

class Catalog:
    trials: list[str]
    @staticmethod
    def from_text(json: bytes, name: str) -> Catalog: ...

class Task:
    name: str
    task: str
    trial: str
    goal: dict[str, Any]
    satisfied_at_start: bool
    actions: tuple[str, ...]
    names: dict[str, str]
    @staticmethod
    def from_text(json: bytes, file: str, catalog: Catalog, trial: str, name: str, instruction: str = "") -> Task: ...

class Env:
    task: Task
    observation: str
    feedback: str
    action_valid: bool
    ended: bool
    won: bool
    progress: float
    num_steps: int
    num_invalid: int
    admissible_commands: tuple[str, ...]
    valid_commands: list[str]
    def __init__(
        self,
        task: Task,
        reach: str = "group",
        instance: str = "found",
        needs_knife: bool = False,
        shows_view: bool = True,
        max_invalid: int = 10,
        ends_when_won: bool = True,
    ) -> None: ...
    def step(self, action: str) -> str: ...
    def copy(self) -> Env: ...
    def state(self) -> dict[str, Any]: ...

class VectorEnv:
    def __init__(self, num_envs: int, max_steps: int, num_threads: int, *options: object) -> None: ...
