"""Stand-in for the part of omegaconf that PARTNR's set-up takes."""

import contextlib
import types


class OmegaConf:
    @staticmethod
    def to_container(cfg, *, resolve=False, throw_on_missing=False, enum_to_str=False, structured_config_mode=None):
        return {key: vars(value) for key, value in vars(cfg).items()}

    @staticmethod
    def create(obj=None, parent=None, flags=None):
        return types.SimpleNamespace(**{key: types.SimpleNamespace(**value) for key, value in obj.items()})


@contextlib.contextmanager
def open_dict(config):
    yield config
