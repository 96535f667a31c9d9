"""The training games of a run with bank and teacher, as the teacher plays them.

games = Games(config, make_tasks(config), bank)
samples = games.lessons().samples
"""

from __future__ import annotations

import dataclasses
import functools
import math
import pathlib
import zlib
from collections.abc import Callable, Sequence

import jax
import numpy as np

from embodied_mem.agents.deliveries import MethodDelivery, check_names
from embodied_mem.agents.task_pools import TaskPools
from embodied_mem.compiler.view import View, render_experiences
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Experiences
from embodied_mem.memory.bank import BankView
from embodied_mem.parallel.on_ray import hosts
from embodied_mem.parallel.processes import is_first
from embodied_mem.progress import Progress
from embodied_mem.training.config import Config
from embodied_mem.training.tasks import TrainingTasks, make_tasks, teach_bank
from embodied_mem.training.teachers.episodes import TeacherData, play_teacher

FOLDS = 4


class RecalledTexts:
    """Texts that memory methods of other papers recall, as an input format of executors in training.

    An executor that never saw a method's text loses by the format where it is scored with it. Half of the episodes keep
    the experiences, the others have the text of a method each, drawn by seed, pass and task, in as many tokens as
    `static` has there, where four bytes are a token: the tokenizer is not made yet. A method observes the training
    bank, but not the task that is played: tasks are dealt to `FOLDS` parts by their names, and for each part there is a
    method that has observed all the others.

    Args:
        methods: names, of `registry.names("methods")`.
        bank: of the training games.
        seed: of the draws.
        numbered: lines begin with a number, as `MemoryConfig.numbered` says.

    Raises:
        InvalidInputError: there is no such method.
    """

    def __init__(self, methods: Sequence[str], bank: Experiences, seed: int, numbered: bool = False):
        check_names(methods)
        self._methods, self._bank, self._seed, self._numbered = methods, bank, seed, numbered
        self._delivery = functools.cache(self._observed)

    def __call__(self, view: View, task: int, *, number: int) -> str:
        """Return the text for an episode of `task` in pass `number`."""
        random = np.random.default_rng((self._seed, 10, number, task))
        if random.random() < 0.5:
            return render_experiences(view.experiences)
        name = self._methods[int(random.integers(len(self._methods)))]
        delivery, beginning = self._delivery(name, self._part(view.task_id)), dataclasses.replace(view, turns=[])
        return delivery.recalled(beginning)

    def _part(self, task_id: str) -> int:
        return zlib.crc32(self._bank.task_key(task_id).encode()) % FOLDS

    def _observed(self, name: str, part: int) -> MethodDelivery:
        others = [episode for episode, _ in self._bank.records if self._part(episode.task_id) != part]
        return MethodDelivery(name, others, None, self._numbered, task_key=self._bank.task_key)


@dataclasses.dataclass(frozen=True)
class Games:
    """The games of a run's training.

    Attributes:
        config: of the run.
        tasks: its games, and who teaches them.
        bank: experiences.
    """

    config: Config
    tasks: TrainingTasks
    bank: Experiences | TaskPools

    def seen(self, number: int) -> BankView | TaskPools:
        """Return the bank of pass or round `number`, under `config.data.banks`."""
        config = self.config
        settings, memory = config.data.banks or ("committed",), config.memory
        return self.bank.under(
            settings, config.seed + number, numbered=memory.numbered, newest_first=memory.newest_first
        )

    @functools.cached_property
    def _recalled(self) -> RecalledTexts:
        config = self.config
        assert isinstance(self.bank, Experiences)  # methods observe whole episodes
        return RecalledTexts(config.data.methods, self.bank, config.seed, config.memory.numbered)

    def recall(self, number: int) -> Callable[[View, int], str] | None:
        """Return the recall for the executor's prompt in a pass or round.

        It gives what stands there for the experiences in pass or round `number`, where `config.data.methods` names
        some.
        """
        return functools.partial(self._recalled, number=number) if self.config.data.methods else None

    def lessons(self) -> TeacherData:
        """Return what the teacher's passes over all games give.

        Raises:
            InvalidInputError: no game was won.
        """
        config, data, total = self.config, self.config.data, TeacherData([], [], 0)
        num_games = self.tasks.num_train * data.passes
        with Progress("teacher", num_games, unit="game", silent=not is_first()) as progress:
            for number in range(data.passes):
                part = play_teacher(
                    self.tasks.train, range(self.tasks.num_train), self.seen(number), self.tasks.make_teacher,
                    top_k=config.memory.top_k, detour=data.detour, imagined=data.imagined,
                    seed=config.seed + 1 + number, on_done=progress.update, plain=bool(data.banks),
                    each=self.tasks.each, recall=self.recall(number), act=self.tasks.act, won_only=True,
                    new_names=data.new_names,
                    board_name="lessons",
                )  # fmt: skip
                total = TeacherData(
                    total.samples + part.samples, total.episodes + part.episodes, total.num_lost + part.num_lost
                )
        if not total.samples:
            raise InvalidInputError(f"teacher: expected won games to learn from, got none of {num_games}")
        return total


def lessons_on_ray(address: str, config: Config, bank: pathlib.Path) -> TeacherData:
    """Have a cluster play the bank and the teacher's passes."""
    with hosts(address, functools.partial(_play_on_host, config)):
        return _lessons(config, bank)


def _play_on_host(config: Config, bank: pathlib.Path) -> None:
    jax.config.update("jax_platforms", "cpu")  # accelerators are the training's
    _lessons(config, bank)


def _lessons(config: Config, bank: pathlib.Path) -> TeacherData:
    num_taught = min(math.ceil(config.world.num_train / 16) or 256, 256)  # a small run has 16 batches to share
    tasks = make_tasks(config, num_taught)
    return Games(config, tasks, teach_bank(config, bank, tasks)).lessons()
