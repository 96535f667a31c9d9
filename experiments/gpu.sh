#!/bin/bash
# Measures an accelerator in 12 minutes: experiments/gpu.sh [--tiny] [--output FILE]; `gpu.py` says what.
#
# Needs Python with JAX for the device, and this checkout. Packages that are missing come from the folder $WHEELS
# (default: wheels) if there is one, else from the package index, and lie in build/gpu_packages afterwards. Runs that
# wait for a device: docs/training.md, "Where a GPU is".
cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-python3}
wheels=${WHEELS:-wheels}
export PYTHONPATH=$PWD:$PWD/build/gpu_packages${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
export PATH=$PWD/build/gpu_packages/bin:$PATH
missing=$($python - <<'END'
import importlib.metadata
import importlib.util
packages = {
    "flax": "flax", "optax": "optax", "orbax.checkpoint": "orbax-checkpoint", "tyro": "tyro", "jinja2": "jinja2",
    "tensorboardX": "tensorboardX", "tokenizers": "tokenizers", "safetensors": "safetensors", "tqdm": "tqdm",
    "gymnasium": "gymnasium", "pybind11": "pybind11", "httpx": "httpx", "cmake": "cmake", "ninja": "ninja",
    "matplotlib": "matplotlib",
}
def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False
print(*(package for name, package in packages.items() if not there(name)))
if not there("setuptools") or int(importlib.metadata.version("setuptools").split(".")[0]) < 77:
    print("setuptools>=77.0.3")  # older ones refuse pyproject.toml
END
)
if [ -n "$missing" ]; then
  from=(); [ -d "$wheels" ] && from=(--no-index --find-links "$wheels")
  # shellcheck disable=SC2086
  timeout 300 $python -m pip install -q "${from[@]}" --target build/gpu_packages $missing || echo "not installed: $missing" >&2
fi
$python -c "import embodied_mem._native" 2>/dev/null || timeout 600 $python setup.py -q build_ext --inplace || echo "the native extension was not built" >&2
exec $python experiments/gpu.py "$@"
