"""Stand-in for the part of omegaconf that PARTNR's set-up takes."""

import contextlib
import types


class OmegaConf:
    @staticmethod
    def to_container(cfg, *, resolve=False, throw_on_missing=False, enum_to_str=False, structured_config_mode=None):
        return {key: dict(vars(value)) if hasattr(value, "__dict__") else value for key, value in vars(cfg).items()}

    @staticmethod
    def create(obj=None, parent=None, flags=None):
        nested = {k: types.SimpleNamespace(**v) if isinstance(v, dict) else v for k, v in obj.items()}
        return types.SimpleNamespace(**nested)


@contextlib.contextmanager
def open_dict(config):
    yield config
