"""How a run's executor is written to: as it was trained here, or, published and frozen, in a chat with its instruction.

executor_format(config, tokenizer).prompts(texts)
instruction_of(config.world)                  # what an executor is told that has not learned the world's commands
"""

from __future__ import annotations

import functools

from embodied_mem import registry
from embodied_mem.compiler.executor_format import ChatFormat, ExecutorFormat, PlainFormat
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.training.config import EVERY_WORLD, Config, WorldConfig
from embodied_mem.training.sources.weights import is_frozen


@functools.lru_cache(maxsize=8)
def executor_format(config: Config, tokenizer: Tokenizer) -> ExecutorFormat:
    """The format of a run's executor.

    Raises:
        InvalidInputError: it is published and frozen, and its world has no instruction, or its family no template.
    """
    if not is_frozen(config, "executor"):
        return PlainFormat(tokenizer)
    return ChatFormat(tokenizer, instruction_of(config.world))


def instruction_of(world: WorldConfig) -> str:
    """What an executor of this world is told: its task, its commands, what the prompt says, and examples.

    Raises:
        InvalidInputError: its card names none.
    """
    name = "alfworld" if world.name == EVERY_WORLD else world.name  # of which all of them have the wording
    if not registry.card(name).instruction:
        raise InvalidInputError(
            f"world {name}: expected an `instruction` in its card, which a published executor is told, got none"
        )
    told: str = registry.load(name, "instruction")(world.grammar)
    return told
