"""Stand-in for habitat_llm.utils.core of facebookresearch/partnr-planner."""

from types import SimpleNamespace

AGENT = "agent@evaluation.agents.agent_0.config"


def get_config(config_file, overrides=None):
    given = dict(each.split("=", 1) for each in overrides)
    path = next(value for key, value in given.items() if key.endswith("data_path"))
    robot = SimpleNamespace(articulated_agent_urdf="data/robots/hab_spot_arm/urdf/hab_spot_arm.urdf")
    habitat = SimpleNamespace(
        dataset=SimpleNamespace(data_path=path, scenes_dir="data"),
        simulator=SimpleNamespace(agents={"agent_0": robot}),
        seed=0,
        environment=SimpleNamespace(max_episode_steps=30),
    )
    tools = given.get(AGENT, "oracle_rearrange_agent_no_explore")  # the file's own
    agent = SimpleNamespace(uid=0, config=SimpleNamespace(name=tools))
    return SimpleNamespace(
        habitat=habitat, robot_agent_uid=0, evaluation=SimpleNamespace(agents={"agent_0": agent}), calls=[config_file]
    )


def fix_config(cfg, root=True):
    cfg.calls.append("fix")


def setup_config(config=None, seed=47668090):
    assert config.habitat.dataset.metadata == {"metadata_folder": "data/hssd-hab/metadata"}
    config.calls.append("setup")
    return config
