"""Teacher episodes: games played by the teacher, with detours, as samples for executor and compiler.

    bank = Experiences(); bank.add_many(play_teacher(envs, tasks, Experiences(), ...).episodes)
    data = play_teacher(envs, tasks, bank, make_teacher, top_k=6, detour=0.1, seed=0)
    data.samples[0].output            # "hybrid\\n+ now: find apple\\n..."

Source: MemCompiler C.2, steps 1 to 4. Deviation: a random command replaces the teacher's with probability
`detour`, so that recoveries from mistakes are taught; the label of a step is always the teacher's own. And some steps
of a search are labelled a second time, for an answer with other contents (`Noise.imagined_answer`). The teacher
itself acts, unless the executor does (`won_only`), as in step 3.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import gzip
import json
import pathlib
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from embodied_mem.agents.rollout import Bank, Envs, Lockstep, Row
from embodied_mem.atomic_file import replacing
from embodied_mem.compiler.brief_state import BriefState
from embodied_mem.compiler.output_grammar import render_output
from embodied_mem.compiler.prompts import SHOWN, Shown
from embodied_mem.compiler.view import View, compile_prompt, executor_text
from embodied_mem.errors import CheckpointError
from embodied_mem.language.images import ImagePool
from embodied_mem.memory.embedders import latin_words
from embodied_mem.parallel.resume import Finished
from embodied_mem.training.teachers.lesson import Lesson, Teacher
from embodied_mem.types import Episode

if TYPE_CHECKING:
    from embodied_mem.training.config import Config

Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""`map`, or what does the same in threads."""

Act = Callable[[Sequence[int], Sequence["Sample"]], Sequence[str]]
"""(tasks, their samples of this step) -> the commands to give."""

_MAX_LINE = 1 << 24  # characters; what follows in the line is no sample, and may be gigabytes

REFUSED = 0.3
"""Share of detours drawn from what was admissible a step earlier. Many of these are refused, as a model's slips are:
without them nothing teaches what to do after "Nothing happens."."""


FALSE_BELIEF = 0.1
"""Probability per step, in play with detours, that the Brief State is given a place of the object where nobody saw it,
or another number of it. Compilers write such things, and it takes examples to take them back."""


_FORMATS = {"none": 0.3, "static": 0.25, "compiled": 0.3, "compiled_text": 0.15}


def input_formats(without_memory: bool = False) -> tuple[list[str], list[float]]:
    """Return the executor's input formats and their shares in training."""
    return (["none"], [1.0]) if without_memory else (list(_FORMATS), list(_FORMATS.values()))


@dataclasses.dataclass(frozen=True)
class Sample:
    """One step of a teacher episode.

    Attributes:
        compiler_prompt: what the compiler reads.
        no_brief_prompt: the same with the action history in place of the Brief State.
        output: what it should write.
        view: goal, room and turns for the executor's prompt, see `executor_text`.
        memory: the experiences as text, or what a memory method recalled.
        hint: the guidance in `output`.
        reference: what soft tokens should convey.
        action: the command that the executor should give.
        plain_action: the command of a teacher that has no memory; empty where none was asked.
        images: that came with the newest observation; both models see them.
        remembered: out of the experiences, the best one's last; the compiler sees these first.
    """

    compiler_prompt: str
    no_brief_prompt: str
    output: str
    view: tuple[str, str, tuple[tuple[str, str], ...]]
    memory: str
    hint: str
    reference: str
    action: str
    plain_action: str = ""
    images: tuple[bytes, ...] = ()
    remembered: tuple[bytes, ...] = ()

    @property
    def rest(self) -> str:
        """The lines of memory that do not name the reference's first place; empty without a hint."""
        if not self.hint:
            return ""
        place = re.compile(rf"\b{re.escape(self.reference.partition(';')[0])}\b") if self.reference else None
        return "; ".join(line for line in self.memory.splitlines() if not (place and place.search(line)))

    def executor_text(self, *, memory: bool = False, hint: str = "", num_soft: int = 0, shown: Shown = SHOWN) -> str:
        """Return the executor's prompt at this step; `hint` is its guidance."""
        return executor_text(
            *self.view, shown, memory=self.memory if memory else "", hint=hint, num_soft=num_soft if self.hint else 0
        )


class SampleSource(Protocol):
    """Gives the samples of a world that is recorded rather than played in training; its card names it as `samples`."""

    def __call__(self, config: Config, folder: pathlib.Path, say: Callable[[str], None]) -> list[Sample]:
        """Return the samples of a run.

        Args:
            config: of the run.
            folder: where recordings are kept; a run that was stopped goes on with them.
            say: told how many there are.
        """
        ...


@dataclasses.dataclass
class TeacherData:
    """The results of the teacher's play.

    Attributes:
        samples: of all steps, in order of tasks and steps.
        episodes: raw.
        num_lost: episodes that ran out of steps; they give no samples.
    """

    samples: list[Sample]
    episodes: list[Episode]
    num_lost: int


