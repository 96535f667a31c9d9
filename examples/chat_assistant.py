"""A chat assistant that remembers two users apart: `python examples/chat_assistant.py [--url URL --model NAME]`.

Without a model, rules and notes remember, and the answer is what was remembered. With one (any server that speaks the
OpenAI protocol; needs the extra `chat`) it also reads what the rules cannot, and words the answers.
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile

from embodied_mem.language.chat import ChatError, ChatModel
from embodied_mem.memory import LifelongMemory, Scope

SAID = {
    "ann": (
        "I am vegetarian.",
        "I like oat milk.",
        "My sister gave me the blue mug, it is my favourite.",
        "I don't like oat milk anymore, I prefer soy.",
        "Which milk do I like?",
        "Who gave me the blue mug?",
    ),
    "bob": (
        "I take my pill after breakfast.",
        "My train to Bern leaves at 7:40 on Mondays.",
        "When does my train leave?",
        "Which milk do I like?",
    ),
}
FITS = 0.2  # scores are shares of the question's words, and similarity: below this nothing is about it
PROMPT = "You answer the user in one sentence, from these memories alone. Say so if they do not tell.\n"


def answer(memory: LifelongMemory, model: ChatModel | None, question: str) -> str:
    """Return the model's answer from memories; without one, the memories."""
    found = memory.retrieve(question, k=3, budget_tokens=200).items
    remembered = "\n".join(item.text for item in found if item.score >= FITS)
    if model is None or not remembered:
        return remembered.replace("\n", "\n       ") or "I was not told."
    messages = [{"role": "system", "content": PROMPT + remembered}, {"role": "user", "content": question}]
    try:
        return model.complete(messages, max_tokens=100).text
    except ChatError as error:
        return f"{remembered} (the model did not answer: {error})"


def talk(folder: pathlib.Path, user: str, model: ChatModel | None) -> None:
    """Print one user's conversation.

    Each user has a folder, and no memory can name what is in another one.
    """
    with LifelongMemory.open(folder / user, Scope(user=user), chat=model) as memory:
        for said in SAID[user]:
            print(f"{user}: {said}")
            if said.endswith("?"):
                print(f"    -> {answer(memory, model, said)}")
                continue
            receipt = memory.tell(said)
            for do, written in [("keeps", receipt.stored), ("adds to", receipt.merged), ("ends", receipt.ended)]:
                for one in written:
                    print(f"       {do} {one.id}: {one.text}")
        if memory.writer is not None:
            print(
                f"       (asked the model {memory.writer.calls} times, rules had to do {memory.writer.fallbacks} times)"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="", help="of a server, e.g. http://localhost:8000/v1; empty for no model")
    parser.add_argument("--model", default="", help="as the server names it")
    args = parser.parse_args()
    if args.url:
        from embodied_mem.language import OpenAIChatModel
    folder = pathlib.Path(tempfile.mkdtemp())
    for user in SAID:
        talk(folder, user, OpenAIChatModel(args.url, args.model) if args.url else None)
