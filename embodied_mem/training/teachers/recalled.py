"""What memory methods of other papers recall, as an input format of executors in training.

    recall = RecalledTexts(("mem0_2", "a_mem"), bank, seed=0)
    text = recall(view, task, number=0)      # "here: mug was in cabinet 3", or the experiences as for `static`

An executor that never saw a method's text loses by the format where it is scored with it. Half of the episodes keep
the experiences, the others have the text of a method each, drawn by seed, pass and task, in as many tokens as `static`
has there, where four bytes are a token: the tokenizer is not made yet.

A method observes the training bank, but not the task that is played: tasks are dealt to `FOLDS` parts by their names,
and for each part there is a method that has observed all the others.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Sequence

import numpy as np

from embodied_mem.agents.deliveries import MethodDelivery, check_names
from embodied_mem.agents.view import View, render_experiences
from embodied_mem.memory import MemoryBank

FOLDS = 4


class RecalledTexts:
    """See the module.

    Args:
        methods: names, of `registry.names("methods")`.
        bank: of the training games.
        seed: of the draws.
        numbered: lines begin with a number, as `MemoryConfig.numbered` says.

    Raises:
        InvalidInputError: there is no such method.
    """

    def __init__(self, methods: Sequence[str], bank: MemoryBank, seed: int, numbered: bool = False):
        check_names(methods)
        self._methods, self._bank, self._seed, self._numbered = methods, bank, seed, numbered
        self._delivery = functools.cache(self._observed)

    def __call__(self, view: View, task: int, *, number: int) -> str:
        """Return the text for an episode that begins with `view`; `task` is its index, `number` that of the pass."""
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
