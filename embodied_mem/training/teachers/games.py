"""The training games of a run with bank and teacher, as the teacher plays them.

games = Games(config, make_tasks(config), bank)
samples = games.lessons().samples
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from embodied_mem.agents.view import View
from embodied_mem.memory import MemoryBank
from embodied_mem.memory.bank_settings import BankView
from embodied_mem.parallel.processes import is_first
from embodied_mem.progress import Progress
from embodied_mem.training.config import Config
from embodied_mem.training.tasks import TrainingTasks
from embodied_mem.training.teachers.episodes import TeacherData, play_teacher
from embodied_mem.training.teachers.recalled import RecalledTexts


@dataclasses.dataclass(frozen=True)
class Games:
    """What a run plays in training.

    Attributes:
        config: of the run.
        tasks: its games, and who teaches them.
        bank: experiences.
    """

    config: Config
    tasks: TrainingTasks
    bank: MemoryBank

    def seen(self, number: int) -> BankView:
        """Return the bank as training shows it in pass or round `number`: under the settings of `config.data.banks`."""
        config = self.config
        settings, memory = config.data.banks or ("committed",), config.memory
        return BankView(
            self.bank, settings, seed=config.seed + number, numbered=memory.numbered, newest_first=memory.newest_first
        )

    @functools.cached_property
    def _recalled(self) -> RecalledTexts:
        config = self.config
        return RecalledTexts(config.data.methods, self.bank, config.seed, config.memory.numbered)

    def recall(self, number: int) -> Callable[[View, int], str] | None:
        """Return what stands in the executor's prompt for the experiences in pass or round `number`, where
        `config.data.methods` names some."""
        return functools.partial(self._recalled, number=number) if self.config.data.methods else None

    def lessons(self) -> TeacherData:
        """Return what the teacher's passes over all games give."""
        config, data, total = self.config, self.config.data, TeacherData([], [], 0)
        num_games = self.tasks.num_train * data.passes
        with Progress("teacher", num_games, unit="game", silent=not is_first()) as progress:
            for number in range(data.passes):
                part = play_teacher(
                    self.tasks.train, range(self.tasks.num_train), self.seen(number), self.tasks.make_teacher,
                    top_k=config.memory.top_k, detour=data.detour, imagined=data.imagined,
                    seed=config.seed + 1 + number, on_done=progress.update, plain=bool(data.banks),
                    each=self.tasks.each, recall=self.recall(number),
                )  # fmt: skip
                total = TeacherData(
                    total.samples + part.samples, total.episodes + part.episodes, total.num_lost + part.num_lost
                )
        return total
