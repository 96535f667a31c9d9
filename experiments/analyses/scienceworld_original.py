"""ScienceWorld's original and the native world compared on the same commands.

    taskset -c 0 python -m experiments.analyses.scienceworld_original FOLDER --games find-plant --result RESULT

Episodes of the original are recorded in FOLDER once: three in five of random commands, one with wrong and malformed
ones among them, one along the original's solution with detours. The native world then plays what was recorded. In
episodes of their own each fifth command is `objects`, and the list of valid commands is recorded after each tenth step.
Both draw from the generator of the original's bees, so such an episode ends where they are seen to fly otherwise. The
Java process runs with equal hashes for all objects (`-XX:hashCode=2`), since it lists equal names in their order.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import gzip
import json
import os
import random
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("JDK_JAVA_OPTIONS", "-Xmx1g -XX:+UnlockExperimentalVMOptions -XX:hashCode=2")

from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.worlds.scienceworld.capture import NATIVE_GAMES, capture  # the Java options come first
from embodied_mem.worlds.scienceworld.engine import Env, Task, read_task
from embodied_mem.worlds.scienceworld.jvm import SOLVES_S, Simulator

_LISTS_EVERY, _OBJECTS_EVERY = 10, 5
_LIST_ENTRY = re.compile(r"(look at|look in|focus on|pick up|put down|go to|\w+) (.+)")
_RARE = ("focus", "reset", "task", "look", "inventory")
_WRONG_SHARE = {"wrong": 0.5, "lists": 0.2}
_KINDS = ("random", "random", "random", "wrong", "gold")
_TEMPLATES = (
    "open {}", "close {}", "activate {}", "turn off {}", "connect {} to {}", "disconnect {}", "dunk {} into {}",
    "eat {}", "flush {}", "go {}", "go to {}", "go through {}", "look at {}", "examine {}", "look in {}", "mix {}",
    "move {} to {}", "pick up {}", "pour {} in {}", "put down {}", "read {}", "use {} on {}", "use {}", "fly to {}",
)  # fmt: skip


def random_command(env: Env, rng: random.Random) -> str:
    """Return a random command; one in five leads to another room."""
    by_verb = collections.defaultdict(list)
    for command in env.admissible_commands:
        by_verb[command.split()[0]].append(command)
    if rng.random() < 0.2:
        ways = by_verb["go"] + by_verb["teleport"] + [c for c in by_verb["open"] if "door" in c]
        if ways:
            return rng.choice(ways)
    verbs = sorted(verb for verb, commands in by_verb.items() if commands)
    verb = rng.choice(verbs)
    if verb in _RARE and rng.random() < 0.8:
        verb = rng.choice(verbs)
    if verb == "focus" and rng.random() < 0.9:
        verb = "look"
    return rng.choice(by_verb[verb])


def wrong_command(names: list[str], command: str, rng: random.Random) -> str:
    """Return a command that names anything, or a disturbed one."""
    if rng.random() < 0.6:
        return rng.choice(_TEMPLATES).format(rng.choice(names), rng.choice(names))
    words = command.split()
    at = rng.randrange(len(words))
    changes: tuple[list[str], ...] = (
        words[:at] + words[at + 1 :], words[: at + 1] + words[at:], [command.upper()], [command + " "], ["", command],
        ["the", *words], [*words, "in", "kitchen"], [str(rng.randrange(3))], [], ["xyzzy"], words[:at],
    )  # fmt: skip
    return " ".join(rng.choice(changes))


def record(simulator: Simulator, beginning: dict[str, Any], kind: str, seed: str, steps: int) -> dict[str, Any]:
    """Return an episode: commands, texts, scores, ends, rooms, inventories, lists."""
    rng = random.Random(seed)
    game, _, number = beginning["id"].partition("/")
    gold = simulator.gold_path(game, int(number))[::-1] if kind == "gold" else []
    names = sorted({name for thing in beginning["things"] for name in [thing["n"], *thing.get("c", ())]})
    simulator.load(game, int(number))
    env = Env(_read(beginning))
    episode: dict[str, Any] = {"kind": kind, "first": f"{simulator.first_text.rstrip()}\n\n{simulator.goal}"}
    rows: list[list[Any]] = []
    lists: dict[str, list[str]] = {}
    began = _cpu_s(simulator.process.pid)
    text = ""
    while len(rows) < steps and not (rows and rows[-1][3]):
        command = random_command(env, rng)
        if text.startswith("Ambiguous") and rng.random() < 0.7:
            command = str(rng.randrange(4))
        elif gold and rng.random() < 0.7:
            command = gold.pop()
        elif kind in _WRONG_SHARE and rng.random() < _WRONG_SHARE[kind]:
            command = wrong_command(names, command, rng)
        elif kind == "lists" and len(rows) % _OBJECTS_EVERY == _OBJECTS_EVERY // 2:
            command = "objects"
        text, score, over = simulator.step(command)
        look, inventory = simulator._ask("freeActionLook"), simulator._ask("freeActionInventory")
        rows.append([command, text, score, over or score < 0, look, inventory])
        env.step(command)
        if kind == "lists" and len(rows) % _LISTS_EVERY == 0 and not rows[-1][3]:
            lists[str(len(rows))] = simulator.admissible_commands()
    return episode | {"cpu_s": _cpu_s(simulator.process.pid) - began, "rows": rows, "lists": lists}


def difference(task: Task, episode: dict[str, Any]) -> tuple[int, tuple[str, str, str] | None]:
    """Return the steps played, and what differs first with both texts."""
    env = Env(task)
    if env.observation.strip() != episode["first"].strip():
        return 0, ("reset", episode["first"], env.observation)
    for count, (command, text, score, over, look, inventory) in enumerate(episode["rows"]):
        answer = env.step(command)
        if command == "objects" and is_listing(env, text) and is_listing(env, answer):
            answer = text
        for what, theirs, ours in (
            ("text", text, answer), ("score", f"{score} {over}", f"{env.score} {env.ended}"),
            ("look", look, env.look()), ("inventory", inventory, env.inventory()),
        ):  # fmt: skip
            if theirs.strip() != ours.strip():
                return count, (what, theirs, ours)
        if theirs_listed := episode.get("lists", {}).get(str(count + 1)):
            lists = native_names(env, theirs_listed), env.admissible_commands
            theirs, ours = ("\n".join(_without_order(commands)) for commands in lists)
            if theirs != ours:
                return count, ("commands", theirs, ours)
    return len(episode["rows"]), None


def is_listing(env: Env, text: str) -> bool:
    """Tell whether `objects` can be answered so, where names are drawn."""
    heading, *names = (line.strip() for line in text.strip().split("\n"))
    things = env.listed_names(closed=False)
    count = collections.Counter(name for own in things for name in own)
    choices = [[name for name in own if count[name] == 1][:1] or own for own in things]
    names_by_thing: dict[int, str] = {}

    def has_thing(name: str, asked_things: set[int]) -> bool:
        for thing in (i for i, own in enumerate(choices) if name in own and i not in asked_things):
            asked_things.add(thing)
            if thing not in names_by_thing or has_thing(names_by_thing[thing], asked_things):
                names_by_thing[thing] = name
                return True
        return False

    is_complete = len(names) == len(things) and all(has_thing(name, set()) for name in names)
    return is_complete and names == sorted(names) and heading == "Possible object references:"


def _without_order(commands: list[str]) -> list[str]:
    """Return commands with sorted teleports; the original hashes them."""
    teleports = iter(sorted(command for command in commands if command.startswith("teleport ")))
    return [next(teleports) if command.startswith("teleport ") else command for command in commands]


def _is_of_bees(command: str, what: str, theirs: str, ours: str) -> bool:
    """Tell whether bees that were drawn for can differ so."""
    if what == "commands":
        theirs, ours = ("\n".join(line for line in text.split("\n") if " bee" not in line) for text in (theirs, ours))
        return theirs == ours
    return what in ("look", "text") and command != "objects"


def native_names(env: Env, commands: list[str]) -> list[str]:
    """Return the original's list with native names where it draws one."""
    theirs, ours = ([c[8:] for c in each if c.startswith("look at ")] for each in (commands, env.admissible_commands))
    if theirs == ours:
        return commands
    lists_by_step = env.listed_names()
    count = collections.Counter(name for own in lists_by_step for name in own)
    is_random = [a in own and all(count[name] > 1 for name in own) for a, own in zip(theirs, lists_by_step)]
    return [_rename(command, {a: b for a, b, d in zip(theirs, ours, is_random) if a == b or d}) for command in commands]


