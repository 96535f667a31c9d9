"""Scores deliveries of memory by trained weights, or with --agents the planner-critic agent and its ablations.

    --weights RUN/weights --tasks valid_seen --seeds 0 1 2 --temperature 0.5
    --deliveries none compiled --num_tasks 50
    --agents full no_critic --num_tasks 50 --max_steps 30        # tasks are played twice without clearing memory
    --agents chat_planner_critic --server http://localhost:8000/v1 --model NAME --record calls.jsonl
    --agents chat_planner_critic chat_no_spatial --memory_model NAME --lives 8 --parallel 8 --server ...

Deliveries: each gets the same executor, memory bank, tasks and seeds. The bank holds the successes of the teacher on
the training games of the weights; it is played anew (seconds) or read from --bank_file. Controls are --bank, --soft and
--hint_tokens: the first value is the setting of all rows, every other one gives a row of its own:

    --deliveries compiled --bank committed empty irrelevant noisy:0.5 stale --soft intact swapped noise zero only

With --model, a model behind a server acts instead of the weights' executor, and reads deliveries in words; --guidance
says how much of the compiler's guidance it is told, --batch_size how many requests run at a time. The same command
without --server replays the recording:

    --deliveries none static compiled_text --guidance place command --server URL --model NAME --record calls.jsonl

With --compiler_model, a model behind the same server that nobody trained compiles for the delivery `compiled_chat`:

    --deliveries none compiled compiled_chat --compiler_model NAME --server URL --record calls.jsonl

With --memory_model, a model behind the same server answers what memory methods ask when they observe and recall
(mem0_1, a_mem, ...); their rows have the methods' names alone then. Without it rules answer. It also writes the memory
of `chat_planner_critic`.

`memgen` needs a weaver beside the weights: `python experiments/memgen.py --weights RUN/weights` trains it.

With --perceiver_model, a model behind the same server looks at each answer's text and, with --sees, at its picture; all
that the memory of `chat_planner_critic` knows comes from it.

With --executor PATH, a published model acts likewise, but in this process: a Hugging Face folder or a GGUF file. With
--adapters FOLDER beside it, it has what training here taught it, and reads its prompts without an instruction, with
--full_turns as they were in that training.

With --format think_action, --executor or --model reads prompts in the form of verl-agent and its relatives: the last
--history steps, the admissible actions, memory if there is some; its reply is `<think>…</think><action>…</action>`.
The sentences are ours; --prompt_file gives others, with the same fields. An agent of theirs that needs no bank:

    --executor FOLDER --format think_action --deliveries none --temperature 0.4 --prompt_file theirs.txt

With --trace FILE, `embodied-mem view FILE` shows every step: what was seen, what memory gave, and what was done.

Agents: planner and critic are rules that read nothing but the memories; in `chat_planner_critic` a chat model plans,
criticises, summarises and asks, and a recording makes the same command give the same result again. `no_long_term`
forgets everything after each task, so that its two runs are the same. Agents of other papers act by rules, and their
rows say so: `reflexion` (runs are trials; with --model a chat model acts and reflects), `verl_agent` and `memharness`
(likewise with --model), `voyager`, `cradle`.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied_mem import envs, registry
from embodied_mem.agents.agent import Agent
from embodied_mem.agents.deliveries import CHAT, GUIDANCE, delivery_names, method_deliveries
from embodied_mem.agents.planner_critic.agent import ABLATIONS, PlannerCriticAgent
from embodied_mem.agents.planner_critic.chat import chat_parts
from embodied_mem.agents.trace import open_trace, traced, write_delivered
from embodied_mem.envs.drawn_env import DrawnEnvs
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.evaluation import task_sequence
from embodied_mem.evaluation.benchmark import EpisodeResult, Published, check_least, episodes_data, option, trace_option
from embodied_mem.evaluation.chat_options import (
    SeatOptions,
    chat_agents,
    chat_model,
    check_parallel,
    other_model,
    served_compiler,
    usage_of,
)
from embodied_mem.evaluation.command import Models, output_folder
from embodied_mem.evaluation.controls import DECODING, ControlOptions, is_bank_read, settings_of
from embodied_mem.evaluation.report import manifest, rows_table, write_report, write_result
from embodied_mem.language.chat import ChatModel
from embodied_mem.language.seats import Seats
from embodied_mem.memory import Experiences
from embodied_mem.parallel.resume import Finished

from .agent.skills import examples_of, skills_of
from .engine import Game
from .env import data_root, find_games
from .experts import ObservingExpert
from .generator import generate
from .wording.text import executor_instruction, put_command

if TYPE_CHECKING:
    from embodied_mem.compiler.executor import Acts, Executor
    from embodied_mem.compiler.think_action import ThinkAction

DESCRIPTION = __doc__
TRAINED_ON = ("alfworld", "all")
"""Worlds whose models read these games."""
MAX_STEPS = 50
ASKING = {"memharness", "reflexion", "verl_agent"}
"""Agents of other papers that act by a chat model where there is one."""
THINKING = {"memharness", "verl_agent"}
"""Agents among these whose prompts and replies are those of `--format think_action`."""
CHAT_AGENTS = chat_agents(ABLATIONS)
"""Agents that ask a chat model -> the agent by rules with the same parts."""
MAX_REQUESTS = 8
"""Requests to a server at a time; likewise episodes side by side of a published model in this process."""
MAX_ACTION_TOKENS = 24
"""Tokens of an action of a published model."""
IN_WORDS = ("none", "static", "compiled_text", CHAT, "guidance_only", "teacher")
"""Deliveries that a published model can read, beside those of memory methods."""


@dataclasses.dataclass(frozen=True)
class AlfworldConfig(ControlOptions, SeatOptions):
    """Options of play; each field says so itself."""

    agents: tuple[str, ...] = option(
        (), "planner-critic agents, and those of other papers; default: deliveries",
        choices=lambda: (*ABLATIONS, *CHAT_AGENTS, *registry.names("agents")),
    )  # fmt: skip
    tasks: str = option("", "a split, a folder of game files, or `generated`; default: the weights' own or valid_seen")
    num_tasks: int = option(0, "so many games, for agents drawn by --seed; 0 takes all (100 if generated)")
    spread: bool = option(
        False,
        "--num_tasks takes games of every kind in turn, for deliveries; else a split's first, all of one kind",
    )
    max_steps: int = option(0, f"episode limit; 0 takes the weights' own, for agents {MAX_STEPS}")
    deliveries: tuple[str, ...] = option((), "of memory; default: those of the weights' config", choices=delivery_names)
    weights: str = option(
        "experiments/weights/alfworld_judging",
        "folder with config.json, tokenizer.json, weights.safetensors, or the name of a published set",
    )
    seeds: tuple[int, ...] = option(
        (), "of deliveries: each game is played once per seed; default: the weights' own", kind=int
    )
    temperature: float | None = option(
        None, "of compiler and executor, 0 is greedy; default: the weights' own", kind=float
    )
    batch_size: int = option(
        0, "of deliveries: episodes side by side, 1 for the time of a step alone; default: the weights' own"
    )
    bank_file: str = option(
        "", "memory bank file; default: the teacher plays the training games; only none reads no bank"
    )
    guidance: tuple[str, ...] = option(
        ("place",), f"of deliveries: how much guidance says, one or several of {', '.join(GUIDANCE)}"
    )
    decoding: tuple[str, ...] = option(
        ("free",), f"of deliveries: what an executor may write, one or several of {', '.join(DECODING)}"
    )
    executor: str = option("", "folder of Hugging Face or GGUF file: a published model acts, not the weights' executor")
    adapters: str = option("", "PEFT folder that --executor is read with: adapters that were trained here")
    format: str = option(
        "command", "of what --executor or --model reads and writes", choices=("command", "think_action")
    )
    history: int = option(2, "of think_action, verl_agent, memharness: steps that a prompt repeats")
    prompt_file: str = option(
        "", "of think_action, verl_agent, memharness: templates of the first prompt and, after a line ---, others"
    )
    reply_tokens: int = option(512, "of think_action, verl_agent, memharness: longest reply, thoughts included")
    full_turns: int = option(0, "latest turns whose answers the executor reads; default: the weights' own")
    sees: bool = option(
        False,
        "the model at --server is shown the pictures that the weights' world draws; for agents, of each text",
    )
    out: pathlib.Path | None = option(
        None,
        "folder for report.json and report.md; default: runs/evaluation/ and the weights' name",
        kind=output_folder,
    )
    trace: pathlib.Path | None = trace_option("what this command plays")
    repeat: int = option(2, "of agents: how often the tasks are played")
    lives: int = option(1, "of agents: robots that share the tasks, each with its own memory, in lockstep")
    seed: int = option(0, "of agents: order of the tasks, and generated games")
    grammar: str = option("0.4", "of agents: wording of commands", choices=("0.4", "0.3"))

    def __post_init__(self) -> None:
        check_least(self, repeat=1, lives=1, max_steps=0, num_tasks=0, batch_size=0, full_turns=0, history=0,
                    reply_tokens=1)  # fmt: skip
        check_parallel(self)
        if self.agents and self.deliveries:
            raise InvalidInputError("--deliveries: expected none beside --agents; score them by a command of their own")
        if self.spread and (self.agents or not self.num_tasks or self.tasks == "generated"):
            raise InvalidInputError("--spread: expected deliveries, --num_tasks and a split or folder beside it")
        if self.executor and (self.model or self.agents):
            raise InvalidInputError("--executor: expected none beside --model or --agents, got both")
        if self.executor and not (
            (file := pathlib.Path(self.executor)).is_dir() or (file.suffix == ".gguf" and file.exists())
        ):
            what = "which is no such file" if file.exists() else "which is not there"
            raise InvalidInputError(
                f"--executor: expected a Hugging Face folder or a GGUF file, got {self.executor}, {what}"
            )
        if self.adapters and not self.executor:
            raise InvalidInputError(
                "--adapters: expected --executor beside them, the model that they belong to, got none"
            )
        published = "--executor" if self.executor else "--model" if self.model and not self.agents else ""
        if self.format == "think_action" and (
            not published or self.adapters or self.sees or self.decoding != ("free",)
        ):
            raise InvalidInputError(
                "--format think_action: expected --executor or --model, and no --adapters, --sees or --decoding"
            )
        if self.sees and published != "--model" and not (self.agents and self.model):
            raise InvalidInputError("--sees: expected --model beside it, got none; it says what that model reads")
        in_words = (*IN_WORDS, *method_deliveries())
        if published and (wrong := set(self.deliveries) - set(in_words) or not self.deliveries):
            raise InvalidInputError(
                f"--deliveries: expected some of {', '.join(in_words)} with {published}, got "
                f"{', '.join(sorted(wrong)) if isinstance(wrong, set) else 'none'}"
            )


class AlfworldBenchmark:
    """A `Benchmark` of two protocols: deliveries of memory, and agents that play their tasks twice."""

    description = DESCRIPTION
    config = AlfworldConfig()
    published: tuple[Published, ...] = ()

    def evaluate(
        self, config: AlfworldConfig, *, models: Models | None = None, result: pathlib.Path | None = None
    ) -> dict[str, Any]:
        if config.agents:
            return play_agents(config, result)
        return play_deliveries(config, models or Models(config.weights), result)

    def table(self, report: Mapping[str, Any]) -> str:
        if "deliveries" in report:
            return rows_table(report["deliveries"])
        count, source, steps = (report[key] for key in ("num_tasks", "tasks", "max_steps"))
        return f"{task_sequence.table(report['agents'])}\n\n{count} tasks ({source}), at most {steps} steps."

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        shown = ("deliveries", "num_tasks", "seeds") if "deliveries" in report else ("agents", "num_tasks", "seed")
        return {key: report[key] for key in shown}


BENCHMARK = AlfworldBenchmark()


def play_deliveries(config: AlfworldConfig, models: Models, result: pathlib.Path | None) -> dict[str, Any]:
    """Return the report of deliveries of memory.

    Raises:
        InvalidInputError: there is no game, or the models are another world's.
        DataNotFoundError: a delivery reads the memory bank, and the training games of it are not installed.
    """
    from embodied_mem.models.host import keep_freed_memory, set_gpu_flags

    set_gpu_flags()
    keep_freed_memory()
    from embodied_mem.compiler.think_action import ThinkActionServer
    from embodied_mem.evaluation.score import refuse_weights, score
    from embodied_mem.training.tasks import scoring_bank, shown, teach_bank

    from .tasks import games_of, spread

    started = time.perf_counter()
    bundle = models.load()
    if config.full_turns:
        read = dataclasses.replace(bundle.config.memory, full_turns=config.full_turns)
        bundle = dataclasses.replace(bundle, config=dataclasses.replace(bundle.config, memory=read))
    trained, world, ev = bundle.config, bundle.config.world, bundle.config.evaluation
    if world.name not in TRAINED_ON:
        refuse_weights(config.weights, world.name, "ALFWorld")
    seeds, names = list(config.seeds or ev.seeds), list(config.deliveries or ev.deliveries)
    rows = settings_of(
        names, config.bank, config.soft, config.hint_tokens or (None,), config.guidance, config.decoding,
        memory_model=bool(config.memory_model),
    )  # fmt: skip
    if config.sees and not world.drawn:
        raise InvalidInputError("--sees: expected weights of a world with pictures (--world.drawn), got some without")
    source = config.tasks or world.valid
    count = config.num_tasks or (world.num_valid if source == world.valid else 0)
    games = games_of(source, 0 if config.spread else count, "valid", world, trained.seed)
    if config.spread:
        games = [*spread([game for game in games if isinstance(game, pathlib.Path)])[:count]]
    if not games:
        raise InvalidInputError(f"--tasks {source}: expected at least one game, got none (generated: give --num_tasks)")
    make_bank = scoring_bank if source == world.valid else teach_bank
    try:
        bank = make_bank(trained, config.bank_file) if is_bank_read(rows) else Experiences()
    except DataNotFoundError as error:
        what = "the memory bank is made of the training games of the weights, or read from --bank_file"
        raise DataNotFoundError(f"{what}: {error}") from error
    max_steps = config.max_steps or world.max_steps
    batch_size = config.batch_size or (MAX_REQUESTS if config.model or config.executor else ev.batch_size)
    valid = envs.make(
        "alfworld", tasks=games, num_envs=min(batch_size, len(games) * len(seeds)), seed=trained.seed,
        max_steps=max_steps, grammar=world.grammar,
    )  # fmt: skip
    temperature = ev.temperature if config.temperature is None else config.temperature
    thinks = config.format == "think_action"
    chat = chat_model(config, "--deliveries with --model", {} if thinks else {"stop": ["\n"]}) if config.model else None
    memory = other_model(config, "memory_model")
    served = served_compiler(config, temperature, config.batch_size or MAX_REQUESTS)
    acting: Acts | None = None
    scheme = think_action(config) if thinks else None
    if chat and thinks:
        acting = ThinkActionServer(
            chat, max_action_tokens=config.reply_tokens, temperature=temperature, max_parallel=batch_size
        )
    elif thinks:
        acting = thinking_executor(pathlib.Path(config.executor), temperature, config.reply_tokens, batch_size)
    elif chat:
        acting = served_executor(chat, world.grammar, temperature, batch_size, config.sees)
    elif config.executor:
        acting = published_executor(pathlib.Path(config.executor), world.grammar, temperature, config.adapters)
    facts = manifest(
        tasks=source, seeds=seeds, max_steps=max_steps, temperature=temperature,
        grammar=world.grammar, bank=len(bank) if is_bank_read(rows) else None, batch_size=batch_size,
        settings=[dataclasses.asdict(row) for row in rows],
        executor=chat.name if chat else pathlib.Path(config.executor).name, adapters=pathlib.Path(config.adapters).name,
        compiler=config.compiler_model, sees=config.sees, spread=config.spread,
        format=config.format, history=config.history, prompts=dataclasses.asdict(scheme) if scheme else {},
        fingerprint=trained.fingerprint(), config=dataclasses.asdict(trained),
    )  # fmt: skip
    folder = pathlib.Path(config.weights).absolute()
    name = (folder.parent if folder.name == "weights" else folder).name
    out = config.out or pathlib.Path("runs").absolute() / "evaluation" / name
    kept = pathlib.Path(f"{result or out / 'report'}.episodes.jsonl")
    same = (
        "commit", "tasks", "seeds", "max_steps", "temperature", "grammar", "bank", "batch_size", "settings", "executor",
        "compiler", "adapters", "sees", "spread", "format", "history", "prompts",
    )  # fmt: skip
    belongs_to = {key: facts[key] for key in (*same, "fingerprint")} | {"games": len(games), "weights": config.weights}
    if config.record:  # it holds what is finished, and gives the same answers only to who asks everything again
        kept.unlink(missing_ok=True)
    finished = Finished(kept, belongs_to, EpisodeResult)
    with open_trace(config.trace) as trace:
        scores = score(
            bundle, shown(valid, world), len(games), bank, deliveries=rows, seeds=seeds, temperature=temperature,
            batch_size=batch_size if acting else config.batch_size,
            finished=finished, executor=acting, chat=memory, scheme=scheme,
            served=served,
            registered=functools.partial(models.delivery, shown=trained.memory.shown),
            on_played=functools.partial(write_delivered, trace) if trace else None,
        )  # fmt: skip
    episodes = [
        finished.rows[name, str(seed), str(task)]
        for name in (row.name for row in rows)
        for task in range(len(games))
        for seed in seeds
    ]
    protocol = {
        "protocol": "deliveries",
        **{key: facts[key] for key in ("max_steps", "temperature", "grammar", "bank")},
    }
    facts |= {"seconds": round(time.perf_counter() - started, 1)} | usage_of(chat)
    facts |= {"memory_model": usage_of(memory)} if memory else {}
    facts |= {"compiler_model": usage_of(served.chat)} if served else {}
    facts |= episodes_data("alfworld", episodes, **protocol)
    report = write_report(out, scores, facts)
    if result:
        write_result(result, report)
    kept.unlink()
    return report


def served_executor(chat: ChatModel, grammar: str, temperature: float, max_parallel: int, sees: bool) -> Acts:
    """Return an executor that is told what ALFWorld's commands are."""
    from embodied_mem.compiler.served_executor import ServedExecutor

    told = executor_instruction(grammar)
    return ServedExecutor(chat, told, temperature=temperature, max_parallel=max_parallel, sees=sees)


