"""`--plan`: what a configuration needs per device and where its parameters go, without weights or hardware.

    python experiments/train.py --config=grpo_tpu --plan --mesh.data 1 --mesh.fsdp 4 --mesh.tensor 4
    python experiments/train.py --config=grpo_tpu --plan --compile     # and what XLA's compiler says, minutes
    python experiments/train.py --config=grpo_tpu --plan --compile --topology v5e:4x4 --mesh.fsdp 4 --mesh.tensor 4

Covers the phases in which the compiler is at work: SFT (backward through compiler and frozen executor), GRPO updates
(compiler alone) and rollouts (both KV caches, and those of the prompts that are kept), then how long all takes at best
on the chips of `forecast`. With `--compile`, the programs of these phases are compiled for as many
simulated devices as the mesh has, and the compiler's own count of their memory stands beside the formula's. Ends with
one JSON line.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Sequence

import jax
from flax import nnx

from embodied_mem.models.config import LoraConfig, VisionConfig, logical_axes, preset
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import add_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.models.soft_mem import logical_axes as soft_mem_axes
from embodied_mem.models.vision.qwen_vl_vision import VisionTower, vision_axes
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.training.config import ROLES, Config
from embodied_mem.training.models import shape_of

from .forecast import CHIPS, forecast
from .plan import USABLE, Pass, Phase, PhaseMemory, Plan, PlannedModel, columns, fitting, named, plan, size_of
from .roofline import Cost, bound

PROMPT_LENGTH = 2560  # tokens; static injection takes 2,481 on average on ALFWorld (MemCompiler, Table 5)


def row_lengths(config: Config, prompt_length: int) -> tuple[int, int]:
    """Return the tokens of a compiler row and of an executor row.

    They are fewer where a model has no room for the prompt.
    """
    model, num_soft = config.model, config.memory.num_soft
    extra = model.max_compiler_tokens + num_soft
    room = min(preset(model.compiler).max_length, preset(model.executor).max_length) - extra
    prompt_length = min(prompt_length, room)
    return prompt_length + extra, prompt_length + num_soft + model.max_action_tokens


def on_this_machine(config: Config) -> Config:
    """Return the run with a mesh axis of -1 filled in.

    The axis gets the devices of this machine that are left.
    """
    shape = MeshShape(config.mesh.data, config.mesh.fsdp, config.mesh.tensor)
    shape = shape.resolve(jax.device_count()) if -1 in shape.sizes else shape
    data, fsdp, tensor = shape.sizes
    return dataclasses.replace(config, mesh=dataclasses.replace(config.mesh, data=data, fsdp=fsdp, tensor=tensor))


def planned_models(config: Config) -> list[PlannedModel]:
    """Return the compiler, the executor and the tower, if any.

    A compiler that sees has a tower.
    """
    compiler_config, executor_config = shape_of(config, "compiler"), shape_of(config, "executor")
    lora = LoraConfig() if config.model.lora else None
    soft = SoftMemConfig(config.memory.num_soft, config.memory.projection)

    def compiler() -> dict:
        decoder = Decoder(compiler_config, rngs=nnx.Rngs(0))
        parts = {"decoder": decoder if lora is None else add_lora(decoder, lora, rngs=nnx.Rngs(1))}
        if soft.num_tokens:
            widths = {"compiler_width": compiler_config.width, "executor_width": executor_config.width}
            parts["soft_mem"] = SoftMem(soft, **widths, rngs=nnx.Rngs(2))
        return {name: nnx.state(part) for name, part in parts.items()}

    models = [
        PlannedModel(
            "compiler",
            compiler_config,
            jax.eval_shape(compiler),
            logical_axes(compiler_config, lora.rank if lora else 0) | soft_mem_axes(soft),
            trainable=lambda path: lora is None or path[0] == "soft_mem" or "_lora_" in path[-1],
        ),
        PlannedModel(
            "executor",
            executor_config,
            jax.eval_shape(lambda: nnx.state(Decoder(executor_config, rngs=nnx.Rngs(0)))),
            logical_axes(executor_config),
            trainable=lambda path: False,
        ),
    ]
    if compiler_config.mrope_sections:  # the whole Qwen2.5-VL, whose tower stands by
        vision = VisionConfig(out_width=compiler_config.width)
        tower = jax.eval_shape(lambda: nnx.state(VisionTower(vision, rngs=nnx.Rngs(0))))
        models.append(PlannedModel("vision", compiler_config, tower, vision_axes(vision), lambda path: False))
    return models


def plan_run(config: Config, models: list[PlannedModel], prompt_length: int = PROMPT_LENGTH) -> Plan:
    """Returns the plan of a run.

    Args:
        config: the run; its mesh has no -1.
        models: its `planned_models`.
        prompt_length: tokens that compiler and executor read; less where their maximum length leaves no room.
    """
    import optax

    compiler_length, executor_length = row_lengths(config, prompt_length)
    mesh = MeshShape(config.mesh.data, config.mesh.fsdp, config.mesh.tensor)
    sampling = mesh.for_sampling(config.mesh.sampling_tensor) if config.mesh.sampling_tensor else None
    acting = {"sampled": ("compiler", "executor"), "only_sampled": ("executor",)}
    sft, grpo = config.compiler_sft, config.grpo
    model, episodes, chunk = config.model, grpo.num_rows, config.mesh.logits_chunk
    phases = (
        Phase(
            "sft",
            (
                Pass("compiler", sft.microbatch or sft.batch_size, compiler_length, chunk),
                Pass("executor", sft.microbatch or sft.batch_size, executor_length, chunk),
            ),
            trains=True,
        ),
        Phase("grpo", (Pass("compiler", grpo.microbatch, compiler_length, chunk),), trains=True, **acting),
        Phase(
            "rollout",
            caches=(
                Pass("compiler", episodes, compiler_length),
                Pass("compiler", episodes, compiler_length - model.max_compiler_tokens - config.memory.num_soft),
                Pass("executor", episodes, executor_length),
                Pass("executor", episodes, executor_length - model.max_action_tokens),
            ),
            **acting,
        ),
    )
    return plan(models, mesh, phases, optax.adamw(grpo.learning_rate), sampling)


def fullest(config: Config, phases: Sequence[PhaseMemory], memory: float, on_gpu: bool) -> int:
    """Return the fullest phase's bytes on devices of `memory` bytes."""
    totals = [phase.total if config.mesh.remat else phase.total_without_remat for phase in phases]
    return max([*totals, *(phase.on_gpu(memory) for phase in phases if on_gpu and phase.layouts)])


