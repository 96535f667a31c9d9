"""Stand-in for habitat_llm.utils.core of facebookresearch/partnr-planner."""

from types import SimpleNamespace


def get_config(config_file, overrides=None):
    path = next(value for key, _, value in (each.partition("=") for each in overrides) if key.endswith("data_path"))
    habitat = SimpleNamespace(dataset=SimpleNamespace(data_path=path))
    agent = SimpleNamespace(uid=0, config=SimpleNamespace())
    return SimpleNamespace(
        habitat=habitat, robot_agent_uid=0, evaluation=SimpleNamespace(agents={"agent_0": agent}), calls=[config_file]
    )


def fix_config(cfg, root=True):
    cfg.calls.append("fix")


def setup_config(config=None, seed=47668090):
    assert config.habitat.dataset.metadata == {"metadata_folder": "data/hssd-hab/metadata"}
    config.calls.append("setup")
    return config
