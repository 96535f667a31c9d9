"""Every command of README.md and docs/ is run in CI at smoke size, here or by the test that is named, or says why not.

What runs here needs no data and no extra. Simulators, servers of others and the data of publishers are not in CI.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest
from pages import FENCE, PAGES, ROOT, TABLE

_COMMAND = re.compile(r"(?:pip|hf|python3?|pytest|embodied-mem|vf-eval|sphinx-build) \S.*")

HERE = {  # the beginning of a command -> itself, small
    "embodied-mem demo --trace": (
        "embodied-mem demo --homes 1 --trace demo.jsonl && embodied-mem view demo.jsonl --out demo.html"
    ),
    "embodied-mem evaluate --config=alfworld --agents full --trace": (
        "embodied-mem evaluate --config=alfworld --agents full --tasks generated --num_tasks 1 --trace full.jsonl"
        " && embodied-mem view full.jsonl --out full.html"
    ),
    "embodied-mem perceive --caption": 'embodied-mem perceive --caption "a banana on the kitchen counter"',
    "embodied-mem doctor --simulator": (
        "(embodied-mem doctor --simulator eb_alfred || true) | grep -E '(missing|ok) +ai2thor'"
    ),
}
THERE = {  # the beginning of a command -> the test that runs it small, or what in .ci does
    'pip install -e ".[train]" && python experiments/train.py --config=grpo_cpu': "tests/training/test_resume.py",
    'pip install -e ".[train,test]" && pytest tests/': ".ci/run",
    "embodied-mem evaluate --config=alfworld --deliveries": "tests/experiments/test_evaluate_alfworld_command.py",
    "embodied-mem evaluate --config=alfworld --weights habits --method": (
        "tests/experiments/test_evaluate_alfworld_command.py"
    ),
    "embodied-mem view memory/ann": "tests/viewer/test_viewer.py",
    **{
        f"embodied-mem memory {do} ": "tests/memory/test_memory_cli.py" for do in ("show", "search", "forget", "export")
    },
    **{f"embodied-mem memory {do} ": "tests/memory/test_engines.py" for do in ("import", "replay")},
    "embodied-mem perceive PICTURE": "tests/agents/robot/test_perceive_command.py",
    "python experiments/analyses/camera_robot.py": "tests/experiments/test_camera_robot.py",
    "python experiments/analyses/prompt_page.py": "tests/experiments/test_prompt_page.py",
    "embodied-mem play": "tests/agents/test_play.py",
    "embodied-mem parity": "tests/worlds/eb_habitat/test_eb_habitat_parity.py",
    "python experiments/evaluate.py --config=eb_alfred --agents chat": "tests/experiments/test_evaluate_chat_agents.py",
    "python experiments/evaluate.py --config=eb_": "tests/experiments/test_evaluate_planner_command.py",
    "python experiments/evaluate.py --config=alfworld --agents chat": "tests/experiments/test_evaluate_chat_agents.py",
    "python experiments/evaluate.py --config=alfworld --agents full": "tests/experiments/baselines",
    "python experiments/evaluate.py --config=alfworld --agents verl_agent": "tests/experiments/baselines",
    "python experiments/evaluate.py --config=alfworld --executor": "tests/compiler/test_think_action.py",
    "embodied-mem serve openenv": "tests/serve/test_openenv.py",
    "python experiments/evaluate.py --config=alfworld --deliveries none static compiled_text": (
        "tests/experiments/test_evaluate_served.py"
    ),
    "python experiments/evaluate.py --config=alfworld --deliveries none static mem0": "tests/experiments/baselines",
    "python experiments/evaluate.py --config=alfworld --weights RUN/weights": "tests/experiments/baselines",
    "python experiments/memgen.py": "tests/experiments/baselines",
    "python experiments/evaluate.py --weights": "tests/experiments/test_evaluate_alfworld_command.py",
    "python experiments/evaluate.py --config=memento --agents react": "tests/experiments/test_evaluate_chat_agents.py",
    "python experiments/evaluate.py --config=memento": "tests/experiments/solvers/memento/test_memento_protocol.py",
    "python experiments/evaluate.py --config=locomo": "tests/experiments/dialogues/test_locomo.py",
    "python experiments/evaluate.py --config=beam": "tests/experiments/dialogues/test_beam.py",
    "python experiments/evaluate.py --config=robot_week": "tests/experiments/dialogues/test_robot_week.py",
    "python experiments/evaluate.py --config=life": "tests/experiments/test_life_players.py",
    "python experiments/evaluate.py --config=scienceworld": "tests/experiments/test_evaluate_scienceworld_command.py",
    "python experiments/train.py --config=life": "tests/experiments/test_gpu.py",
    "python experiments/train.py --config=scienceworld": "tests/worlds/scienceworld/test_scienceworld_training.py",
    "python experiments/train.py --config=baselines": "tests/training/teachers/test_recalled.py",
    "python experiments/train.py --config=grpo_cpu --world.num-train": "tests/training/teachers/test_chat_teacher.py",
    "python experiments/train.py --config=grpo_tpu --plan": "tests/experiments/plan/test_plan.py",
    "python experiments/train.py --config=grpo_tpu --world.drawn": "tests/training/test_image_run.py",
    "python experiments/train.py --config=grpo_tpu": "tests/training/test_mesh.py",
    "python experiments/faults.py": "tests/faults/test_attacks.py",
    "python experiments/bench.py --suite graph": "tests/experiments/test_bench_graph_native.py",
    "python -m embodied_mem.worlds.memento.generator": "tests/worlds/memento/test_memento_generator.py",
    "embodied-mem serve mcp": "tests/serve/test_mcp.py",
    "python -m embodied_mem.serve.skyrl": "tests/serve/test_skyrl.py",
    "embodied-mem serve agentgym": "tests/serve/test_agentgym.py",
}
NOT_RUN = {  # the beginning of a command -> why not
    "pip install alfworld && alfworld-download": "gigabytes; `experiments/preflight.py` names it to who lacks games",
    "pip install huggingface_hub && hf download": "46 GB; tests/experiments/test_paper_configuration.py has the names",
    "pip install": "installs an extra; .ci/run and .ci/package install those that the tests need",
    "python experiments/bench.py --suite memory": "minutes of timing beside contenders of the extra `bench`",
    "python experiments/bench.py --suite drop_in": "a quarter of an hour of the original beside ours",
    "vf-eval": "its harness is a program that `uv` fetches; tests/serve/test_verifiers.py plays through the same env",
}


def commands() -> dict[str, str]:
    """Each command in a fenced block that is no other language's -> the page that has it first."""
    found: dict[str, str] = {}
    for page in PAGES:
        for language, code in FENCE.findall(TABLE.sub("", page.read_text())):
            for line in code.replace("\\\n", " ").splitlines() if language in ("", "bash", "sh") else ():
                command = " ".join(line.partition("  #")[0].split())
                if _COMMAND.fullmatch(command):
                    found.setdefault(command, str(page.relative_to(ROOT)))
    return found


