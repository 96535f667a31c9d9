"""The original ALFWorld (TextWorld with ALFWorld's demangler), and games played on both sides to compare them.

    differences = compare_game("game.tw-pddl", num_commands=40, seed=0)
    assert not differences

Needs `pip install "embodied_mem[envs]"`. The comparison of all games is `experiments/bench.py --suite alfworld`.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

from embodied_mem.errors import MissingDependencyError
from embodied_mem.worlds.alfworld.engine import Env, Game

_MALFORMED = (
    "", " ", "Look", "LOOK", " look", "look\n", "\tinventory  ", "\u00a0look\u3000", "lo ok", "loo", "look look",
    "inventory.", "go", "go to", "go to nowhere 1", "goto bed 1", "take", "take apple from", "take apple 1 from",
    "move to", "put a in/on b", "examine", "examine agent1", "examine agent1 ", "help me", "use", "open", "xyzzy",
    "go  to fridge 1", "\ud800", "\x00", "é",
)  # fmt: skip


def start_original(path: str | os.PathLike[str], grammar: str = "0.4") -> Any:
    """Return TextWorld's env for one game file, not yet reset.

    It is wrapped in ALFWorld's demangler (shuffle off).

    Args:
        path: an official game file (`*.tw-pddl`).
        grammar: "0.4" plays the file as it is; "0.3" rewrites its grammar to the wording of the releases 0.3.x first.

    Raises:
        MissingDependencyError: textworld, its planner or alfworld is not installed.
    """
    try:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs.pddl import PddlEnv
    except ImportError as error:
        raise MissingDependencyError(
            f"the original ALFWorld is not installed ({error}); run: pip install 'embodied_mem[envs]'"
        ) from error
    infos = textworld.EnvInfos(feedback=True, admissible_commands=True, score=True, won=True)
    if grammar == "0.4":
        return textworld.start(str(path), request_infos=infos, wrappers=[AlfredDemangler(shuffle=False)])
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    env = AlfredDemangler(shuffle=False)(PddlEnv(infos))
    env.load(in_wording_of_0_3(data))
    return env


def in_wording_of_0_3(data: dict[str, Any]) -> dict[str, Any]:
    """Return a game file's content in the wording of ALFWorld 0.3.x.

    It is derived from that of 0.4. The release 0.3.5 says `put X in/on Y`, names the location on arrival ("You arrive
    at loc 12."), has no `help`.
    """
    grammar = data["grammar"]
    for now, then in (
        ('"You arrive at {r.name}. ', '"You arrive at {lend.name}. '),
        ('"You move the {o.name} to the {r.name}."', '"You put the {o.name} in/on the {r.name}."'),
        ('template :: "move {o} to {r}";', 'template :: "put {o} in/on {r}";'),
    ):  # fmt: skip
        assert now in grammar, f"the grammar of the game file has no {now}"
        grammar = grammar.replace(now, then)
    domain = data["pddl_domain"]
    without_help = domain[: domain.rindex("(:action help")] + ")"
    return {**data, "grammar": grammar[: grammar.rindex("action help {")], "pddl_domain": without_help}


@contextlib.contextmanager
def memoised() -> Iterator[None]:
    """Make the original about ten times as fast, with the same answers.

    This lasts as long as the context. TextWorld parses the same texts anew at every step and translates each problem
    four times. Here parsed texts are kept, one translation serves load and reset and also the planner (which nobody
    asks), the text of a command, which depends on constant facts only, is derived once, and names, which nobody
    changes, are not copied when a context is. A test holds this against the untouched original.
    """
    import fast_downward
    from textworld.envs.pddl import textgen
    from textworld.generator.game import EntityInfo
    from textworld.logic import Placeholder, Rule, Variable

    parse_text, derive = textgen._parse_and_convert, textgen.ContextSensitiveGrammar.derive
    parse_query, translate = Rule.parse_conjunctive_query, fast_downward.pddl2sas
    cached_text = functools.lru_cache(maxsize=4096)(lambda text, rule: parse_text(text, rule_name=rule))
    cached_query = functools.lru_cache(maxsize=4096)(parse_query)
    translated: dict[tuple[str, str], Any] = {}

    def parse(text: str, rule_name: str, **_: Any) -> Any:
        return copy.deepcopy(cached_text(text, rule_name))

    def translate_once(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        if (domain, problem) not in translated:
            translated.clear()
            translated[domain, problem] = translate(domain, problem, verbose=verbose)
        return translated[domain, problem]

    def derive_once(self: Any, start: str, context: Any = None) -> Any:
        if start.startswith("#") or not context or not context["mapping"]:
            return derive(self, start, context or {})
        kept = self.__dict__.setdefault("_kept", {})
        key = (start, *context["mapping"].values())
        if key not in kept:
            kept[key] = derive(self, start, context)
        return kept[key]

    textgen._parse_and_convert, fast_downward.pddl2sas = parse, translate_once
    Rule.parse_conjunctive_query = cached_query
    textgen.ContextSensitiveGrammar.derive = derive_once
    for constant in (EntityInfo, Placeholder, Variable):
        constant.__deepcopy__ = lambda self, memo: self
    try:
        yield
    finally:
        for constant in (EntityInfo, Placeholder, Variable):
            del constant.__deepcopy__
        textgen._parse_and_convert, fast_downward.pddl2sas = parse_text, translate
        Rule.parse_conjunctive_query = parse_query
        textgen.ContextSensitiveGrammar.derive = derive


class CommandSource:
    """Draws commands of all kinds: expert ones until the game is won, random ones, things elsewhere, malformed ones."""

    def __init__(self, game: Game, seed: int, walkthrough: list[str], expert_share: float = 0.3):
        self._rng = random.Random(seed)
        self._game = game
        self._expert = list(walkthrough)
        self._expert_share = expert_share

    def next(self, admissible: list[str]) -> str:
        """Return the next command, given what can be done now."""
        rng = self._rng
        kind = rng.random()
        if kind < self._expert_share and self._expert:
            if self._expert[0] in admissible:
                return self._expert.pop(0)
            # A detour has moved the agent: walk back to where the next expert command can be given.
            words = self._expert[0].split(" ")
            return f"go to {' '.join(words[-2:])}"
        if kind < 0.78:  # verbs first: the greater part of admissible commands leads elsewhere
            verb = rng.choice(sorted({command.split(" ")[0] for command in admissible}))
            return rng.choice([command for command in admissible if command.split(" ")[0] == verb])
        if kind < 0.84:
            return rng.choice(admissible)
        if kind < 0.92:
            return self._anything()
        command = rng.choice(admissible)
        return rng.choice(
            [rng.choice(_MALFORMED), command.upper(), command.title(), f"  {command}\n", f"{command} 1", command[:-1],
             command.replace(" ", "  "), command.replace(" 1", " 9")]
        )  # fmt: skip

    def _anything(self) -> str:
        thing = self._rng.choice(self._game.objects)
        place = self._rng.choice(self._game.receptacles)
        templates = ("go to {r}", "open {r}", "close {r}", "take {o} from {r}", "move {o} to {r}", "put {o} in/on {r}",
                     "examine {o}", "examine {r}", "use {o}", "heat {o} with {r}", "clean {o} with {r}",
                     "cool {o} with {r}", "slice {o} with {r}", "slice {o} with {o}")  # fmt: skip
        return self._rng.choice(templates).format(o=thing, r=place)


def compare_game(
    path: str | os.PathLike[str],
    num_commands: int,
    seed: int,
    grammar: str = "0.4",
    *,
    expert_share: float = 0.3,
    script: Sequence[str] = (),
) -> list[str]:
    """Play one game on both sides and return where they differ.

    Nothing is returned if all is well. Compared after the reset and after each command: text, admissible commands with
    their order, score, won, done.

    Args:
        path: an official game file.
        num_commands: how many commands are given; the game goes on after it is won.
        seed: decides the commands.
        grammar: the wording, see `start_original`.
        expert_share: share of the commands that follow the file's own walkthrough.
        script: commands given first; they count among `num_commands`.
    """
    original = start_original(path, grammar)
    state = original.reset()
    game = Game.load(str(path))
    env = Env(game, grammar=grammar)
    walkthrough = game.walkthrough
    if grammar == "0.3":
        walkthrough = [_put(command) for command in walkthrough]
    source = CommandSource(game, seed, walkthrough, expert_share)
    differences: list[str] = []

    def check(when: str, **pairs: tuple[Any, Any]) -> None:
        for name, (theirs, ours) in pairs.items():
            if theirs != ours:
                differences.append(f"{path}: {when}: {name}: the original says {theirs!r}, we say {ours!r}")

    check("reset", observation=(state.feedback, env.observation), won=(state.won, env.won))
    check("reset", admissible_commands=(state.admissible_commands, env.admissible_commands))
    for i in range(num_commands):
        command = script[i] if i < len(script) else source.next(state.admissible_commands)
        state, reward, done = original.step(command)
        when = f"command {i} {command!r}"
        check(when, observation=(state.feedback, env.step(command)), won=(state.won, env.won), done=(done, env.won))
        check(when, score=(state.score, env.score), reward=(reward, env.score))
        check(when, admissible_commands=(state.admissible_commands, env.admissible_commands))
        check(when, progress=(state.won, env.progress == 1.0))
        if differences:
            break
    original.close()
    return differences


def _put(command: str) -> str:
    if not command.startswith("move "):
        return command
    thing, place = command.removeprefix("move ").split(" to ")
    return f"put {thing} in/on {place}"
