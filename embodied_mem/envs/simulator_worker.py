"""Runs one of the real simulators in a process and under a Python of its own; `SimulatorProcess` talks to it.

    python simulator_worker.py        # stdin: one JSON object per line; stdout: length, JSON object, image

The programs want older Pythons than this package (their authors' environments have 3.9), print what they like, and hold
one graphics context per process. So this file imports nothing of this package, needs Python 3.8 and numpy alone until a
program is opened, and keeps standard output for itself.

Requests: `{"do": "open", "program": name, "options": {...}}`, `{"do": "reset", "task": index}`, `{"do": "step",
"action": text}`. An answer is a length (4 bytes, big endian), a JSON object of that length, and, where its `image`
holds a shape, uint8[height, width, 3]. `error` in it is one of missing, data, input, failed, with `text`.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import sys
import traceback

import numpy as np

ENOUGH = 10**9
"""Steps that no episode takes."""


class Refused(Exception):
    """What is missing or wrong, and what to do about it."""

    def __init__(self, error, text):
        super().__init__(text)
        self.error = error


def load(name, install):
    """Return a module; Refused names the one that is missing, which may be another that it needs."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Refused("missing", f"{name} cannot be imported by {sys.executable} ({error}); {install}") from error


def need(path, what, install):
    """Refuse to go on without a file or folder."""
    if not os.path.exists(path):
        raise Refused("data", f"{what} is not installed: expected {os.path.abspath(path)}; {install}")


def rgb(image):
    """Return an image as uint8[height, width, 3]: a tensor's or a batch's first, without its alpha channel."""
    if hasattr(image, "cpu"):
        image = image.cpu().numpy()
    image = np.asarray(image)
    while image.ndim > 3:
        image = image[0]
    if image.ndim != 3 or image.shape[2] not in (3, 4) or image.dtype != np.uint8:
        raise ValueError(f"expected an image uint8[height, width, 3], got {image.dtype}{list(image.shape)}")
    return np.ascontiguousarray(image[:, :, :3])


class EmbodiedBench:
    """What EBAlfEnv and EBHabEnv share. Source: EmbodiedBench/EmbodiedBench, `embodiedbench/envs`."""

    def __init__(self, program, eval_set, resolution, max_steps):
        self.env = program(eval_set=eval_set, exp_name="embodied_mem", resolution=resolution)
        self.env._max_episode_steps = max_steps or ENOUGH
        self.num_tasks = int(self.env.number_of_episodes)

    def started(self, task):
        """Start one episode: the programs go through theirs in order, and start the one of this number next."""
        self.env._current_episode_num = task
        image = self.env.reset()["head_rgb"]
        goal = self.env.episode_language_instruction
        text = f"Your task is to: {goal}"
        self.progress = 0.0
        return {"text": text, "goal": goal, "image": rgb(image), "commands": list(self.env.language_skill_set)}

    def step(self, action):
        """Play an action of the list, given by text or number; anything else is what the evaluator calls unusable."""
        env, commands, action = self.env, self.env.language_skill_set, action.strip()
        if action in commands:
            number = commands.index(action)
        elif action.isascii() and action.isdigit() and int(action) < len(commands):
            number = int(action)
        else:
            env._cur_invalid_actions += 1  # as the evaluator counts it, without a step
            ended = env._cur_invalid_actions >= env._max_invalid_actions
            text = "Last action is invalid. The answer is no action of the list"
            progress = 0.0 if ended else self.progress
            return {
                "text": text,
                "progress": progress,
                "ended": ended,
                "valid": False,
                "is_step": False,
                **self.counts(),
            }
        observation, reward, done, info = env.step(number)
        won = bool(info["task_success"])
        self.progress = float(info["task_progress"])
        ended = won or env._cur_invalid_actions >= env._max_invalid_actions
        return {
            "text": info["env_feedback"],
            "image": rgb(observation["head_rgb"]),
            "won": won,
            "progress": self.progress,
            "ended": ended,
            "cut": bool(done) and not ended,
            "valid": bool(info["last_action_success"]),
            "reward": float(reward),
            **self.counts(),
        }

    def counts(self):
        return {"num_invalid": int(self.env._cur_invalid_actions)}

    def close(self):
        self.env.close()


