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
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.vision.pictures import PictureReader
from embodied_mem.training.config import EVERY_WORLD, Config, WorldConfig
from embodied_mem.training.sources.weights import is_published, is_taught


@functools.lru_cache(maxsize=8)
def executor_format(config: Config, tokenizer: Tokenizer) -> ExecutorFormat:
    """The format of a run's executor.

    Raises:
        InvalidInputError: it is published and not trained, and its world has no instruction, or its family no template.
    """
    if is_taught(config) or not is_published(config, "executor"):
        return PlainFormat(tokenizer)
    return ChatFormat(tokenizer, instruction_of(config.world))


def picture_reader(config: Config, role: str, decoder: Decoder, tokenizer: Tokenizer) -> PictureReader:
    """What turns pictures into a role's input; nothing for a decoder without a vision tower.

    Raises:
        InvalidInputError: the compiler is to read pictures and has no tower, or they are not of a size for it.
    """
    vision = decoder.config.vision
    if role == "compiler" and config.model.images and vision is None:
        raise InvalidInputError(
            f"model.images: expected 0 for a compiler without a vision tower, got {config.model.images}; take a folder "
            "of Qwen2.5-VL as compiler"
        )
    return PictureReader(vision, tokenizer, config.model.images, config.model.image_side)


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
