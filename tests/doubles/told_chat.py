"""A chat model that gives the answers it was told, in order, and keeps what it was asked."""

from __future__ import annotations

import json

from embodied_mem.language.chat import ChatReply, UsageMeter


class ToldChat:
    """Answers are texts, or data that is sent as JSON; asked once more than told, it fails the test."""

    name = "told"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked: list[str] = []
        self.meter = UsageMeter()

    def complete(self, messages, **settings):
        self.asked.append(messages[-1]["content"])
        answer = self.answers.pop(0)
        return ChatReply(answer if isinstance(answer, str) else json.dumps(answer))
