"""G-Memory: a graph of tasks, their trajectories, and insights that gain and lose credit.

A task finds similar ones, and through the graph's edges (similarity above 0.7, one hop) those beside them. Of
their trajectories with a similarity above 0.3 two successes and one failure are kept, re-ranked, and stand before the
ten insights with the most credit. Insights are revised at every fifth episode, and joined by clusters at every
twentieth.

Source: Zhang et al., "G-Memory" (2025). Ours: prompts, rules, embedder; one agent plays, so the graph of utterances
between agents is the trajectory itself; there are no rewards per step, so a step that was refused stands for one with a
negative reward; credit is given when an episode is observed, to the insights that its task would have got.
"""

from __future__ import annotations

import numpy as np

from embodied_mem.compiler.prompts import compact_room, plain_goal
from embodied_mem.language.chat import ChatModel
from embodied_mem.memory.readers import DEFAULT
from embodied_mem.types import Episode

from .method import (
    TEXTS,
    Entries,
    SearchingMethod,
    clauses_of,
    lines_for,
    schema_of,
    tagged,
    transcript,
)


class GMemory(SearchingMethod):
    """Task graph, trajectories, insights; an entry has the key steps of an episode and is searched by its task."""

    EDGE, ABOVE, NEAREST = 0.7, 0.3, 2
    TASK_WEIGHT = 4
    SUCCESSES, FAILURES, INSIGHTS = 2, 1, 10
    REVISE_EVERY, MERGE_EVERY = 5, 20
    WON, LOST = 1, -2
    KEY_STEPS = "List the steps of this episode that decided how it ended, one short sentence each."
    RANK = "Order these past episodes by how much they help with the task; give their numbers, best first."
    REVISE = "Compare these episodes. Give insights that hold for tasks like these and are not known yet."
    MERGE = "Join these insights into one."

    def __init__(self, chat: ChatModel | None = None):
        super().__init__(chat)
        self._asked: dict[int, str] = {}
        self.won: dict[int, bool] = {}
        self.insights = Entries()
        self.credit: dict[int, int] = {}
        self._recent: list[Episode] = []

    def observe(self, episode: Episode) -> None:
        """Observe an episode with one call.

        Every fifth episode has another, every twentieth one per cluster of insights.
        """
        asked = self.question(episode.goal, episode.first_observation)
        for number in self._best_insights(asked):
            self.credit[number] += self.WON if episode.won else self.LOST
            if self.credit[number] < 0:
                self.insights.remove(number)
                del self.credit[number]
        kept = without_refused(episode)
        answer = self.ask(
            self.KEY_STEPS, {"episode": kept}, schema_of(steps=TEXTS),
            lambda: {"steps": clauses_of(episode) or [plain_goal(episode.goal)]},
        )  # fmt: skip
        steps = tagged("; ".join(answer["steps"]), compact_room(episode.first_observation))
        number = self.entries.add(steps, asked)
        self._asked[number], self.won[number] = asked, episode.won
        self._recent.append(episode)
        if len(self.won) % self.REVISE_EVERY == 0:
            self._revise()
        if len(self.won) % self.MERGE_EVERY == 0:
            self._merge()

    def edges(self, number: int) -> list[int]:
        """Return the tasks beside one in the graph, nearest first.

        Edges follow from similarities, so that none is stored.
        """
        near = self.entries.index.search(self._asked[number], len(self.won), above=self.EDGE)
        return [n for n, _ in near if n != number]

    def _revise(self) -> None:
        told, self._recent = self._recent, []
        given = {"episodes": [transcript(one) for one in told], "known": [*self.insights.texts.values()]}
        known = set(given["known"])
        rule = {"insights": [c for one in told if one.won for c in _general(one) if c not in known]}
        for text in dict.fromkeys(self.ask(self.REVISE, given, schema_of(insights=TEXTS), lambda: rule)["insights"]):
            self.credit[self.insights.add(text)] = 0

    def _merge(self) -> None:
        numbers = [*self.insights.texts]
        if len(numbers) < 3:
            return
        vectors = self.insights.index.embedder.embed([self.insights.texts[n] for n in numbers])
        for cluster in first_neighbour_clusters(vectors):
            if len(cluster) == 1:
                continue
            same = [numbers[i] for i in cluster]
            best = max(same, key=lambda n: (self.credit[n], -n))
            merged = self._joined([self.insights.texts[n] for n in same], self.insights.texts[best])
            if not merged:
                continue
            self.insights.put(best, merged[0])
            for n in same:
                if n != best:
                    self.insights.remove(n)
                    del self.credit[n]

    def _joined(self, texts: list[str], best: str) -> list[str]:
        answer = self.ask(self.MERGE, {"insights": texts}, schema_of(insights=TEXTS), lambda: {"insights": [best]})
        return list(answer["insights"])

    def _best_insights(self, asked: str) -> list[int]:
        """Return the insights with most credit; of equal ones the nearer."""
        near = [n for n, _ in self.insights.index.search(asked, len(self.credit))]
        return sorted(near, key=lambda n: -self.credit[n])[: self.INSIGHTS]

    def recall(self, task: str, observation: str, newest: str = "") -> list[str]:
        """Trajectories, then insights. One call, that ranks."""
        asked = self.question(task, observation, newest)
        cosines = dict(self.entries.index.search(asked, len(self.won)))
        first = [*cosines][: self.NEAREST]
        reached = dict.fromkeys([*first, *(n for one in first for n in self.edges(one))])
        near = sorted((n for n in reached if cosines[n] > self.ABOVE), key=lambda n: -cosines[n])
        texts = [self.entries.texts[n] for n in near]
        order = self.ask(
            self.RANK, {"task": asked, "episodes": dict(enumerate(texts))}, schema_of(order=TEXTS),
            lambda: {"order": [str(i) for i in range(len(near))]},
        )["order"]  # fmt: skip
        ranked = [near[int(i)] for i in dict.fromkeys(order) if i.isdecimal() and int(i) < len(near)]
        won = [n for n in ranked if self.won[n]][: self.SUCCESSES]
        lost = [n for n in ranked if not self.won[n]][: self.FAILURES]
        best = self._best_insights(asked)
        return lines_for([self.entries.texts[n] for n in (*won, *lost)], observation) + [
            self.insights.texts[n] for n in best
        ]

    def texts(self) -> list[str]:
        return [*self.entries.texts.values(), *self.insights.texts.values()]


def without_refused(episode: Episode) -> str:
    """Return the transcript without the steps that had no effect."""
    lines = [f"> {s.action}\n{a}" for s, a in zip(episode.steps, episode.answers) if not DEFAULT.read(a).refused]
    return "\n".join([f"task: {plain_goal(episode.goal)}", *lines])


def _general(episode: Episode) -> list[str]:
    """Write by rule what happened, without numbers of places."""
    return [clause.rstrip("0123456789 ") for clause in clauses_of(episode)]


def first_neighbour_clusters(vectors: np.ndarray) -> list[list[int]]:
    """Cluster the rows of float[N, D], N >= 2, by nearest neighbours.

    Two belong together if one is the nearest of the other, or both have the same nearest; so do all that are joined by
    these.

    Source: Sarfraz et al., "Efficient parameter-free clustering using first neighbor relations" (2019), the first
    partition.
    """
    similar = np.einsum("id,jd->ij", vectors, vectors)
    np.fill_diagonal(similar, -np.inf)
    nearest = similar.argmax(1)
    labels = np.arange(len(vectors))
    for i, j in enumerate(nearest):
        labels[labels == labels[i]] = labels[j]
    return [np.flatnonzero(labels == label).tolist() for label in dict.fromkeys(labels.tolist())]