def print_forecasts(config: Config, models: list[PlannedModel], answer: Plan, prompt_length: int) -> list[dict]:
    """Print how long the run takes at best on each chip.

    Returns the same.
    """
    acting = {model.name: model for model in models if model.name in ROLES}
    lengths = dict(zip(ROLES, row_lengths(config, prompt_length)))
    times = "rollout", "GRPO update", "SFT step", "both stages"
    rows = [("at best", "fits", "compiler tokens/s", "executor tokens/s", *times)]
    found = []
    for chip in CHIPS.values():
        one = forecast(config, acting, chip, lengths)
        memory = chip.memory_gb * 1e9
        fits = fullest(config, answer.phases, memory, "TPU" not in chip.name) <= USABLE * memory
        speeds = (f"{one.tokens_per_s[role]:,.0f}" for role in ROLES)
        times = (f"{one.rollout_s:.0f} s", f"{one.update_s:.0f} s", f"{one.sft_step_s:.2f} s", f"{one.run_h:.0f} h")
        rows.append((chip.name, "yes" if fits else "no", *speeds, *times))
        found.append(dataclasses.asdict(one) | {"fits": fits})
    print("\n".join(["", *columns(rows)]))
    return found


def print_roofline(costs: list[Cost]) -> dict[str, float]:
    """Print a step's costs; return the largest share of each peak.

    Compiled for a CPU, which computes in float32: a chip moves half of the bytes, in fusions of its own.
    """
    scale = 0.5 if jax.default_backend() == "cpu" else 1.0
    rows = [("SFT step, one device", "TFLOP", "bytes", "times")]
    for cost in costs:
        rows.append((cost.kind, f"{cost.flops / 1e12:.2f}", size_of(round(scale * cost.bytes)), f"{cost.count:,.0f}"))
    bounds = {c.name: bound(costs, c.peak, c.bandwidth, c.links, scale) for c in CHIPS.values()}
    lines = [f"{name}: at most {share:.0%} of the peak" for name, share in bounds.items()]
    print("\n".join(["", *columns(rows), *lines]))
    return bounds


def simulate_devices(config: Config) -> None:
    """Make as many CPU devices as the mesh has.

    Nothing is made unless its axes are numbers. Call it before anything touches a device.
    """
    sizes = (config.mesh.data, config.mesh.fsdp, config.mesh.tensor)
    if -1 not in sizes:
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # sooner done, with the same buffers
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", math.prod(sizes))


def print_plan(config: Config, compiled: bool = False, topology: str = "", as_json: bool = False) -> dict:
    """Print the plan, then its JSON if asked; return the latter."""
    devices = None
    if compiled:
        from .xla_memory import compiled_memory, tpu_devices

        devices = tpu_devices(topology) if topology else None
        simulate_devices(config)
    config = on_this_machine(config)
    models = planned_models(config)
    answer = plan_run(config, models)
    print(f"compiler {config.model.compiler}, executor {config.model.executor}")
    print(answer.table())
    content = answer.to_dict()
    content["forecast"] = print_forecasts(config, models, answer, PROMPT_LENGTH)
    if compiled:
        compiler_length, executor_length = row_lengths(config, PROMPT_LENGTH)
        heads = ("program", "arguments", "temporaries", "outputs", "total", "fits chips of", "compiled in")
        rows, content["compiled"] = [heads], []
        lengths = {"compiler_length": compiler_length, "executor_length": executor_length}
        for one in compiled_memory(config, **lengths, devices=devices):
            sizes = (one.arguments, one.temporaries, one.outputs, one.total)
            rows.append((one.name, *map(size_of, sizes), named(fitting(one.total)), f"{one.compile_s:.0f} s"))
            content["compiled"].append(dataclasses.asdict(one) | {"total": one.total})
            if one.copies is not None:
                print(f"{one.name}: a token copies {one.copies} weights")
            if one.name == "sft" and one.costs:
                content["roofline"] = print_roofline(one.costs)
        where = topology or f"{jax.device_count()} {jax.devices()[0].platform} devices"
        print("\n".join(["", f"compiled for {where}", *columns(rows)]))
    if as_json:
        print(json.dumps(content))
    return content