def play_teacher(
    envs: Envs,
    tasks: Sequence[int],
    bank: Bank,
    make_teacher: Callable[[int], Teacher],
    *,
    top_k: int,
    detour: float,
    seed: int,
    imagined: float = 0.0,
    act: Act | None = None,
    won_only: bool = False,
    max_steps: int | None = None,
    on_done: Callable[[int], None] | None = None,
    plain: bool = False,
    each: Each = map,
    recall: Callable[[View, int], str] | None = None,
    new_names: float = 0.0,
    board_name: str = "",
) -> TeacherData:
    """Plays every task once with the teacher and returns samples and episodes.

    Args:
        envs: vector environment; `num_envs` tasks run in lockstep.
        tasks: task indices.
        bank: experiences to retrieve from; the task's own are left out.
        make_teacher: gives a fresh teacher for an episode of a task.
        top_k: experiences per episode.
        detour: probability that a random command replaces the teacher's, per step; see `REFUSED`.
        seed: of the detours; each depends on (seed, task, step) only.
        imagined: probability that a step of a search gives a second sample, for an answer with other contents.
        act: gives the commands in the teacher's place; the labels stay the teacher's, and lost episodes give samples
            too.
        won_only: with `act`, its commands are the labels, and lost episodes give no samples.
        max_steps: stop earlier than the environments do.
        on_done: called with the number of tasks just played.
        plain: also ask a second teacher, who has no memory, for the command of each step.
        each: asks the teachers of the rows: `map`, or the `map` of threads for teachers that wait for an answer.
        recall: (view of an episode that begins, its task) -> memory in the executor's prompt; None for the experiences.
        new_names: share of the episodes whose samples have a made-up name for a kind of place.
        board_name: of these episodes on the board of a cluster, see `parallel.on_ray`; empty: all are played here.
    """
    outcomes: Finished[list[Any]] = Finished(None, {"teacher": board_name} if board_name else {})
    keys = {(board_name, str(seed), str(i)): task for i, task in enumerate(tasks)}
    names, num_shown = [*keys], 0

    def show() -> None:
        nonlocal num_shown
        num_played = len(keys.keys() & outcomes.rows.keys())  # a board has those of other calls, too
        if on_done and num_played > num_shown:
            on_done(num_played - num_shown)
        num_shown = num_played

    for batch in outcomes.unfinished([names[i : i + envs.num_envs] for i in range(0, len(names), envs.num_envs)], show):
        game = Lockstep(envs, [keys[name] for name in batch], bank, top_k, max_steps)
        start = functools.partial(
            _TaughtRow, make_teacher=make_teacher, seed=seed, info=game.info, plain=plain, recall=recall
        )
        lessons = list(each(start, game.rows))
        while game.running:
            running = [lessons[row.index] for row in game.running]
            for taught in running:
                taught.take_down(taught.row.view, taught.lesson, taught.plain_action)
            if act:
                commands = act([taught.row.task for taught in running], [taught.samples[-1] for taught in running])
                for row, command in zip(running if won_only else (), commands):
                    row.samples[-1] = dataclasses.replace(row.samples[-1], action=command)
            else:
                commands = [taught.lesson.action for taught in running]
            game.step([taught.slip(command, detour, game.info) for taught, command in zip(running, commands)])
            for taught in running:
                taught.row.view.state = taught.lesson.state
            list(each(lambda taught: taught.go_on(imagined), [lessons[row.index] for row in game.running]))
        for name, taught in zip(batch, lessons):
            is_kept = taught.row.won or (act and not won_only)
            outcomes.add(*name, [taught.row.episode, taught.with_new_name(new_names)] if is_kept else [])
    rows = [row for row in (outcomes.rows[name] for name in names) if row]
    return TeacherData(
        [sample for _, samples in rows for sample in samples], [episode for episode, _ in rows], len(names) - len(rows)
    )


