"""Makes the word vectors that the package ships: `python experiments/package_data/word_vectors.py --wheel FILE`.

FILE is a wheel of WordLlama (`pip download --no-deps wordllama==0.4.0.post1`). Of its 32,000 token vectors of 256
numbers those stay whose token is letters or digits in lower case, at the beginning of a word or within one: all that a
normal word is cut into. Each row becomes int8 with a scale of its own. The same wheel gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import re
import zipfile

import numpy as np

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.command import run
from embodied_mem.memory.embedders import DIMENSION, START, TABLE
from embodied_mem.memory.words import normal

WEIGHTS = "wordllama/weights/l2_supercat_256.safetensors"
TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
SHA256 = {
    WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
_PIECE = re.compile(rf"{START}|{START}?[^\W_]+")


def make(wheel: pathlib.Path, folder: pathlib.Path) -> None:
    """Write the table of a wheel into a folder.

    Raises:
        InvalidInputError: the wheel holds other weights.
    """
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in SHA256}
    for name, expected in SHA256.items():
        if (got := hashlib.sha256(held[name]).hexdigest()) != expected:
            raise InvalidInputError(f"{wheel}: {name}: expected sha256 {expected}, got {got}; take 0.4.0.post1")
    vectors = safetensors_array(held[WEIGHTS])
    vocabulary: dict[str, int] = json.loads(held[TOKENIZER])["model"]["vocab"]
    kept = {
        piece: number
        for piece, number in sorted(vocabulary.items(), key=lambda pair: pair[1])
        if _PIECE.fullmatch(piece) and normal(piece) == piece
    }
    rows = vectors[list(kept.values())]
    scales = (np.abs(rows).max(axis=1) / 127).astype(np.float16)
    whole = np.clip(np.rint(rows / scales.astype(np.float32)[:, None]), -127, 127).astype(np.int8)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pieces.txt").write_bytes("".join(f"{piece}\n" for piece in kept).encode())
    np.save(folder / "rows.npy", whole)
    np.save(folder / "scales.npy", scales)
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    print(json.dumps({"pieces": len(kept), "bytes": sizes}))


def safetensors_array(held: bytes) -> np.ndarray:
    """Return the one array of a safetensors file, float32[N, DIMENSION].

    The file is eight bytes of length, JSON, numbers.
    """
    start = 8 + int.from_bytes(held[:8], "little")
    (entry,) = (one for name, one in json.loads(held[8:start]).items() if name != "__metadata__")
    assert entry["dtype"] == "F16"
    assert entry["shape"][1] == DIMENSION
    return np.frombuffer(held, np.float16, offset=start).reshape(entry["shape"]).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=TABLE)
    given = parser.parse_args()
    make(given.wheel, given.out)


if __name__ == "__main__":
    run(main)