def published_executor(source: pathlib.Path, grammar: str, temperature: float, adapters: str = "") -> Executor:
    """Return a published model in this process as an executor.

    It is told the same as a served one; with adapters it knows.
    """
    from embodied_mem.compiler.executor import Executor
    from embodied_mem.compiler.executor_format import ChatFormat
    from embodied_mem.models.formats.peft import load_peft
    from embodied_mem.models.lora import merge_lora
    from embodied_mem.training.models import published_decoder, published_tokenizer

    decoder, tokenizer = published_decoder(source), published_tokenizer(source)
    if adapters:
        merge_lora(load_peft(decoder, adapters))
    told = None if adapters else ChatFormat(tokenizer, executor_instruction(grammar))
    return Executor(
        decoder, tokenizer, format=told, max_action_tokens=MAX_ACTION_TOKENS, temperature=temperature,
        batch_buckets=(MAX_REQUESTS, 16, 64),
    )  # fmt: skip


def think_action(config: AlfworldConfig) -> ThinkAction:
    """Return the prompts of `--format think_action`."""
    from embodied_mem.compiler.think_action import ThinkAction

    if config.prompt_file:
        return ThinkAction.of_file(pathlib.Path(config.prompt_file), config.history)
    return ThinkAction(config.history)


def thinking_executor(source: pathlib.Path, temperature: float, reply_tokens: int, batch_size: int) -> Executor:
    """Load a published model into this process, for replies with thoughts."""
    from embodied_mem.compiler.executor import Executor
    from embodied_mem.compiler.think_action import ThinkActionFormat
    from embodied_mem.training.models import published_decoder, published_tokenizer

    tokenizer = published_tokenizer(source)
    return Executor(
        published_decoder(source), tokenizer, format=ThinkActionFormat(tokenizer, source), temperature=temperature,
        max_action_tokens=reply_tokens, batch_buckets=(batch_size,),
    )  # fmt: skip


