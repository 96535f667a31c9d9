"""LangMem's store manager: records that a model inserts or patches in the background; it deletes none.

Source: the package langmem, `create_store_manager` with deletes off. Ours: prompt, rule, embedder; records of an
episode hold what happened and of a fact what is so, told apart by their `kind`. The prompt optimiser (procedural
memory) is not built: rules have nothing to say there.
"""

from __future__ import annotations

from embodied_mem.compiler.prompts import compact_room, plain_goal
from embodied_mem.language.chat import Json
from embodied_mem.types import Episode

from .method import (
    TEXT,
    SearchingMethod,
    clauses_of,
    facts_of,
    schema_list,
    schema_of,
    tagged,
    transcript,
)


class LangMem(SearchingMethod):
    """Five records that fit the episode are shown; the answer inserts new ones and writes old ones anew."""

    TASK_WEIGHT = 4
    MANAGE = (
        "Bring the memory up to date with this episode: give each record that is new (id empty) or that changes (its "
        "id). Kinds: semantic for a fact, episodic for what was done and how it ended."
    )
    RECORDS = schema_of(records=schema_list(id=TEXT, kind={"enum": ["semantic", "episodic"]}, content=TEXT))

    def observe(self, episode: Episode) -> None:
        """Make one call."""
        message = transcript(episode)
        near = {str(number): text for number, text in self.near(message, self.TOP_K).items()}
        existing = [{"id": number, "content": text} for number, text in near.items()]
        given: Json = {"existing": existing, "episode": message}
        answer = self.ask(self.MANAGE, given, self.RECORDS, lambda: {"records": self._by_rule(episode)})
        for one in answer["records"]:
            if one["id"] in near:
                self.entries.put(int(one["id"]), one["content"])
            else:
                self.entries.add(one["content"])

    def _by_rule(self, episode: Episode) -> list[dict[str, str]]:
        """Return the facts that no record has, and the episode."""
        kept = set(self.entries.texts.values())
        new = [{"id": "", "kind": "semantic", "content": fact} for fact in facts_of(episode) if fact not in kept]
        told = f"{plain_goal(episode.goal)}; {'; '.join(clauses_of(episode))}"
        told = tagged(told, compact_room(episode.first_observation))
        return [*new, *([] if told in kept else [{"id": "", "kind": "episodic", "content": told}])]
