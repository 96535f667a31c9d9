"""Teacher episodes: games played by the teacher, with detours, as samples for executor and compiler.

    bank = MemoryBank(); bank.add_many(play_teacher(envs, tasks, MemoryBank(), ...).episodes)
    data = play_teacher(envs, tasks, bank, make_teacher, top_k=6, detour=0.1, seed=0)
    data.samples[0].output            # "hybrid\\n+ now: find apple\\n..."

Source: MemCompiler C.2, steps 1 to 4. Deviation: a random command replaces the teacher's with probability
`detour`, so that recoveries from mistakes are taught; the label of a step is always the teacher's own. And some steps
of a search are labelled a second time, for an answer with other contents (`imagined_answer`).
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Sequence

import numpy as np

from embodied_mem.agents.views import View, compile_prompt, place_of, render_experiences, start_state
from embodied_mem.compiler.brief_state import Create, Delete, apply_all
from embodied_mem.compiler.output_grammar import render_output
from embodied_mem.envs.alfworld_household import household_statistics
from embodied_mem.envs.alfworld_text import parse_observation, type_of
from embodied_mem.language.prompts import compact_room, executor_prompt
from embodied_mem.memory import MemoryBank
from embodied_mem.training.teacher import Lesson, Teacher
from embodied_mem.types import Episode, Step

REFUSED = 0.3
"""Share of detours drawn from what was admissible a step earlier. Many of these are refused, as a model's slips are:
without them nothing teaches what to do after "Nothing happens."."""


FALSE_BELIEF = 0.1
"""Probability per step, in play with detours, that the Brief State is given a place of the object where nobody saw it,
or another number of it. Compilers write such things, and it takes examples to take them back."""


EXECUTOR_FORMATS = (("none", 0.3), ("static", 0.25), ("compiled", 0.3), ("compiled_text", 0.15))
"""Shares of the executor's input formats in its training."""