def play_agents(config: AlfworldConfig, result: pathlib.Path | None) -> dict[str, Any]:
    """Return the report of agents that repeat tasks with their memory."""
    started = time.perf_counter()
    source, games = games_for(config)
    max_steps = config.max_steps or MAX_STEPS
    asks = next((name for name in config.agents if name in CHAT_AGENTS or (config.model and name in ASKING)), None)
    model = chat_model(config, f"--agents {asks}") if asks else None
    others = {name: other_model(config, name) for name in ("memory_model", "perceiver_model")}

    def make_envs(lives: int) -> Any:
        world = envs.make("alfworld", tasks=games, num_envs=lives, max_steps=max_steps, grammar=config.grammar)
        return DrawnEnvs(world) if config.sees else world

    def make_agent(name: str) -> Agent:
        if name in registry.names("agents"):
            return baseline_agent(name, config, model)
        settings = dataclasses.replace(ABLATIONS[CHAT_AGENTS.get(name, name)], grammar=config.grammar)
        parts: dict[str, Any] = {}
        if model is not None and name in CHAT_AGENTS:
            seats = Seats(model, name, *others.values())
            parts = chat_parts(seats, skills_of(settings), examples=examples_of(settings))
        return PlannerCriticAgent.for_world("alfworld", settings, **parts)

    rows = {row_of(name, model): name for name in config.agents}
    with open_trace(config.trace) as trace:
        played = task_sequence.play(
            [*rows], make_envs, lambda row: traced(make_agent(rows[row]), trace, row),
            num_tasks=len(games), runs=config.repeat, lives=config.lives, parallel=config.parallel,
        )  # fmt: skip
    world = envs.make("alfworld", tasks=games, num_envs=1)
    episodes = task_sequence.episodes_of(played, [world.task_id(index) for index in range(len(games))])
    settings: dict[str, Any] = {
        "seed": config.seed, "lives": config.lives, "repeat": config.repeat, "max_steps": max_steps,
        "grammar": config.grammar,
    }  # fmt: skip
    if model and THINKING & set(config.agents):
        settings |= {"prompts": dataclasses.asdict(think_action(config)), "reply_tokens": config.reply_tokens}
    report = {
        "agents": task_sequence.rows_of(played),
        "num_tasks": len(games),
        **manifest(
            tasks=source, **settings, planner=model.name if model else "rules",
            seconds=round(time.perf_counter() - started, 1),
        ),
        **usage_of(model),
        **{name: usage_of(other) for name, other in others.items() if other},
        **episodes_data("alfworld", episodes, protocol="agents", **settings),
    }  # fmt: skip
    if result:
        write_result(result, report)
    return report