def _rename(command: str, names: dict[str, str]) -> str:
    match = _LIST_ENTRY.fullmatch(command)
    if match is None or match[2] in names:
        return f"{match[1]} {names[match[2]]}" if match else command
    for middle in re.finditer(" (to|into|on) ", match[2]):
        first, second = match[2][: middle.start()], match[2][middle.end() :]
        if first in names and second in names:
            return f"{match[1]} {names[first]}{middle[0]}{names[second]}"
    return command


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_kb(pid: int | str) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def _read(beginning: dict[str, Any]) -> Task:
    return read_task(json.dumps(beginning).encode(), beginning["id"])


def _record_game(simulator: Simulator, game: str, arguments: argparse.Namespace) -> None:
    """Append episodes to a game's file until it is complete."""
    file = arguments.folder / f"{game}.jsonl.gz"
    earlier = list(_episodes(file)) if file.exists() else []
    goals = {"steps": arguments.steps, "lists": arguments.lists}
    totals = {"steps": sum(len(episode["rows"]) for _, episode in earlier if episode["kind"] != "lists")}
    totals["lists"] = sum(len(episode.get("lists", ())) for _, episode in earlier)
    counts = collections.Counter("lists" if episode["kind"] == "lists" else "steps" for _, episode in earlier)
    variations = simulator.num_variations(game)
    beginnings = {int(beginning["id"].partition("/")[2]): beginning for beginning, _ in earlier}
    while missing_kinds := [what for what in goals if totals[what] < goals[what]]:
        count = counts[missing_kinds[0]]
        block = count // (arguments.variations * len(_KINDS))  # of all kinds; each has other variations
        number = (count % arguments.variations * variations // arguments.variations + block) % variations
        if number not in beginnings:
            beginnings[number] = capture(simulator, game, number)
        kind = _KINDS[(count + count // arguments.variations) % len(_KINDS)]
        if missing_kinds[0] == "lists":
            kind = "lists"
        episode = record(simulator, beginnings[number], kind, f"{game}/{kind}/{count}", arguments.episode)
        with file.open("ab") as stream:
            stream.write(gzip.compress(json.dumps([beginnings[number], episode]).encode() + b"\n"))  # in one piece
        totals[missing_kinds[0]] += len(episode["lists"] if kind == "lists" else episode["rows"])
        counts[missing_kinds[0]] += 1


def _env_kb(folder: Path, game: str) -> float:
    """Return the memory of an env; to be measured first."""
    beginning, _ = next(_episodes(folder / f"{game}.jsonl.gz"))
    task, count = _read(beginning), 1000
    before = _resident_kb("self")
    envs = [Env(task) for _ in range(count)]
    return round((_resident_kb("self") - before) / len(envs), 1)


def _episodes(file: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        for line in stream:
            beginning, episode = json.loads(line)
            yield beginning, episode


def cause(command: str, what: str, theirs: str, ours: str) -> str:
    """Return a short key of a difference."""
    lines = [
        line for line in difflib.unified_diff(theirs.split("\n"), ours.split("\n"), n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]  # fmt: skip
    return f"{command.split()[0]} | {what} | " + " ".join(re.sub(r"\d+", "#", line)[:110] for line in lines[:2])


def _compare(game: str, arguments: argparse.Namespace) -> dict[str, Any]:
    causes: collections.Counter[str] = collections.Counter()
    kinds: collections.Counter[str] = collections.Counter()
    lists: collections.Counter[str] = collections.Counter()
    steps, original_s, native_s, ids, load_s = 0, 0.0, 0.0, set(), list[float]()
    for beginning, episode in _episodes(arguments.folder / f"{game}.jsonl.gz"):
        began = time.process_time()
        task = _read(beginning)
        Env(task)
        load_s.append(time.process_time() - began)
        count, first = difference(task, episode)
        commands = [row[0] for row in episode["rows"]]
        if episode["kind"] == "lists":
            lists_by_step = {
                step: each for step, each in episode["lists"].items() if int(step) <= count + (first is not None)
            }
            lists.update(lists=len(lists_by_step), commands=sum(map(len, lists_by_step.values())))
            lists["objects"] += commands[: count + (first is not None)].count("objects")
            has_drawn = "objects" in commands[: count + 1] or any(int(step) <= count for step in lists_by_step)
            if first and has_drawn and _is_of_bees(commands[count], *first):
                lists["disturbed"] += 1
                continue
        if first:
            key = cause((["", *commands])[count + 1] or "-", *first)
            if not causes[key] and arguments.show:
                print(f"== {beginning['id']} {key}\n{commands[: count + 1]}")
                print("\n".join(difflib.unified_diff(first[1].split("\n"), first[2].split("\n"), n=1, lineterm="")))
            causes[key] += 1
        if episode["kind"] == "lists":
            continue
        steps += max(count, 1)
        ids.add(beginning["id"])
        kinds[episode["kind"]] += count
        original_s += episode["cpu_s"]
        env, began = Env(task), time.process_time()
        for command in commands:
            env.step(command), env.look(), env.inventory()
        native_s += (time.process_time() - began) * max(count, 1) / len(commands)
    return {
        "load_ms": round(1000 * statistics.median(load_s), 2),
        "variations": len(ids), "steps": steps, "kinds": dict(kinds), "differences": sum(causes.values()),
        "per_1000_steps": round(1000 * sum(causes.values()) / max(steps, 1), 1), "lists": lists["lists"],
        "listed_commands": lists["commands"], "objects": lists["objects"], "disturbed_episodes": lists["disturbed"],
        "native_steps_per_s": round(steps / max(native_s, 1e-9)),
        "original_steps_per_s": round(steps / max(original_s, 1e-9)), "causes": dict(causes.most_common()),
    }  # fmt: skip


def main() -> None:
    """Record what is missing, compare, print the causes by their counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the original's episodes are kept")
    parser.add_argument("--games", nargs="+", default=list(NATIVE_GAMES), choices=NATIVE_GAMES)
    parser.add_argument("--variations", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10_000, help="of each task")
    parser.add_argument("--episode", type=int, default=50, help="steps of an episode")
    parser.add_argument("--simplifications", default="")
    parser.add_argument("--lists", type=int, default=20, help="lists of valid commands of each task")
    parser.add_argument("--show", action="store_true", help="show the first difference of each cause")
    parser.add_argument("--result", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.steps or arguments.lists:
        with Simulator(arguments.simplifications, SOLVES_S) as simulator:
            for game in arguments.games:
                _record_game(simulator, game, arguments)
    table, native_kb = {}, _env_kb(arguments.folder, arguments.games[0])
    for game in arguments.games:
        row = table[game] = _compare(game, arguments)
        print(game, {key: value for key, value in row.items() if key != "causes"}, flush=True)
        for text, number in list(row["causes"].items())[:25]:
            print(f"  {number:4d} {text}")
    if arguments.result:
        with Simulator(arguments.simplifications, SOLVES_S) as simulator:
            capture(simulator, arguments.games[0], 0)
            original_mb = _resident_kb(simulator.process.pid) // 1024
        report = manifest(
            simplifications=arguments.simplifications,
            java=os.environ["JDK_JAVA_OPTIONS"],
            steps=arguments.steps,
            episode=arguments.episode,
        )
        write_result(arguments.result, report | {"native_kb": native_kb, "original_mb": original_mb, "games": table})


if __name__ == "__main__":
    main()