class EbAlfred(EmbodiedBench):
    """EBAlfEnv: AI2-THOR 2.1.0 under X display 1."""

    def __init__(self, eval_set, resolution, max_steps):
        page = "see docs/simulator_eb_alfred.md"
        module = load("embodiedbench.envs.eb_alfred.EBAlfEnv", page)
        need(module.ALFRED_DATASET_PATH, "EB-ALFRED's data", f"git clone the dataset EmbodiedBench/EB-ALFRED; {page}")
        display = f"/tmp/.X11-unix/X{module.X_DISPLAY}"
        start = f"python -m embodiedbench.envs.eb_alfred.scripts.startx {module.X_DISPLAY}"
        need(display, "an X display for AI2-THOR", f"start it with: {start}")
        super().__init__(module.EBAlfEnv, eval_set, resolution, max_steps)

    def reset(self, task):
        return self.started(task)


class EbHabitat(EmbodiedBench):
    """EBHabEnv: habitat-sim 0.3.0 and habitat-lab 0.3.0."""

    def __init__(self, eval_set, resolution, max_steps):
        page = "see docs/simulator_eb_habitat.md"
        module = load("embodiedbench.envs.eb_habitat.EBHabEnv", page)
        folder = os.path.dirname(module.__file__)
        need(
            os.path.join(folder, "datasets", f"{eval_set}.pickle"), "EB-Habitat's episode file", f"git lfs pull; {page}"
        )
        assets = "python -m habitat_sim.utils.datasets_download --uids rearrange_task_assets"
        need(os.path.join(folder, "data"), "the YCB and ReplicaCAD data", f"{assets}, and move data there; {page}")
        super().__init__(module.EBHabEnv, eval_set, resolution, max_steps)

    def reset(self, task):
        core = self.env.env.env.env._env  # habitat.Env; EBHabEnv takes the same way to it
        core.current_episode = core.episodes[task]
        return self.started(task)


