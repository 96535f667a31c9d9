"""Reads pictures and a caption as a robot's memory would: summary, facts with confidence, outcome, what is over.

    embodied-mem perceive --caption "a banana on the kitchen counter, the oven is closed"        # rules, no model
    embodied-mem perceive cam/1.png --server http://localhost:8000/v1 --model qwen2.5-vl-7b-instruct
    embodied-mem perceive cam/1.png --folder Qwen2.5-VL-3B-Instruct                              # in this process
    embodied-mem perceive cam/2.png --action "open(oven)" --memory home --server URL --model NAME
    embodied-mem memory search home "where is the banana?" && embodied-mem view home             # what came of it

With --memory the step is kept in that folder, and the model is told what the memory knows. Any server that speaks
OpenAI's protocol and takes pictures will do: `vllm serve Qwen/Qwen2.5-VL-7B-Instruct` is one. Without a model, rules
read the caption and look at no picture. A picture is a PNG or JPEG file.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Sequence
from typing import TextIO

from embodied_mem.agents.robot.perceiver import Perceiver, filled_prompt
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.language.chat import ChatModel
from embodied_mem.memory.folder_events import folder_scope, is_store_folder
from embodied_mem.memory.images import Image, pictures_of
from embodied_mem.memory.lifelong import SERVER_ADDRESSES, LifelongMemory
from embodied_mem.memory.observation import Perception
from embodied_mem.memory.words import spelling

TASK = "perceive"
"""Id of the tasks that the command begins."""


def main(
    arguments: Sequence[str] | None = None, prog: str = "embodied-mem perceive", output: TextIO | None = None
) -> int:
    """Run the command and return the exit status.

    It is 1 if the model gave no usable answer.

    Raises:
        DataNotFoundError: there is no such picture.
        InvalidInputError: a picture of another kind, or options that do not fit together.
    """
    parser = argparse.ArgumentParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pictures", nargs="*", type=pathlib.Path, help="PNG or JPEG files of one step, oldest first")
    parser.add_argument("--caption", default="", help="what is said of them")
    parser.add_argument("--action", default="", help="what the robot did before")
    parser.add_argument("--server", help="with the version part: http://localhost:8000/v1")
    parser.add_argument("--model", help="as the server names it")
    parser.add_argument("--folder", type=pathlib.Path, help="of a Qwen2.5-VL or Qwen3-VL, with tokenizer")
    parser.add_argument("--record", type=pathlib.Path, help="file of the model's answers; replays without --server")
    parser.add_argument(
        "--least", type=float, default=0.5, help="confidence of a fact; below, it is text; default: 0.5"
    )
    parser.add_argument("--max_tokens", type=int, default=800, help="of the model's answer; default: 800")
    parser.add_argument("--memory", help="folder that keeps the step; made if there is none")
    parser.add_argument("--place", default=None, help="room of the step; a new room ends the look around the last")
    parser.add_argument("--keep", action="store_true", help="the memory keeps the pictures, not only hash and path")
    parser.add_argument("--show_prompt", action="store_true", help="print what a model would be asked, and ask nobody")
    options = parser.parse_args(None if arguments is None else list(arguments))
    output = output or sys.stdout
    for path in options.pictures:
        if not path.is_file():
            raise DataNotFoundError(f"perceive: expected a picture, got {str(path)!r}, which is no file")
        if not pictures_of([path]):
            raise InvalidInputError(f"perceive: expected a PNG or JPEG file, got {str(path)!r}")
    if not options.pictures and not options.caption.strip():
        raise InvalidInputError("perceive: expected pictures, a --caption, or both; see embodied-mem perceive --help")
    if options.show_prompt:
        print(*filled_prompt(options.caption, options.action, ()), sep="\n\n", file=output)
        return 0
    if options.memory is not None and options.memory.startswith(SERVER_ADDRESSES):
        raise InvalidInputError(f"--memory: expected a folder, got the address {options.memory}")
    eyes = Perceiver(_model(options), least=options.least, max_tokens=options.max_tokens)
    if options.memory is None:
        view = eyes.perceive(pictures_of(options.pictures), options.caption, options.action)
        print(lines_of(view), file=output)
    else:
        scope = folder_scope(options.memory) if is_store_folder(options.memory) else None
        with LifelongMemory.open(options.memory, scope, perceiver=eyes) as memory:
            if memory.running and options.place and spelling(options.place) != spelling(memory.place):
                if memory.task_ids[-1] != TASK:
                    now = f"expected {memory.place!r}, that of the running task, got {options.place!r}"
                    raise InvalidInputError(f"--place: {now}; end the task first")
                memory.end_task(won=True)
            if not memory.running:
                memory.begin_task(TASK, "look around", "", place=options.place)
            images = [Image(path=path, data=path.read_bytes(), keep=options.keep) for path in options.pictures]
            receipt = memory.observe(options.action or "look", options.caption, images=images)
            print(lines_of(memory.perception or Perception()), file=output)
            print(f"memory:   {options.memory}", *receipt.render().splitlines(), sep="\n  ", file=output)
    if eyes.writer is None and options.pictures:
        print("No model looked at the pictures; --server URL --model NAME asks one.", file=sys.stderr)
    if eyes.writer is not None and eyes.writer.fallbacks:
        print(f"The model had no usable answer, rules read the caption: {eyes.writer.last_error}", file=sys.stderr)
        return 1
    return 0


def _model(options: argparse.Namespace) -> ChatModel | None:
    """Make the model of the options; None for rules."""
    if options.folder and options.server:
        raise InvalidInputError("perceive: expected --server or --folder, got both")
    if bool(options.server or options.record) != bool(options.model):
        raise InvalidInputError("perceive: expected --model NAME and --server URL (or --record), got one of them alone")
    if options.folder:
        from embodied_mem.models.vision.qwen_vl_chat import QwenVLChatModel

        return QwenVLChatModel.from_folder(options.folder)
    model: ChatModel | None = None
    if options.server:
        from embodied_mem.language import OpenAIChatModel

        model = OpenAIChatModel(options.server, options.model)
    if options.record:
        from embodied_mem.language import RecordedChatModel

        return RecordedChatModel(model, options.record, options.model)
    return model


def lines_of(view: Perception) -> str:
    """Render a perception as lines."""
    lines = [f"summary:  {view.summary or '-'}", f"outcome:  {view.outcome}"]
    for name, facts in (("fact", view.facts), ("unsure", view.doubts), ("over", view.ended)):
        for subject, relation, object_, *sure in facts:
            how_sure = f" ({sure[0]:.2f})" if sure and sure[0] is not None else ""
            lines.append(f"{name + ':':10}{subject} | {relation} | {object_}{how_sure}")
    return "\n".join(lines)