def known(command: str) -> list[str]:
    """The longest beginnings in the tables that fit a command."""
    fitting = [start for table in (HERE, THERE, NOT_RUN) for start in table if command.startswith(start)]
    longest = max(map(len, fitting), default=0)
    return [start for start in fitting if len(start) == longest]


def test_every_command_is_run_or_says_why_not():
    unknown = {command: page for command, page in commands().items() if len(known(command)) != 1}
    assert unknown == {}
    assert len(commands()) > 30


def test_the_named_tests_are_there():
    assert [path for path in THERE.values() if not (ROOT / path).exists()] == []


def test_a_new_command_is_noticed():
    assert known("embodied-mem memory purge memory/ann") == []
    assert known("embodied-mem demo --trace x.jsonl") == ["embodied-mem demo --trace"]


@pytest.mark.parametrize("command", HERE.values(), ids=list(HERE))
def test_commands_run_small(command, tmp_path):
    line = command.replace("embodied-mem ", f"{shlex.quote(sys.executable)} -m embodied_mem.cli ")
    run = subprocess.run(["bash", "-ec", line], cwd=tmp_path, capture_output=True, text=True, env=_environment())
    assert run.returncode == 0, run.stderr
    for page in re.findall(r"--out (\S+)", command):
        assert (tmp_path / page).stat().st_size > 1000


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, "PYTHONPATH": path}
