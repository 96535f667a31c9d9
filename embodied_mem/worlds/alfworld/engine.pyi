from typing import Any

class Game:
    name: str
    task: str
    goal: dict[str, str]
    walkthrough: list[str]
    receptacles: list[str]
    objects: list[str]
    memory_bytes: int
    @staticmethod
    def load(path: str) -> Game: ...
    @staticmethod
    def from_text(json: bytes, name: str) -> Game: ...
    @staticmethod
    def from_problem(pddl_problem: str, task: str, name: str) -> Game: ...
    def accepts(self, receptacle: str, object: str) -> bool: ...

class Env:
    game: Game
    observation: str
    won: bool
    score: int
    progress: float
    num_steps: int
    admissible_commands: list[str]
    def __init__(self, game: Game, grammar: str = "0.4") -> None: ...
    def reset(self) -> str: ...
    def step(self, command: str) -> str: ...
    def copy(self) -> Env: ...
    def state(self) -> dict[str, Any]: ...

class VectorEnv:
    def __init__(self, num_envs: int, max_steps: int, num_threads: int, grammar: str) -> None: ...
