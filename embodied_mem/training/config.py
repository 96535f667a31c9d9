"""All configuration of a training run: plain dataclasses with every default, which validate themselves.

    from experiments.configs import load
    config = load("grpo_cpu")
    config = dataclasses.replace(config, seed=1)

The defaults are the paper's (Table 7); a file in `experiments/configs/` states how a run differs from them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json

from embodied_mem.errors import InvalidInputError


def _require(condition: bool, field: str, expected: str, got: object, why: str = "") -> None:
    if not condition:
        raise InvalidInputError(f"{field}: expected {expected}, got {got!r}" + (f"; {why}" if why else ""))


EVERY_WORLD = "all"
WORLDS = ("alfworld", "eb_alfred", "eb_habitat", "scienceworld", EVERY_WORLD)
"""Where games can come from, see `training.worlds`."""


@dataclasses.dataclass(frozen=True)
class WorldConfig:
    """Which games are played.

    Attributes:
        name: `alfworld`, or `eb_alfred`, `eb_habitat`: the training side of that world in ALFWorld's words, which is
            `train` without the trials or layouts of `held_out`, and those; nothing of an evaluation subset. `all`: all
            of these together; `train` and `valid` are ALFWorld's then. `scienceworld`: `num_train` training variations
            evenly over the tasks, from recordings and without playing; chosen on its dev variations.
        train: a split of installed ALFWorld data, a folder of game files, or `generated`.
        valid: likewise; `generated` gives other trials of the same scenes, like ALFWorld's valid_seen.
        num_train: number of training games, of each world; 0 takes all of a split. Needed for `generated`.
        num_valid: number of validation games, likewise.
        num_scenes: scenes of the generator.
        habit: share of a generated scene's objects that are in their usual places; 0.3 is as concentrated as ALFRED's.
        max_steps: episode limit while training and evaluating.
        grammar: ALFWorld wording, `0.4` (`move X to Y`) or `0.3` (`put X in/on Y`).
    """

    name: str = "alfworld"
    train: str = "generated"
    valid: str = "generated"
    num_train: int = 0
    num_valid: int = 0
    num_scenes: int = 40
    habit: float = 0.3
    max_steps: int = 50
    grammar: str = "0.4"

    def __post_init__(self) -> None:
        _require(self.name in WORLDS, "world.name", f"one of {', '.join(WORLDS)}", self.name)
        if self.name == EVERY_WORLD:
            _require(self.grammar == "0.4", "world.grammar", f"0.4 with {self.name}", self.grammar)
        elif self.name != "alfworld":
            given = (self.train, self.valid, self.grammar)
            _require(given == ("train", "held_out", "0.4"), "world", f"train, held_out, 0.4 with {self.name}", given)
        _require(self.max_steps >= 1, "world.max_steps", ">= 1", self.max_steps)
        _require(self.num_scenes >= 1, "world.num_scenes", ">= 1", self.num_scenes)
        _require(self.grammar in ("0.3", "0.4"), "world.grammar", "'0.3' or '0.4'", self.grammar)
        for field in ("train", "valid"):
            if getattr(self, field) == "generated":
                count = getattr(self, f"num_{field}")
                _require(count >= 1, f"world.num_{field}", ">= 1 for generated games", count)
            _require(getattr(self, f"num_{field}") >= 0, f"world.num_{field}", ">= 0", getattr(self, f"num_{field}"))


@dataclasses.dataclass(frozen=True)
class MemoryConfig:
    """What is retrieved, once per episode and for every delivery alike.

    Attributes:
        top_k: experiences retrieved from the bank (the pool M of eq. 1).
        num_soft: soft tokens N per step, one of 0, 4, 8, 16, 32 (Table 4).
        projection: `gaussian` (eq. 5) or `linear` (Table 4's ablation).
        full_turns: latest turns that the executor sees with their answers.
    """

    top_k: int = 6
    num_soft: int = 16
    projection: str = "gaussian"
    full_turns: int = 2

    def __post_init__(self) -> None:
        _require(self.top_k >= 1, "memory.top_k", ">= 1", self.top_k)
        _require(self.num_soft in (0, 4, 8, 16, 32), "memory.num_soft", "one of 0, 4, 8, 16, 32", self.num_soft)
        _require(self.projection in ("gaussian", "linear"), "memory.projection", "gaussian or linear", self.projection)
        _require(self.full_turns >= 0, "memory.full_turns", ">= 0", self.full_turns)


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The two models.

    Attributes:
        compiler: decoder preset of the compiler.
        executor: decoder preset of the frozen executor.
        vocab_size: entries of the byte-level BPE that is trained on the train games (`tiny` and `small` only).
        lora: train rank-16 adapters on q and v (pretrained compilers) rather than all parameters (from scratch).
        weights: folder with Hugging Face weights `compiler/` and `executor/`; empty trains from scratch.
        max_compiler_tokens: longest compiler output, incl. end.
        max_action_tokens: longest command.
    """

    compiler: str = "tiny"
    executor: str = "tiny"
    vocab_size: int = 1024
    lora: bool = False
    weights: str = ""
    max_compiler_tokens: int = 512
    max_action_tokens: int = 64

    def __post_init__(self) -> None:
        for field, least in (("vocab_size", 261), ("max_compiler_tokens", 1), ("max_action_tokens", 1)):
            _require(getattr(self, field) >= least, f"model.{field}", f">= {least}", getattr(self, field))


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Teacher episodes.

    Attributes:
        passes: times that every training game is played by the teacher, with other detours each time.
        detour: probability that a random admissible command replaces the teacher's.
        imagined: probability that a step of a search gives a second sample, whose answer has other contents.
        no_brief: share of compiler samples whose Brief State is replaced by the action history, so that the
            ablation `compiled_no_brief` reads a format that it was trained on.
    """

    passes: int = 1
    detour: float = 0.1
    imagined: float = 0.0
    no_brief: float = 0.15

    def __post_init__(self) -> None:
        _require(self.passes >= 1, "data.passes", ">= 1", self.passes)
        _require(0 <= self.detour < 1, "data.detour", "a probability below 1", self.detour)
        _require(0 <= self.imagined <= 1, "data.imagined", "a probability", self.imagined)
        _require(0 <= self.no_brief <= 1, "data.no_brief", "a probability", self.no_brief)


@dataclasses.dataclass(frozen=True)
class SFTConfig:
    """Supervised training: eqs. 6, 7, 9 for the compiler; the action loss alone for the executor.

    Attributes:
        steps: optimizer steps; the paper's 5 epochs are given in steps here, so that a budget is visible.
        batch_size: samples per step over all devices.
        learning_rate: peak; cosine to a tenth with `warmup` share of linear warm-up.
        label_smoothing: mass spread evenly over the vocabulary.
        action, entropy, latent, orthogonality: weights of eq. 9.
        action_share: share of a batch's rows that the frozen executor reads for the action term, those with guidance
            first; it costs about as much as the compiler itself.
        optimizer: `adamw` (the paper's), or `muon`, which learns from fewer steps from scratch.
        prompt_weight: weight of the prompt's own tokens in the executor's loss; for executors from scratch only.
    """

    steps: int = 1000
    batch_size: int = 2
    learning_rate: float = 1e-5
    warmup: float = 0.05
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    label_smoothing: float = 0.1
    action: float = 1.0
    entropy: float = 0.1
    latent: float = 1.0
    orthogonality: float = 0.1
    prompt_weight: float = 0.0
    action_share: float = 1.0
    optimizer: str = "adamw"
    checkpoint_every: int = 200

    def __post_init__(self) -> None:
        _require(self.steps >= 0, "sft.steps", ">= 0", self.steps)
        _require(self.batch_size >= 1, "sft.batch_size", ">= 1", self.batch_size)
        _require(0 <= self.label_smoothing < 1, "sft.label_smoothing", "in [0, 1)", self.label_smoothing)
        _require(self.learning_rate > 0, "sft.learning_rate", "> 0", self.learning_rate)
        _require(0 <= self.warmup < 1, "sft.warmup", "a share below 1", self.warmup)
        _require(0 < self.action_share <= 1, "sft.action_share", "in (0, 1]", self.action_share)
        _require(self.optimizer in ("adamw", "muon"), "sft.optimizer", "adamw or muon", self.optimizer)
        _require(self.checkpoint_every >= 1, "sft.checkpoint_every", ">= 1", self.checkpoint_every)


@dataclasses.dataclass(frozen=True)
class CorrectionConfig:
    """SFT on a model's own episodes as labelled by the teacher, after SFT on the teacher's episodes.

    Attributes:
        num_games: training games that the model plays in a round; 0 leaves the stage out.
        rounds: times that it plays, each time after having been trained on what it played before.
        max_steps: episode limit.
        sft: how the model is trained in a round, half on its own samples of all rounds so far.
    """

    num_games: int = 0
    rounds: int = 1
    max_steps: int = 20
    sft: SFTConfig = SFTConfig(steps=0)

    def __post_init__(self) -> None:
        _require(self.num_games >= 0, "correction.num_games", ">= 0 (0: no such stage)", self.num_games)
        _require(self.rounds >= 1, "correction.rounds", ">= 1", self.rounds)
        _require(self.max_steps >= 1, "correction.max_steps", ">= 1", self.max_steps)


@dataclasses.dataclass(frozen=True)
class GRPOConfig:
    """Group relative policy optimisation of the compiler (eq. 8, Table 7).

    Attributes:
        steps: updates, one per batch of episodes.
        num_tasks: tasks per update (N); each is played `group_size` times from one snapshot.
        group_size: trajectories per task (K).
        max_steps: episode limit during rollouts.
        microbatch: step samples per forward-backward pass; gradients are accumulated.
        minibatches: optimizer steps per batch of episodes; with more than one, later ones are off-policy and clipped.
    """

    steps: int = 500
    num_tasks: int = 4
    group_size: int = 4
    max_steps: int = 15
    learning_rate: float = 1e-6
    min_learning_rate: float = 1e-7
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    clip_low: float = 0.2
    clip_high: float = 0.28
    temperature: float = 1.2
    top_k: int = 50
    top_p: float = 1.0
    microbatch: int = 16
    minibatches: int = 1
    checkpoint_every: int = 5

    def __post_init__(self) -> None:
        _require(self.group_size >= 2, "grpo.group_size", ">= 2", self.group_size, "a group of one has no baseline")
        _require(self.num_tasks >= 1, "grpo.num_tasks", ">= 1", self.num_tasks)
        _require(self.temperature > 0, "grpo.temperature", "> 0", self.temperature)
        _require(self.steps >= 0, "grpo.steps", ">= 0", self.steps)
        for field in ("max_steps", "microbatch", "minibatches", "checkpoint_every"):
            _require(getattr(self, field) >= 1, f"grpo.{field}", ">= 1", getattr(self, field))
        _require(self.learning_rate > 0, "grpo.learning_rate", "> 0", self.learning_rate)
        _require(0 < self.clip_low < 1, "grpo.clip_low", "in (0, 1)", self.clip_low)
        _require(self.clip_high > 0, "grpo.clip_high", "> 0", self.clip_high)
        _require(self.top_k >= 0, "grpo.top_k", ">= 0 (0: all)", self.top_k)
        _require(0 < self.top_p <= 1, "grpo.top_p", "in (0, 1]", self.top_p)


@dataclasses.dataclass(frozen=True)
class EvalConfig:
    """The closing table.

    Attributes:
        deliveries: what is compared, on the same tasks, seeds, bank and executor.
        num_tasks: validation tasks; 0 takes all.
        seeds: each task is played once per seed.
        temperature: of compiler and executor; 0 is greedy.
        batch_size: episodes that run in lockstep.
    """

    deliveries: tuple[str, ...] = ("none", "static", "compiled", "compiled_text", "compiled_no_brief")
    num_tasks: int = 0
    seeds: tuple[int, ...] = (0, 1, 2)
    temperature: float = 0.0
    batch_size: int = 64

    def __post_init__(self) -> None:
        _require(len(self.deliveries) > 0, "evaluation.deliveries", "at least one", self.deliveries)
        _require(len(self.seeds) > 0, "evaluation.seeds", "at least one", self.seeds)
        _require(self.num_tasks >= 0, "evaluation.num_tasks", ">= 0 (0: all)", self.num_tasks)
        _require(self.temperature >= 0, "evaluation.temperature", ">= 0", self.temperature)
        _require(self.batch_size >= 1, "evaluation.batch_size", ">= 1", self.batch_size)


@dataclasses.dataclass(frozen=True)
class MeshConfig:
    """Where and how the computation is done; the result does not depend on it, but for rounding.

    Attributes:
        data, fsdp, tensor: devices of all processes along the mesh axes; -1 takes what is left. `data` and `fsdp` split
            every batch; one that they do not divide is filled with rows that carry no loss.
        remat: keep one array per layer for the backward pass and compute the rest again.
        logits_chunk: positions whose logits exist at a time; 0 for all.
    """

    data: int = -1
    fsdp: int = 1
    tensor: int = 1
    remat: bool = False
    logits_chunk: int = 0


ONE_DEVICE = MeshConfig()

STAGES = ("executor", "executor_correction", "compiler", "correction", "grpo")
"""The stages that train, in order."""


@dataclasses.dataclass(frozen=True)
class Config:
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
    seed: int = 0

    def __post_init__(self) -> None:
        drawn, games = self.grpo.num_tasks, self.world.num_train
        _require(games == 0 or drawn <= games, "grpo.num_tasks", f"<= world.num_train={games}", drawn)

    def to_json(self) -> str:
        """The resolved configuration as indented JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    def fingerprint(self, stage: str = "grpo") -> str:
        """Twelve hex digits that change with whatever the result of a stage depends on; it only resumes under its own.

        Stages are `STAGES`, each on top of the one before. How the result is scored and on which
        devices it is computed do not matter.
        """
        return hashlib.sha256(json.dumps(self.parts(stage)).encode()).hexdigest()[:12]

    def parts(self, stage: str = "grpo") -> dict[str, object]:
        """What the result of a stage depends on, as JSON values; the stage `data` is what comes before training."""
        names = ["world", "memory", "model", "data", "seed", "executor_sft", "executor_correction", "compiler_sft"]
        used = [*names, "correction", "grpo"][: 5 + ("data", *STAGES).index(stage)]
        values = dataclasses.asdict(self)
        if self.world.name == "alfworld":
            del values["world"]["name"]  # what was made before there was another world stays good
        return {name: values[name] for name in used}