class _TaughtRow:
    """An episode with its teacher; what is random in it depends on the seed and the task only."""

    plain_action = ""

    def __init__(
        self,
        row: Row,
        make_teacher: Callable[[int], Teacher],
        seed: int,
        info: Mapping[str, Any],
        plain: bool,
        recall: Callable[[View, int], str] | None,
    ):
        self.row, self._teacher = row, make_teacher(row.task)
        self.lesson = self._teacher.begin(row.view.goal, row.observation, row.view.memories)
        self.samples: list[Sample] = []
        self._memory = recall(row.view, row.task) if recall else None
        self._plain: tuple[Teacher, BriefState] | None = None
        self._random = np.random.default_rng((seed, row.task))
        self._seed = seed
        self._earlier = info["admissible_commands"][row.index]
        if plain:
            teacher = make_teacher(row.task)
            self._keep(teacher, teacher.begin(row.view.goal, row.observation, ()))

    def _keep(self, teacher: Teacher, lesson: Lesson) -> None:
        self._plain, self.plain_action = (teacher, lesson.state), lesson.action

    def take_down(self, view: View, lesson: Lesson, plain_action: str = "") -> None:
        """Adds a sample."""
        sample = sample_of(view, lesson, plain_action)
        self.samples.append(sample if self._memory is None else dataclasses.replace(sample, memory=self._memory))

    def slip(self, command: str, detour: float, info: Mapping[str, Any]) -> str:
        """Return `command` or a random one; sometimes plant a false belief."""
        random, commands = self._random, info["admissible_commands"][self.row.index]
        if random.random() < detour:
            pool = self._earlier if random.random() < REFUSED else commands
            command = pool[int(random.integers(len(pool)))]
        self._earlier = commands
        if random.random() < FALSE_BELIEF * (detour > 0):
            view, observation = self.row.view, self.row.observation
            self.lesson, command = self._teacher.mislead(self.lesson, command, observation, view.room, random)
        return command

    def go_on(self, imagined: float) -> None:
        """Take the lesson after the newest turn.

        Before it, with probability `imagined`, comes a sample with another answer.
        """
        view, state = self.row.view, self.lesson.state
        action, observation = view.turns[-1]
        if self._random.random() < imagined and state.current.startswith("find "):
            thing = state.current.removeprefix("find ")
            if answer := self._teacher.imagined_answer(observation, thing, self._random):
                lesson = copy.deepcopy(self._teacher).next(action, answer, state)
                other = dataclasses.replace(view, turns=[*view.turns[:-1], (action, answer)], images=())
                self.take_down(other, lesson)
        self.lesson = self._teacher.next(action, observation, state)
        if self._plain is not None:
            teacher, plain_state = self._plain
            self._keep(teacher, teacher.next(action, observation, plain_state))

    def with_new_name(self, share: float) -> list[Sample]:
        """Return the samples, at times with a made-up name.

        It is that of a kind of place. Only models that learned to copy names can say one that no training room has.
        """
        random = np.random.default_rng((self._seed, self.row.task, 11))
        if random.random() >= share or not (kinds := self._teacher.renamable(self.row.view.room)):
            return self.samples
        actions = " ".join(sample.action for sample in self.samples)
        kinds = [kind for kind in kinds if kind in actions] or kinds
        words = latin_words()  # names of one pattern teach to copy that pattern only
        first, last = (words[i] for i in random.integers(len(words), size=2))
        name = first[: random.integers(2, 6)] + last[-random.integers(2, 6) :]
        kind = kinds[int(random.integers(len(kinds)))]
        return [replace_word(one, kind, name) for one in self.samples]


def replace_word(sample: Sample, old: str, new: str) -> Sample:
    """Replace a word in all texts of a sample."""
    word = re.compile(rf"\b{re.escape(old)}\b", re.IGNORECASE)

    def rewrite(text: Any) -> Any:
        if isinstance(text, tuple):
            return tuple(map(rewrite, text))
        return word.sub(lambda match: new.capitalize() if match[0][0].isupper() else new, text)

    texts = {field.name: getattr(sample, field.name) for field in dataclasses.fields(sample)}
    return Sample(**{name: text if name in ("images", "remembered") else rewrite(text) for name, text in texts.items()})


def sample_of(view: View, lesson: Lesson, plain_action: str = "") -> Sample:
    """Return the step of `view` with the teacher's lesson."""
    return Sample(
        compile_prompt(view),
        compile_prompt(view, brief=False),
        render_output(lesson.output),
        (view.goal, view.room, tuple(view.turns)),
        view.memory,
        lesson.output.guidance,
        lesson.reference,
        lesson.action,
        plain_action,
        view.images,
        view.remembered,
    )


def write_samples(path: pathlib.Path, samples: Sequence[Sample]) -> None:
    """Write samples to a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pool = ImagePool()
    with replacing(path) as temporary, gzip.open(temporary, "wt") as file:
        for sample in samples:
            *values, images, remembered = dataclasses.astuple(sample)
            stored = pool.stored([images, remembered])
            file.write(json.dumps([*values, stored] if stored else values) + "\n")


def read_samples(path: pathlib.Path) -> list[Sample]:
    """Return the samples in a file.

    Raises:
        CheckpointError: there is something else in it.
    """
    samples, pool = [], ImagePool()
    try:
        with gzip.open(path, "rt") as file:
            while line := file.readline(_MAX_LINE):
                values = json.loads(line)
                goal, room, turns = values[3]
                values[3] = (goal, room, tuple((action, answer) for action, answer in turns))
                images = values.pop() if isinstance(values[-1], dict) else {}
                samples.append(Sample(*values, *pool.read(images, 2)))
    except (OSError, EOFError, zlib.error, ValueError, TypeError, LookupError, RecursionError) as error:
        raise CheckpointError(f"{path}: expected samples of a teacher: {error}; remove the file") from error
    return samples
