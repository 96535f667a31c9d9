"""`--plan`: what a configuration needs per device and where its parameters go, without weights or hardware.

    python experiments/train.py --config=grpo_tpu --plan --mesh.data 1 --mesh.fsdp 4 --mesh.tensor 4

Covers the phases in which the compiler is at work: SFT (backward through compiler and frozen executor), GRPO updates
(compiler alone) and rollouts (both KV caches). Ends with one JSON line.
"""

from __future__ import annotations

import jax
from flax import nnx

from embodied_mem.models.config import LoraConfig, logical_axes, preset
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import add_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.models.soft_mem import logical_axes as soft_mem_axes
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.plan import Pass, Phase, Plan, PlannedModel, plan
from embodied_mem.training.config import Config

PROMPT_LENGTH = 2560  # tokens; static injection takes 2,481 on average on ALFWorld (MemCompiler, Table 5)
LOGITS_CHUNK = 512  # columns of logits at a time, see `score_tokens`


def plan_run(config: Config, prompt_length: int = PROMPT_LENGTH) -> Plan:
    """Returns the plan of a run; a mesh axis of -1 takes the devices of this machine that are left.

    Args:
        config: the run.
        prompt_length: tokens that compiler and executor read; less where their maximum length leaves no room.
    """
    import optax

    mesh = MeshShape(config.mesh.data, config.mesh.fsdp, config.mesh.tensor)
    mesh = mesh.resolve(jax.device_count()) if -1 in mesh.sizes else mesh
    overrides = {} if config.model.weights else {"vocab_size": config.model.vocab_size}
    compiler_config = preset(config.model.compiler, **overrides)
    executor_config = preset(config.model.executor, **overrides)
    extra = config.model.max_compiler_tokens + config.memory.num_soft
    prompt_length = min(prompt_length, compiler_config.max_length - extra, executor_config.max_length - extra)
    lora = LoraConfig() if config.model.lora else None
    soft = SoftMemConfig(config.memory.num_soft, config.memory.projection)

    def compiler() -> dict:
        decoder = Decoder(compiler_config, rngs=nnx.Rngs(0))
        parts = {"decoder": decoder if lora is None else add_lora(decoder, lora, rngs=nnx.Rngs(1))}
        if soft.num_tokens:
            widths = {"compiler_width": compiler_config.width, "executor_width": executor_config.width}
            parts["soft_mem"] = SoftMem(soft, **widths, rngs=nnx.Rngs(2))
        return {name: nnx.state(part) for name, part in parts.items()}

    models = (
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
    )
    compiler_length = prompt_length + extra
    executor_length = prompt_length + soft.num_tokens + config.model.max_action_tokens
    sft, grpo = config.compiler_sft, config.grpo
    episodes = grpo.num_tasks * grpo.group_size
    phases = (
        Phase(
            "sft",
            (
                Pass("compiler", sft.batch_size, compiler_length, LOGITS_CHUNK),
                Pass("executor", sft.batch_size, executor_length, LOGITS_CHUNK),
            ),
            trains=True,
        ),
        Phase("grpo", (Pass("compiler", grpo.microbatch, compiler_length, LOGITS_CHUNK),), trains=True),
        Phase(
            "rollout",
            caches=(Pass("compiler", episodes, compiler_length), Pass("executor", episodes, executor_length)),
        ),
    )
    return plan(models, mesh, phases, optax.adamw(grpo.learning_rate))


def print_plan(config: Config, prompt_length: int = PROMPT_LENGTH) -> dict:
    """Prints the plan for a person, then one JSON line; returns the latter's content."""
    answer = plan_run(config, prompt_length)
    print(f"compiler {config.model.compiler}, executor {config.model.executor}")
    print(answer.table())
    print(answer.to_json())
    return answer.to_dict()
