"""All configuration of a training run: plain dataclasses with every default, which validate themselves.

    from experiments.configs import load
    config = load("grpo_cpu")
    config = dataclasses.replace(config, seed=1)

The defaults are the paper's (Table 7); a file in `experiments/configs/` states how a run differs from them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import math
import pathlib
from collections.abc import Callable
from typing import Any, ClassVar

from embodied_mem import registry
from embodied_mem.compiler.prompts import Shown
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.memory.pool import Reading
from embodied_mem.parallel.object_store import local_copy


def _require(condition: bool, field: str, expected: str, got: object, why: str = "") -> None:
    if not condition:
        raise InvalidInputError(f"{field}: expected {expected}, got {got!r}" + (f"; {why}" if why else ""))


_KINDS = {"int": "a whole number", "float": "a number", "str": "a text", "bool": "True or False"}


def bounded(default: Any, expected: str) -> Any:
    """Make a field with bounds: ">= N", `_BOUNDS`, or "A or B"."""
    return dataclasses.field(default=default, metadata={"expected": expected})


_BOUNDS: dict[str, Callable[[Any], bool]] = {
    "> 0": lambda value: value > 0,
    "in (0, 1)": lambda value: 0 < value < 1,
    "in (0, 1]": lambda value: 0 < value <= 1,
    "in [0, 1)": lambda value: 0 <= value < 1,
    "a share below 1": lambda value: 0 <= value < 1,
    "a probability below 1": lambda value: 0 <= value < 1,
    "a probability": lambda value: 0 <= value <= 1,
    "at least one": lambda value: len(value) > 0,
    "each a share": lambda value: all(0 <= one <= 1 for one in value),
    "each >= 0": lambda value: all(one >= 0 for one in value),
    "0 or > 0.6": lambda value: value == 0 or value > 0.6,
    "one of 0, 4, 8, 16, 32": lambda value: value in (0, 4, 8, 16, 32),
    "0 to 2^32 - 1": lambda value: 0 <= value < 2**32,
}


def _is_within(value: Any, expected: str) -> bool:
    if expected.startswith(">= "):
        return bool(value >= int(expected.split()[1]))
    if " or " in expected and expected not in _BOUNDS:
        return value in expected.replace("'", "").split(" or ")
    return _BOUNDS[expected](value)


class ConfigPart:
    """A part of the configuration, which checks its fields: the kind that each is annotated with, and its bounds."""

    _part: ClassVar[str]

    def __init_subclass__(cls, part: str) -> None:
        cls._part = part

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]  # its subclasses are dataclasses
            value, kind = getattr(self, field.name), str(field.type)
            name = f"{self._part}.{field.name}" if self._part else field.name
            if kind.startswith("tuple["):
                inner = kind.removeprefix("tuple[").partition(",")[0]
                right = isinstance(value, tuple) and all(_is(one, inner) for one in value)
                _require(right, name, f"a tuple, each of it {_KINDS[inner]}", value)
            else:
                _require(_is(value, kind), name, _KINDS.get(kind, f"a {kind}"), value)
            if bound := field.metadata.get("expected"):
                expected, _, why = bound.partition("; ")
                _require(_is_within(value, expected), name, expected, value, why)


def _is(value: object, kind: str) -> bool:
    if kind in ("int", "float"):
        finite = isinstance(value, float) and kind == "float" and math.isfinite(value)
        return finite or (isinstance(value, int) and not isinstance(value, bool))
    return any(base.__name__ == kind for base in type(value).__mro__)


EVERY_WORLD = "all"
"""Name of the mixture: the worlds of this package that have tasks to be trained on, together."""


@dataclasses.dataclass(frozen=True)
class WorldConfig(ConfigPart, part="world"):
    """Which games are played.

    Attributes:
        name: `alfworld`, or `eb_alfred`, `eb_habitat`: the training side of that world in ALFWorld's wording, which is
            `train` without the trials or layouts of `held_out`, and those; nothing of an evaluation subset. `all`: all
            of these together; `train` and `valid` are ALFWorld's then. `scienceworld`: `num_train` training variations
            evenly over the tasks, from recordings and without playing; chosen on its dev variations.
        train: a split of installed ALFWorld data, a folder of game files, or `generated`.
        valid: likewise; `generated` gives other trials of the same scenes, like ALFWorld's valid_seen. `dev` is every
            tenth room of ALFWorld's train split, which is not trained on then.
        num_train: number of training games, of each world; 0 takes all of a split. Needed for `generated`.
        num_valid: number of validation games, likewise.
        num_scenes: scenes of the generator.
        habit: share of a generated scene's objects that are in their usual places; 0.3 is as concentrated as ALFRED's.
        own_habits: each kind of thing has one usual place per scene, which household statistics do not tell.
        procedures: instructions name one of so many procedures of their home, which only its experiences explain; 0:
            they say what to do.
        changes: shares of the kinds of things that moved to another usual place, one per change of every home. Memory
            holds 25 games of a home from before each change, and games are played after the last. With `own_habits`.
        homes: generated validation games are of so many scenes that no training game is of, and memory holds 25 other
            games of each; 0: of the training scenes.
        max_steps: episode limit while training and evaluating.
        grammar: ALFWorld wording, `0.4` (`move X to Y`) or `0.3` (`put X in/on Y`).
        drawn: observations come with a small picture that is drawn from their text (`envs.drawn_env`).
    """

    name: str = "alfworld"
    train: str = "generated"
    valid: str = "generated"
    num_train: int = bounded(0, ">= 0")
    num_valid: int = bounded(0, ">= 0")
    num_scenes: int = bounded(40, ">= 1")
    habit: float = 0.3
    own_habits: bool = False
    procedures: int = bounded(0, ">= 0")
    changes: tuple[float, ...] = bounded((), "each a share")
    homes: int = bounded(0, ">= 0")
    max_steps: int = bounded(50, ">= 1")
    grammar: str = bounded("0.4", "'0.3' or '0.4'")
    drawn: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        known = (*sorted({*registry.names(), *registry.names("tasks")}), EVERY_WORLD)
        _require(self.name in known, "world.name", f"one of {', '.join(known)}", self.name)
        if self.name == EVERY_WORLD:
            _require(self.grammar == "0.4", "world.grammar", f"0.4 with {self.name}", self.grammar)
        elif self.name != "alfworld":
            given = (self.train, self.valid, self.grammar)
            _require(given == ("train", "held_out", "0.4"), "world", f"train, held_out, 0.4 with {self.name}", given)
        if self.procedures or self.changes:
            given = (self.name, self.train, self.valid)
            wanted = ("alfworld", "generated", "generated")
            _require(given == wanted, "world", f"{', '.join(wanted)} with procedures or changes", given)
            _require(not (self.procedures and self.changes), "world.changes", "none with procedures", self.changes)
            _require(self.own_habits or not self.changes, "world.own_habits", "True with changes", self.own_habits)
        for field in ("train", "valid"):
            if getattr(self, field) == "generated":
                count = getattr(self, f"num_{field}")
                _require(count >= 1, f"world.num_{field}", ">= 1 for generated games", count)


@dataclasses.dataclass(frozen=True)
class MemoryConfig(ConfigPart, part="memory"):
    """The retrieval, once per episode and for every delivery alike.

    Attributes:
        top_k: experiences retrieved from the bank (the pool M of eq. 1).
        num_soft: soft tokens N per step, one of 0, 4, 8, 16, 32 (Table 4).
        projection: `gaussian` (eq. 5) or `linear` (Table 4's ablation).
        full_turns: latest turns that the executor sees with their answers.
        marks: the executor also sees, of every kind of place, one that nobody has looked into, as the compiler does.
        compiler_marks: the compiler sees that, and which memories are used up; False is an ablation.
        numbered: experiences have numbers, and guidance that comes from one says its number as reason.
        newest_first: experiences stand in order of their age, the newest first, so that recency can be judged.
        hint_budgets: tokens of guidance that the executor is trained on, one drawn per sample; empty gives all of it.
        soft_reference: target of soft tokens: `hint`, places of the subgoals that are left, or `rest`, the lines of
            memory that do not name the first of these.
        max_sigma: largest sigma of a soft token over the spread of the executor's embeddings; 0 clips at sigma = 1.
        kinds: records of a lifelong memory that are read, see `memory.pool.KINDS`.
        form: of its trajectories, see `memory.pool.FORMS`.
        budget_tokens: of its records' texts; 0 for no limit.
        with_ages: lines of its trajectories say how many tasks ago they were.
        with_verified: those of told things say when they were last verified.
        by_age: its records stand newest first, regularities last.
        focused: only its records that name what is to be done.
    """

    top_k: int = bounded(6, ">= 1")
    num_soft: int = bounded(16, "one of 0, 4, 8, 16, 32")
    projection: str = bounded("gaussian", "gaussian or linear")
    full_turns: int = bounded(2, ">= 0")
    marks: bool = False
    compiler_marks: bool = True
    numbered: bool = False
    newest_first: bool = False
    hint_budgets: tuple[int, ...] = bounded((), "each >= 0")
    soft_reference: str = bounded("hint", "hint or rest")
    max_sigma: float = bounded(0.0, "0 or > 0.6")
    kinds: tuple[str, ...] = ("experience",)
    form: str = bounded("brief", "brief or rationale or trajectory")
    budget_tokens: int = bounded(0, ">= 0 (0: no limit)")
    with_ages: bool = False
    with_verified: bool = False
    focused: bool = False
    by_age: bool = False

    @property
    def reading(self) -> Reading:
        """The `Reading` of a lifelong memory."""
        own = self.top_k, self.budget_tokens or None, self.form, self.kinds, self.numbered, self.newest_first
        return Reading(*own, self.with_ages, self.focused, self.with_verified, self.by_age)

    @property
    def shown(self) -> Shown:
        """The parts of an episode that the executor's prompt shows."""
        return Shown(self.full_turns, self.marks)


@dataclasses.dataclass(frozen=True)
class ModelConfig(ConfigPart, part="model"):
    """The two models.

    Attributes:
        compiler: decoder preset of the compiler.
        executor: decoder preset of the frozen executor.
        vocab_size: entries of the byte-level BPE that is trained on the train games (`tiny` and `small` only).
        lora: train rank-16 adapters on q and v (pretrained compilers) rather than all parameters (from scratch).
        executor_lora: train such adapters in so many of a published executor's last layers, and nothing else of it;
            what enters these is computed once for a batch that comes again. 0 trains all parameters.
        weights: folder with Hugging Face weights `compiler/` and `executor/`; empty trains from scratch.
        max_compiler_tokens: longest compiler output, incl. end.
        max_action_tokens: longest command.
        images: pictures that the compiler reads at a step: of the newest observation, and of the best experiences as
            far as there is room; the executor reads of the former alone. For models with a vision tower; 0 leaves the
            tower away.
        vision_lora: train adapters in the compiler's vision tower, too; with `lora` and `images`.
        image_side: pixels to which height and width of each are scaled; a square of 28 pixels is one token.
    """

    compiler: str = "tiny"
    executor: str = "tiny"
    vocab_size: int = bounded(1024, ">= 261")
    lora: bool = False
    executor_lora: int = bounded(0, ">= 0 (0: all parameters)")
    weights: str = ""
    max_compiler_tokens: int = bounded(512, ">= 1")
    max_action_tokens: int = bounded(64, ">= 1")
    images: int = bounded(0, ">= 0")
    image_side: int = bounded(224, ">= 1")
    vision_lora: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.lora, self.images
        _require(not self.vision_lora or all(given), "model.vision_lora", "lora and images beside it", given)
        _require(not (self.executor_lora and self.images), "model.executor_lora", "0 with images", self.executor_lora)


@dataclasses.dataclass(frozen=True)
class DataConfig(ConfigPart, part="data"):
    """Teacher episodes.

    Attributes:
        passes: times that every training game is played by the teacher, with other detours each time.
        detour: probability that a random admissible command replaces the teacher's.
        imagined: probability that a step of a search gives a second sample, whose answer has other contents.
        new_names: share of the teacher's episodes whose samples have a made-up name for a kind of place, so that names
            are copied.
        no_brief: share of compiler samples whose Brief State is replaced by the action history, so that the
            ablation `compiled_no_brief` reads a format that it was trained on.
        banks: settings of the bank (`memory.bank.settings`), one drawn per episode, so that the models meet memory that
            does not help. Where there are any, the executor without memory learns from a teacher without memory.
        memory_weight: times that the compiler sees a sample with new guidance out of memory in an epoch; others once.
        methods: memory methods whose recalled text half of the executor's rows with experiences have in their place.
        teacher: `rules`, or the name of the chat model that teaches (`train.py --teacher chat`).
        executor: the chat model that acts on the teacher's guidance and wins the games that are learned from
            (`train.py --teacher_executor`); empty: the teacher acts itself.
        without_memory: the executor learns no prompt with memory or guidance, for a baseline of its own.
        commands: the compiler learns to say the next command (`teachers.lesson`), carried out by rule as it learns.
    """

    passes: int = bounded(1, ">= 1")
    detour: float = bounded(0.1, "a probability below 1")
    imagined: float = bounded(0.0, "a probability")
    new_names: float = bounded(0.0, "a probability")
    no_brief: float = bounded(0.15, "a probability")
    banks: tuple[str, ...] = ()
    memory_weight: int = bounded(1, ">= 1")
    methods: tuple[str, ...] = ()
    teacher: str = "rules"
    executor: str = ""
    without_memory: bool = False
    commands: bool = False


@dataclasses.dataclass(frozen=True)
class SFTConfig(ConfigPart, part="sft"):
    """Supervised training: eqs. 6, 7, 9 for the compiler; the action loss alone for the executor.

    Attributes:
        steps: optimizer steps.
        epochs: passes over the samples in place of `steps`, for `compiler_sft` alone; 0: `steps` count.
        batch_size: samples per step over all devices.
        microbatch: of these, those worked on at a time, for `compiler_sft` alone; gradients add up. 0: all.
        learning_rate: peak; cosine to a tenth with `warmup` share of linear warm-up.
        label_smoothing: mass spread evenly over the vocabulary.
        action, entropy, latent, orthogonality: weights of eq. 9.
        action_share: share of a batch's rows that the frozen executor reads for the action term, those with guidance
            first; it costs about as much as the compiler itself.
        optimizer: `adamw` (the paper's), or `muon`, which learns from fewer steps from scratch.
        prompt_weight: weight of the prompt's own tokens in the executor's loss; for executors from scratch only.
        num_batches: so many batches, which come again and again, are all that an executor with adapters learns from; 0:
            as many as there are samples for.
    """

    steps: int = bounded(1000, ">= 0")
    epochs: float = bounded(0.0, ">= 0 (0: `steps`)")
    batch_size: int = bounded(2, ">= 1")
    microbatch: int = bounded(0, ">= 0 (0: all)")
    learning_rate: float = bounded(1e-5, "> 0")
    warmup: float = bounded(0.05, "a share below 1")
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    label_smoothing: float = bounded(0.1, "in [0, 1)")
    action: float = 1.0
    entropy: float = 0.1
    latent: float = 1.0
    orthogonality: float = 0.1
    prompt_weight: float = 0.0
    action_share: float = bounded(1.0, "in (0, 1]")
    optimizer: str = bounded("adamw", "adamw or muon")
    num_batches: int = bounded(0, ">= 0 (0: all)")
    checkpoint_every: int = bounded(200, ">= 1")

    def of(self, num_samples: int) -> SFTConfig:
        """Returns the same with the steps of its epochs."""
        steps = math.ceil(self.epochs * max(1, num_samples // self.batch_size))
        return dataclasses.replace(self, steps=steps or self.steps, epochs=0.0)


@dataclasses.dataclass(frozen=True)
class CorrectionConfig(ConfigPart, part="correction"):
    """SFT on a model's own episodes as labelled by the teacher, after SFT on the teacher's episodes.

    Attributes:
        num_games: training games that the model plays in a round; 0 leaves the stage out.
        rounds: times that it plays, each time after having been trained on what it played before.
        max_steps: episode limit.
        sft: how the model is trained in a round, half on its own samples of all rounds so far.
    """

    num_games: int = bounded(0, ">= 0 (0: no such stage)")
    rounds: int = bounded(1, ">= 1")
    max_steps: int = bounded(20, ">= 1")
    sft: SFTConfig = SFTConfig(steps=0)


@dataclasses.dataclass(frozen=True)
class GRPOConfig(ConfigPart, part="grpo"):
    """Group relative policy optimisation of the compiler (eq. 8, Table 7).

    Attributes:
        steps: updates, one per batch of episodes.
        num_tasks: tasks per update (N); each is played `group_size` times from one snapshot.
        group_size: trajectories per task (K).
        max_steps: episode limit during rollouts.
        rollout_rows: episodes side by side; the next takes the place of one that is over. 0: all of an update.
        microbatch: step samples per forward-backward pass; gradients are accumulated.
        minibatches: optimizer steps per batch of episodes; with more than one, later ones are off-policy and clipped.
        density: how the log-densities of a soft token's D numbers count, see `grpo.make_grpo_gradient`: their `sum` is
            the policy gradient to the letter, their `mean` is D times less, `root` sqrt(D) times less.
        old_log_probs: of whom, `sampler` or `trainer`. The trainer's make the first ratio 1 where the two round
            differently (bfloat16); they cost a forward pass.
        max_importance: with the trainer's, each token weighs min(trainer's / sampler's probability, this); 0: 1.
        rewards: `own`, or `shuffled` among all episodes of a batch, a control without signal.
        server: URL of vLLM's server of the compiler's base (`http://.../v1`), which samples its text with the present
            adapters; empty: it is sampled here. For adapters without images, with the trainer's log-probs.
        executor_server: likewise of the frozen executor, which it knows as `executor`; soft tokens go as embeddings.
    """

    steps: int = bounded(500, ">= 0")
    num_tasks: int = bounded(4, ">= 1")
    group_size: int = bounded(4, ">= 2; a group of one has no baseline")
    max_steps: int = bounded(15, ">= 1")
    rollout_rows: int = bounded(0, ">= 0 (0: all)")
    learning_rate: float = bounded(1e-6, "> 0")
    min_learning_rate: float = 1e-7
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    clip_low: float = bounded(0.2, "in (0, 1)")
    clip_high: float = bounded(0.28, "> 0")
    temperature: float = bounded(1.2, "> 0")
    top_k: int = bounded(50, ">= 0 (0: all)")
    top_p: float = bounded(1.0, "in (0, 1]")
    microbatch: int = bounded(16, ">= 1")
    minibatches: int = bounded(1, ">= 1")
    checkpoint_every: int = bounded(5, ">= 1")
    density: str = bounded("mean", "mean or root or sum")
    old_log_probs: str = bounded("sampler", "sampler or trainer")
    max_importance: float = bounded(0.0, ">= 0")
    rewards: str = bounded("own", "own or shuffled")
    server: str = ""
    executor_server: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        own = self.old_log_probs
        _require(not self.server or own == "trainer", "grpo.old_log_probs", "trainer with a server", own)

    @property
    def num_rows(self) -> int:
        """Episodes that are played side by side."""
        return self.rollout_rows or self.num_tasks * self.group_size


@dataclasses.dataclass(frozen=True)
class EvalConfig(ConfigPart, part="evaluation"):
    """The closing table.

    Attributes:
        deliveries: what is compared, on the same tasks, seeds, bank and executor.
        tasks: the test split of installed ALFWorld data that the table is of, scored once, when all is trained; what is
            reported before is of `world.valid`. Empty: the table is of `world.valid`, too.
        num_tasks: tasks of the table; 0 takes all.
        seeds: each task is played once per seed.
        temperature: of compiler and executor; 0 is greedy.
        batch_size: episodes that run in lockstep.
    """

    deliveries: tuple[str, ...] = bounded(
        ("none", "static", "compiled", "compiled_text", "compiled_no_brief"), "at least one"
    )
    tasks: str = ""
    num_tasks: int = bounded(0, ">= 0 (0: all)")
    seeds: tuple[int, ...] = bounded((0, 1, 2), "at least one")
    temperature: float = bounded(0.0, ">= 0 (0: `steps`)")
    batch_size: int = bounded(64, ">= 1")


@dataclasses.dataclass(frozen=True)
class MeshConfig(ConfigPart, part="mesh"):
    """Where and how the computation is done; the result does not depend on it, but for rounding.

    Attributes:
        data, fsdp, tensor: devices of all processes along the mesh axes; -1 takes what is left. `data` and `fsdp` split
            every batch; one that they do not divide is filled with rows that carry no loss.
        remat: keep one array per layer for the backward pass and compute the rest again.
        logits_chunk: positions whose logits exist at a time; 0 for all.
        sampling_tensor: devices that hold one copy of a model's weights together while it samples. Before episodes are
            played the weights are moved once; 0 samples from where the training has them, which with `fsdp` above 1
            gathers them for every token.
    """

    data: int = -1
    fsdp: int = 1
    tensor: int = 1
    remat: bool = False
    logits_chunk: int = bounded(0, ">= 0 (0: all)")
    sampling_tensor: int = bounded(0, ">= 0 (0: as in training)")


ONE_DEVICE = MeshConfig()

_NEWER = (
    ("world", "own_habits", False), ("world", "homes", 0), ("world", "procedures", 0), ("world", "changes", ()),
    ("memory", "marks", False), ("memory", "compiler_marks", True), ("memory", "numbered", False),
    ("memory", "newest_first", False), ("memory", "hint_budgets", ()), ("memory", "max_sigma", 0.0),
    ("memory", "kinds", ("experience",)), ("memory", "form", "brief"), ("memory", "budget_tokens", 0),
    ("memory", "with_ages", False), ("memory", "with_verified", False), ("memory", "focused", False),
    ("memory", "soft_reference", "hint"), ("memory", "by_age", False),
    ("data", "banks", ()), ("data", "teacher", "rules"), ("data", "methods", ()), ("data", "without_memory", False),
    ("grpo", "density", "mean"), ("grpo", "rewards", "own"), ("model", "images", 0), ("model", "image_side", 224),
    ("model", "vision_lora", False), ("model", "executor_lora", 0), ("world", "drawn", False),
    ("data", "commands", False), ("data", "executor", ""), ("data", "memory_weight", 1), ("data", "new_names", 0.0),
    ("grpo", "old_log_probs", "sampler"), ("grpo", "max_importance", 0.0), ("grpo", "rollout_rows", 0),
    ("grpo", "server", ""), ("grpo", "executor_server", ""),
)  # fmt: skip
"""(part, field, default) of fields that older runs do not have: at their defaults they are in no fingerprint."""

_CORRECTIONS = ("executor_correction", "correction")

STAGES = ("executor", "executor_correction", "compiler", "correction", "grpo")
"""The stages that train, in order."""


@dataclasses.dataclass(frozen=True)
class Config(ConfigPart, part=""):
    """A whole run: games, teacher data, executor, compiler, GRPO, table."""

    world: WorldConfig
    memory: MemoryConfig = MemoryConfig()
    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    executor_sft: SFTConfig = SFTConfig()
    executor_correction: CorrectionConfig = CorrectionConfig()
    compiler_sft: SFTConfig = SFTConfig()
    correction: CorrectionConfig = CorrectionConfig()
    grpo: GRPOConfig = GRPOConfig()
    evaluation: EvalConfig = EvalConfig()
    mesh: MeshConfig = MeshConfig()
    seed: int = bounded(0, "0 to 2^32 - 1")

    def __post_init__(self) -> None:
        super().__post_init__()
        drawn, games = self.grpo.num_tasks, self.world.num_train
        _require(games == 0 or drawn <= games, "grpo.num_tasks", f"<= world.num_train={games}", drawn)
        others = self.executor_sft, self.executor_correction.sft, self.correction.sft
        for field in ("epochs", "microbatch"):
            found = [getattr(sft, field) for sft in others]
            _require(not any(found), f"sft.{field}", "0 but for compiler_sft", found)
        if self.grpo.server or self.grpo.executor_server:
            own = self.model.lora or not self.grpo.server, self.model.images
            _require(own == (True, 0), "grpo.server", "model.lora, and model.images=0", own)
        if tasks := self.evaluation.tasks:
            apart = self.world.name == "alfworld" and tasks not in ("generated", self.world.train, self.world.valid)
            _require(apart, "evaluation.tasks", "a split of alfworld that is not world.train or world.valid", tasks)

    def to_json(self) -> str:
        """Return the resolved configuration as indented JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    def fingerprint(self, stage: str = "grpo") -> str:
        """Return twelve hex digits of all that a stage's result depends on.

        Stages are `STAGES`, each on top of the one before. How the result is scored and on which
        devices it is computed do not matter.
        """
        return hashlib.sha256(json.dumps(self.parts(stage)).encode()).hexdigest()[:12]

    def parts(self, stage: str = "grpo") -> dict[str, object]:
        """Return a stage's dependencies as JSON values; `data` is the first stage."""
        names = ["world", "memory", "model", "data", "seed", "executor_sft", "executor_correction", "compiler_sft"]
        used = [*names, "correction", "grpo"][: 5 + ("data", *STAGES).index(stage)]
        values = dataclasses.asdict(self)
        if self.world.name == "alfworld":
            del values["world"]["name"]  # what was made before there was another world stays good
        for field in ("server", "executor_server"):  # wherever it is
            values["grpo"][field] = values["grpo"][field] and "served"
        for part, field, default in _NEWER:
            if values[part][field] == default:
                del values[part][field]
        if stage in ("data", *STAGES[:2]) and self.model.compiler in FROM_SCRATCH:
            del values["model"]["compiler"]  # no executor depends on it
        for sft in (values["executor_sft"], values["compiler_sft"], *(values[k]["sft"] for k in _CORRECTIONS)):
            for field in ("num_batches", "epochs", "microbatch"):
                if not sft[field]:
                    del sft[field]
        return {name: values[name] for name in used}


FROM_SCRATCH = ("micro", "mini", "tiny", "small")
"""Presets without published weights."""

ROLES = ("compiler", "executor")


def is_published(config: Config, role: str) -> bool:
    """Decide whether a role starts from published weights.

    Raises:
        InvalidInputError: `model.weights` is given and neither role has a published preset.
    """
    if not config.model.weights:
        return False
    published = [one for one in ROLES if getattr(config.model, one) not in FROM_SCRATCH]
    if not published:
        raise InvalidInputError(
            f"model.weights: expected nothing where both models start from scratch ({config.model.compiler}, "
            f"{config.model.executor}), got {config.model.weights!r}; name the published preset, e.g. "
            "--model.compiler qwen2.5-7b"
        )
    return role in published


def weights_of(config: Config, role: str) -> pathlib.Path | None:
    """Find a role's folder or GGUF file; None from scratch.

    Raises:
        DataNotFoundError: there is none; the places that were looked at are named.
    """
    if not is_published(config, role):
        return None
    given = local_copy(config.model.weights)
    looked = [given / role, given / f"{role}.gguf"]
    if given.suffix == ".gguf":
        looked = [given]
    elif config.model.weights.replace("-", "_").isidentifier():
        package = importlib.util.find_spec(config.model.weights.replace("-", "_"))
        if package is not None and package.origin:  # not imported: only its file is wanted
            looked += sorted(pathlib.Path(package.origin).parent.glob("*.gguf"))
    found = next((path for path in looked if path.exists()), None)
    if found is None:
        raise DataNotFoundError(
            f"model.weights: expected weights of the {role} at one of {', '.join(map(str, looked))}, or an installed "
            f"package {config.model.weights!r} with a GGUF file in it; found none"
        )
    return found


def masters_of(config: Config, role: str) -> dict[str, str]:
    """Return the overrides of a wholly trained decoder: float32, for small steps."""
    whole = not config.model.lora if role == "compiler" else is_taught(config) and not config.model.executor_lora
    return {"param_dtype": "float32"} if whole or not is_published(config, role) else {}


def is_taught(config: Config) -> bool:
    """Decide whether the executor learns the world's commands in training."""
    return bool(config.executor_sft.steps or config.executor_correction.num_games)


def is_frozen(config: Config, role: str) -> bool:
    """Decide whether a role's published weights stay frozen, beside adapters."""
    return not masters_of(config, role)