class Partnr:
    """PARTNR: habitat_llm on habitat-lab and habitat-sim 0.3.3; one robot acts, by the names of its tools.

    Source: facebookresearch/partnr-planner, `habitat_llm/examples/skill_runner.py` (set-up) and `example_utils.py`
    (`execute_skill`). No language model is loaded, so tools that ask one are refused.
    """

    MAX_SIM_STEPS = 1500
    """Simulator steps of one action in `execute_skill`."""

    def __init__(self, data_path, config, overrides, camera, seed):
        page = "see docs/simulator_partnr.md"
        core = load("habitat_llm.utils.core", page)
        program = load("habitat_llm.agent.env", page)
        omegaconf = load("omegaconf", page)
        self.describe = load("habitat_llm.llm.instruct.utils", page).get_world_descr
        planner = load("habitat_llm.planner.planner", page).Planner
        init_agents = load("habitat_llm.utils.sim", page).init_agents
        for path, what in (
            (data_path, "the episode file"),
            ("data/hssd-hab", "HSSD"),
            ("data/objects_ovmm", "objects"),
        ):
            need(path, what, f"run in PARTNR's checkout, with its data; {page}")
        settings = core.get_config(config, [f"habitat.dataset.data_path={data_path}", *overrides])
        core.fix_config(settings)
        with omegaconf.open_dict(settings):
            plain = omegaconf.OmegaConf.to_container(settings.habitat, resolve=True)
            habitat = omegaconf.OmegaConf.create(plain)
            habitat.dataset.metadata = {"metadata_folder": "data/hssd-hab/metadata"}
            settings.habitat = habitat
        settings = core.setup_config(settings, seed)
        program.register_sensors(settings)
        program.register_actions(settings)
        program.register_measures(settings)
        dataset = program.CollaborationDatasetV0(settings.habitat.dataset)
        self.episodes = list(dataset.episodes)
        self.num_tasks = len(self.episodes)
        self.interface = program.EnvironmentInterface(settings, dataset=dataset, init_wg=False)
        self.planner = planner({}, self.interface)
        self.planner.agents = init_agents(settings.evaluation.agents, self.interface)
        self.robot = int(settings.robot_agent_uid)
        self.camera = camera

    def reset(self, task):
        core = self.interface.env.env.env._env  # habitat.Env; PARTNR takes the same way to it
        core.current_episode = self.episodes[task]
        self.interface.reset_environment()
        for agent in self.planner.agents:
            agent.reset()
        self.measures = {}
        goal = self.episodes[task].instruction
        house = self.describe(self.interface.world_graph[self.robot], agent_uid=self.robot, include_room_name=True)
        image = self.image(self.interface.get_observations())
        return {"text": f"Task: {goal}\n\n{house}", "goal": goal, "image": image}

    def step(self, action):
        """Play `Name[arguments]` until the tool answers; `Done[]` ends the episode."""
        name, bracket, arguments = (action.strip().splitlines() or [""])[-1].partition("[")
        agent = self.planner.get_agent_from_uid(self.robot)
        tool = agent.tools.get(name)
        if name == "Done" and bracket:
            return self.answer("Done.", ended=True)
        if not bracket or not arguments.endswith("]"):
            return self.answer(f"Expected Name[arguments], got {action.strip()}", valid=False)
        if tool is None or getattr(tool, "llm", tool) is None:
            usable = sorted(key for key, each in agent.tools.items() if getattr(each, "llm", each) is not None)
            return self.answer(f"{name} cannot be used here. Tools: {', '.join(usable)}", valid=False)
        chosen = {self.robot: (name, arguments[:-1], "")}
        self.planner.last_high_level_actions = chosen
        observations = self.interface.get_observations()
        image = None
        for _ in range(self.MAX_SIM_STEPS):
            low_level, responses = self.planner.process_high_level_actions(chosen, observations)
            done = False
            if low_level:
                raw, _, done, self.measures = self.interface.step(low_level)
                image, observations = raw, self.interface.parse_observations(raw)
                self.interface.batch = observations
            text = responses.get(self.robot, "")
            if text or done or not low_level:
                return self.answer(text, image=image, cut=bool(done))
        return self.answer(f"{name} did not end within {self.MAX_SIM_STEPS} simulator steps.", image=image, valid=False)

    def answer(self, text, image=None, ended=False, cut=False, valid=True):
        won = float(self.measures.get("task_state_success", 0)) > 0
        progress = float(self.measures.get("task_percent_complete", 0))
        found = self.image(image) if image is not None else None
        answer = {"text": text, "won": won, "progress": progress, "ended": ended, "cut": cut, "valid": valid}
        return {**answer, "image": found} if found is not None else answer

    def image(self, observations):
        """Return what the robot's camera sees, if its sensors were kept."""
        names = [name for name in sorted(observations) if name.endswith(self.camera)]
        mine = [name for name in names if name.startswith(f"agent_{self.robot}_")] or names
        return rgb(observations[mine[0]]) if mine else None

    def close(self):
        self.interface.env.close()


PROGRAMS = {"eb_alfred": EbAlfred, "eb_habitat": EbHabitat, "partnr": Partnr}


def answer(state, request):
    """Return the answer to one request; `state` is the program, once it is open."""
    try:
        if request["do"] == "open":
            state["program"] = PROGRAMS[request["program"]](**request["options"])
            return {"num_tasks": state["program"].num_tasks}
        if request["do"] == "reset":
            return state["program"].reset(request["task"])
        return state["program"].step(request["action"])
    except Refused as error:
        return {"error": error.error, "text": str(error)}
    except Exception:
        return {"error": "failed", "text": traceback.format_exc(limit=-8)}


def main():
    """Answer requests until standard input ends, then close the program."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the programs print is no answer
    state = {}
    for line in requests:
        reply = answer(state, json.loads(line))
        image = reply.pop("image", None)
        if image is not None:
            reply["image"] = image.shape
        head = json.dumps(reply).encode()
        answers.write(struct.pack(">I", len(head)) + head)
        if image is not None:
            answers.write(image.tobytes())
        answers.flush()
    if "program" in state:
        state["program"].close()


if __name__ == "__main__":
    main()