def row_of(agent: str, model: ChatModel | None) -> str:
    """Name an agent's row; rules never have the original's name."""
    by_rules = agent in registry.names("agents") and not (agent in ASKING and model)
    return f"{agent} (rules)" if by_rules else agent


def baseline_agent(name: str, config: AlfworldConfig, model: ChatModel | None) -> Agent:
    """Return an agent of another paper; those of `ASKING` ask the model."""
    make: Callable[..., Agent] = registry.load("agents", name)
    if name not in ASKING or model is None:
        return make(player=ObservingExpert(config.grammar))
    more = {"scheme": think_action(config), "reply_tokens": config.reply_tokens} if name in THINKING else {}
    return make(model, put_command("THING", "PLACE", config.grammar), **more)


def games_for(config: AlfworldConfig) -> tuple[str, list[Game | pathlib.Path]]:
    """Return (source, games), shuffled so that rooms recur after a while."""
    root = data_root()
    source = config.tasks or ("valid_seen" if root is not None and (root / "valid_seen").is_dir() else "generated")
    games: list[Game | pathlib.Path]
    if source == "generated":
        games = [game.load() for game in generate(config.num_tasks or 100, seed=config.seed, split="valid")]
    else:
        games = [*find_games(source)]
    order = np.random.default_rng(config.seed).permutation(len(games))
    return source, [games[i] for i in (order[: config.num_tasks] if config.num_tasks else order)]