_CONTENTS = re.compile(r"(?<= you see ).*(?=\.)", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Sample:
    """One step of a teacher episode.

    Attributes:
        compiler_prompt: what the compiler reads.
        no_brief_prompt: the same with the action history in place of the Brief State.
        output: what it should write.
        view: goal, room and turns for the executor's prompt, see `executor_text`.
        memory: the experiences as text.
        hint: the guidance in `output`.
        reference: what soft tokens should convey.
        action: the command that the executor should give.
    """

    compiler_prompt: str
    no_brief_prompt: str
    output: str
    view: tuple[str, str, tuple[tuple[str, str], ...]]
    memory: str
    hint: str
    reference: str
    action: str

    def executor_text(self, *, memory: bool = False, hint: bool = False, num_soft: int = 0, full_turns: int = 2) -> str:
        """The executor's prompt at this step in one of its formats."""
        return executor_prompt(
            *self.view,
            here=place_of(self.view[2]),
            memory=self.memory if memory else "",
            hint=self.hint if hint else "",
            num_soft=num_soft if self.hint else 0,
            full_turns=full_turns,
        )


@dataclasses.dataclass
class TeacherData:
    """What the teacher's play gave.

    Attributes:
        samples: of all steps, in order of tasks and steps.
        episodes: raw.
        num_lost: episodes of the teacher's that ran out of steps; they give no samples.
    """

    samples: list[Sample]
    episodes: list[Episode]
    num_lost: int


def play_teacher(
    envs,
    tasks: Sequence[int],
    bank: MemoryBank,
    make_teacher: Callable[[], Teacher],
    *,
    top_k: int,
    detour: float,
    seed: int,
    imagined: float = 0.0,
    act: Callable[[Sequence[int], Sequence[Sample]], Sequence[str]] | None = None,
    max_steps: int | None = None,
    on_done: Callable[[int], None] | None = None,
) -> TeacherData:
    """Plays every task once with the teacher and returns samples and episodes.

    Args:
        envs: vector environment; `num_envs` tasks run in lockstep.
        tasks: task indices.
        bank: experiences to retrieve from; the task's own are left out.
        make_teacher: a fresh teacher per episode.
        top_k: experiences per episode.
        detour: probability that a random command replaces the teacher's, per step; see `REFUSED`.
        seed: of the detours; each depends on (seed, task, step) only.
        imagined: probability that a step of a search gives a second sample, for an answer with other contents.
        act: (tasks, their samples of this step) -> the commands to give, in place of the teacher's; the labels stay the
            teacher's, and lost episodes give samples too.
        max_steps: stop earlier than the environments do.
        on_done: called with the number of tasks just played.
    """
    data = TeacherData([], [], 0)
    for first in range(0, len(tasks), envs.num_envs):
        chunk = list(tasks[first : first + envs.num_envs])
        options = (top_k, detour, seed, imagined, act, max_steps or envs.max_steps)
        for rows in _play_chunk(envs, chunk, bank, make_teacher, *options):
            episode, samples = rows
            if episode.won or act:
                data.episodes.append(episode)
                data.samples.extend(samples)
            else:
                data.num_lost += 1
        if on_done:
            on_done(len(chunk))
    return data


def _play_chunk(envs, tasks, bank, make_teacher, top_k, detour, seed, imagined, act, max_steps):
    count = len(tasks)
    indices = np.asarray([*tasks, *[tasks[0]] * (envs.num_envs - count)])
    observations, info = envs.reset(options={"task_indices": indices})
    goals, task_ids = info["goal"], info["task_id"]
    views, teachers, lessons = [], [], []
    for row in range(count):
        found = bank.retrieve(goals[row], top_k=top_k, context=observations[row], exclude_task_ids=(task_ids[row],))
        room = compact_room(observations[row].partition("Your task is to:")[0])
        views.append(View(goals[row], room, found, [], start_state(goals[row], room)))
        teachers.append(make_teacher())
        lessons.append(teachers[row].begin(goals[row], observations[row], found))
    randoms = [np.random.default_rng((seed, int(task))) for task in tasks]
    samples: list[list[Sample]] = [[] for _ in range(count)]
    steps: list[list[Step]] = [[] for _ in range(count)]
    won = [False] * count
    current = list(observations)
    earlier = [info["admissible_commands"][row] for row in range(count)]
    running = list(range(count))
    while running and len(steps[running[0]]) < max_steps:
        actions = ["look"] * envs.num_envs
        for row in running:
            samples[row].append(sample_of(views[row], lessons[row]))
        if act:
            commands = act([tasks[row] for row in running], [samples[row][-1] for row in running])
        else:
            commands = [lessons[row].action for row in running]
        for row, command in zip(running, commands):
            actions[row] = command
            if randoms[row].random() < detour:
                pool = earlier[row] if randoms[row].random() < REFUSED else info["admissible_commands"][row]
                actions[row] = pool[int(randoms[row].integers(len(pool)))]
            earlier[row] = info["admissible_commands"][row]
            if randoms[row].random() < FALSE_BELIEF * (detour > 0):
                lessons[row], actions[row] = _mislead(
                    lessons[row], actions[row], current[row], views[row].room, randoms[row]
                )
        observations, _, terminations, truncations, info = envs.step(actions)
        for row in running:
            steps[row].append(Step(current[row], actions[row]))
            current[row] = observations[row]
            won[row] = bool(info["won"][row])
            views[row].turns.append((actions[row], observations[row]))
            views[row].state = lessons[row].state
        running = [row for row in running if not (terminations[row] or truncations[row])]
        for row in running:
            if randoms[row].random() < imagined and lessons[row].state.current.startswith("find "):
                samples[row] += _imagined_sample(views[row], teachers[row], randoms[row])
            lessons[row] = teachers[row].next(actions[row], observations[row], lessons[row].state)
    return [
        (Episode(task_ids[row], goals[row], tuple(steps[row]), won[row], current[row]), samples[row])
        for row in range(count)
    ]


def _mislead(
    lesson: Lesson, action: str, observation: str, room: str, random: np.random.Generator
) -> tuple[Lesson, str]:
    """`lesson` with a false belief in its Brief State while something is searched, and the command that is given then.

    Either some place of the room is believed to hold the object while none is known, or the newest observation is
    misread: the object is believed to be in the place that it describes, or to have another number than it has, and an
    attempt is made to take it.
    """
    verb, _, thing = lesson.state.current.partition(" ")
    kinds = [item.rpartition(" ") for item in room.split("; ") if item]
    if verb != "find" or not kinds:
        return lesson, action
    believed = next(((name, place) for name, place in lesson.state.locations if type_of(name) == thing), None)
    here = parse_observation(observation)
    number = 1 + int(random.integers(3))
    if here.contents is None and believed is None:
        kind, _, count = kinds[int(random.integers(len(kinds)))]
        edits = [Create("seen", f"{thing} {number}", f"{kind} {1 + int(random.integers(int(count)))}")]
        return dataclasses.replace(lesson, state=apply_all(edits, lesson.state)[0]), action
    place = believed[1] if believed else here.receptacle
    name = f"{thing} {number}"
    if place != here.receptacle or name in (here.contents or ()):
        return lesson, action
    edits = [Delete("seen", believed[0])] if believed else []
    state = apply_all([*edits, Create("seen", name, place)], lesson.state)[0]
    return dataclasses.replace(lesson, state=state), f"take {name} from {place}"


def _imagined_sample(view: View, teacher: Teacher, random: np.random.Generator) -> list[Sample]:
    """The newest turn of a search with other contents in its answer, as a sample; none if it shows no contents."""
    action, observation = view.turns[-1]
    answer = imagined_answer(observation, view.state.current.removeprefix("find "), random, teacher.kinds)
    if not answer:
        return []
    lesson = copy.deepcopy(teacher).next(action, answer, view.state)
    return [sample_of(dataclasses.replace(view, turns=[*view.turns[:-1], (action, answer)]), lesson)]


def imagined_answer(
    observation: str, thing: str, random: np.random.Generator, kinds: Sequence[str] | None = None
) -> str:
    """`observation` with other contents of these kinds (None: those of households), or empty if it shows none.

    `thing` is there half of the time and its number is uniform, while everything else is drawn from all types of
    objects. In the world's own answers it is mostly there where experiences found it, and mostly number 1, so a model
    learns to write that without a look at the answer.
    """
    if parse_observation(observation).contents is None:
        return ""
    kinds = kinds or [kind.lower() for kind in household_statistics()["object_types"]]
    others = [kind for kind in kinds if kind != thing]
    drawn = [others[i] for i in random.choice(len(others), int(random.integers(8)))]
    if random.random() < 0.5:
        drawn += [thing] * (1 + int(random.random() < 0.15))
    names = []
    for kind in sorted(set(drawn)):
        numbers = 1 + random.choice(3 + drawn.count(kind), drawn.count(kind), replace=False)
        names += [f"a {kind} {number}" for number in sorted(numbers, reverse=True)]
    contents = ", ".join([*names[:-1], f"and {names[-1]}"]) if len(names) > 1 else "".join(names) or "nothing"
    return _CONTENTS.sub(contents, observation)


def sample_of(view: View, lesson: Lesson) -> Sample:
    """The step that `view` stands at, with what the teacher says of it."""
    return Sample(
        compile_prompt(view),
        compile_prompt(view, brief=False),
        render_output(lesson.output),
        (view.goal, view.room, tuple(view.turns)),
        render_experiences(view.experiences),
        lesson.output.guidance,
        lesson.reference,
        lesson.action,
    )
