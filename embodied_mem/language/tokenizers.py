"""Tokenizers: our own byte-level BPE for tiny models, any `tokenizer.json` for the others.

    tokenizer = train_bpe(texts, vocab_size=1024)
    ids = tokenizer.encode("now: clean apple 1", eos=True)
    tokenizer.decode(ids[:-1])                    # "now: clean apple 1"
    tokenizer.save("tokenizer.json"); Tokenizer.load("tokenizer.json").vocab_hash == tokenizer.vocab_hash

Needs the package `tokenizers` (extra `train`), imported on first use.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..atomic_file import write_text
from ..errors import EmbodiedMemError, InvalidInputError, MissingDependencyError

SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>", "<soft>")
"""Special tokens of `train_bpe`, ids 0 to 4."""

# A newline; one or two digits; a word; one other sign (each with the space before it); any other white space.
_PIECES = r"\n| ?\d{1,2}| ?[^\W\d]+| ?[^\w\s]|\s"

_ROLES = {
    "pad": ("<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>", "<|endoftext|>"),
    "bos": ("<bos>", "<s>", "<|begin_of_text|>", "<|im_start|>", "[CLS]"),
    "eos": ("<eos>", "</s>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "[SEP]"),
    "unk": ("<unk>", "[UNK]", "<|unk|>"),
    "soft": ("<soft>",),
}

_MAX_CACHED_LINES = 100_000


def _package() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise MissingDependencyError(
            "the package `tokenizers` is not installed; install it with: pip install 'embodied_mem[train]'"
        ) from error
    return tokenizers


@contextlib.contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn what the package `tokenizers` raises, its panics too, into InvalidInputError."""
    try:
        yield
    except EmbodiedMemError:
        raise
    except BaseException as error:  # the package raises Exception itself; a panic is none
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise InvalidInputError(f"expected {what}, got an error: {error!s:.300}") from error


def train_bpe(texts: Iterable[str], vocab_size: int, special_tokens: Sequence[str] = SPECIAL_TOKENS) -> Tokenizer:
    """Train a byte-level BPE tokenizer of at most `vocab_size` tokens.

    The same texts give the same one. Pieces before merging: a newline, one or two digits, a word, or one other sign,
    each of the last three with the space before it. Merges stay inside a piece, so a newline is always one token, a
    frequent number of two digits is one token, and a frequent word with its space becomes one token. All 256 bytes
    are in the vocabulary: any text round-trips.

    Args:
        texts: texts to learn from.
        vocab_size: upper limit, at least 256 plus the special tokens.
        special_tokens: get the ids 0, 1, ... in this order; must contain `SPECIAL_TOKENS`.

    Raises:
        InvalidInputError: `vocab_size` is too small, or a special token is missing or repeated.
        MissingDependencyError: without the package `tokenizers`.
    """
    special_tokens = list(special_tokens)
    if not set(SPECIAL_TOKENS) <= set(special_tokens) or len(set(special_tokens)) != len(special_tokens):
        raise InvalidInputError(f"special_tokens: expected {SPECIAL_TOKENS} among distinct ones, got {special_tokens}")
    if vocab_size < 256 + len(special_tokens):
        raise InvalidInputError(f"vocab_size: expected >= {256 + len(special_tokens)}, got {vocab_size}")
    package = _package()
    tokenizer = package.Tokenizer(package.models.BPE())
    tokenizer.pre_tokenizer = package.pre_tokenizers.Sequence(
        [
            package.pre_tokenizers.Split(package.Regex(_PIECES), "isolated"),
            package.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = package.decoders.ByteLevel()
    trainer = package.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=special_tokens,
        initial_alphabet=package.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return Tokenizer(tokenizer)


class Tokenizer:
    """A `tokenizers.Tokenizer` with the roles that models need.

    Text is text: a special token's name inside a text is encoded as ordinary characters unless `special=True`. Not for
    several threads at once.

    Args:
        backend: the `tokenizers.Tokenizer`; belongs to this object from then on.
        roles: names of the tokens for `pad`, `bos`, `eos`, `unk`, `soft`; a role that is left out is taken by the
            first known name that the vocabulary has, and is None if there is none.

    Attributes:
        pad_id, bos_id, eos_id, unk_id, soft_id: int or None.
        vocab_size: number of tokens with the special ones; ids are below it.
        vocab_hash: SHA-256 of the whole tokenizer, 64 hexadecimal digits.
    """

    def __init__(self, backend: Any, **roles: str):
        unknown = set(roles) - set(_ROLES)
        if unknown:
            raise InvalidInputError(f"roles: expected some of {sorted(_ROLES)}, got {sorted(unknown)}")
        self._backend, self._where = backend, "the tokenizer"
        with refusing("tokenizer"):
            self._read(roles)

    def _read(self, roles: Mapping[str, str]) -> None:
        backend = self._backend
        backend.no_padding()
        backend.no_truncation()
        ids: dict[str, int | None] = {}
        for role, names in _ROLES.items():
            if role in roles and backend.token_to_id(roles[role]) is None:
                raise InvalidInputError(f"{role}: expected a token of the vocabulary, got {roles[role]!r}")
            names = (roles[role],) if role in roles else names
            ids[role] = next((i for i in map(backend.token_to_id, names) if i is not None), None)
        self.pad_id, self.bos_id, self.eos_id = ids["pad"], ids["bos"], ids["eos"]
        self.unk_id, self.soft_id = ids["unk"], ids["soft"]
        self.vocab_size = max(backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        if not self.vocab_size:
            raise InvalidInputError("tokenizer: expected a vocabulary, got no token")
        text = backend.to_str()
        self.vocab_hash = hashlib.sha256(json.dumps(json.loads(text), sort_keys=True).encode()).hexdigest()
        self._newline = self._line_by_line_newline(json.loads(text))
        self._lines: dict[str, list[int]] = {}

    def _line_by_line_newline(self, description: dict[str, Any]) -> int | None:
        """Return the newline's id if lines can be encoded one by one.

        The pieces of `train_bpe` allow it; else it is None.
        """
        steps = (description.get("pre_tokenizer") or {}).get("pretokenizers") or [{}]
        if steps[0].get("pattern") != {"Regex": _PIECES} or description.get("normalizer") is not None:
            return None
        self._backend.encode_special_tokens = True
        ids = self._backend.encode("\n", add_special_tokens=False).ids
        return ids[0] if len(ids) == 1 else None

    @classmethod
    def load(cls, path: str | os.PathLike[str], **roles: str) -> Tokenizer:
        """Return the tokenizer in the file `path`, ours or any `tokenizer.json`.

        Raises:
            InvalidInputError: the file is no tokenizer, or a role names an unknown token.
            MissingDependencyError: without the package `tokenizers`.
        """
        package = _package()
        text = pathlib.Path(path).read_bytes()
        try:
            with refusing("tokenizer.json"):
                backend = package.Tokenizer.from_str(text.decode())
            tokenizer = cls(backend, **roles)
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {error}") from error
        tokenizer._where = os.fspath(path)
        return tokenizer

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer to `path` as `tokenizer.json`, whole or not at all."""
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, self._backend.to_str(pretty=True))

    def encode(self, text: str, *, bos: bool = False, eos: bool = False, special: bool = False) -> list[int]:
        """Token ids of `text`.

        Args:
            text: any text that is valid Unicode.
            bos: put `bos_id` before it.
            eos: put `eos_id` after it.
            special: read names of special tokens in the text as these tokens.

        Raises:
            InvalidInputError: a lone surrogate in the text, or `bos`/`eos` without such a token.
        """
        return self.encode_batch([text], bos=bos, eos=eos, special=special)[0]

    def encode_batch(
        self, texts: Sequence[str], *, bos: bool = False, eos: bool = False, special: bool = False
    ) -> list[list[int]]:
        """Token ids of each text, as `encode`."""
        if isinstance(texts, str):
            raise InvalidInputError("texts: expected a sequence of texts, got one text; use encode")
        head = [self._required("bos")] if bos else []
        tail = [self._required("eos")] if eos else []
        with refusing(f"texts that {self._where} can encode"):
            if self._newline is not None and not special:
                return [[*head, *self._encode_lines(text, self._newline), *tail] for text in texts]
            self._backend.encode_special_tokens = not special
            rows = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [[*head, *row.ids, *tail] for row in rows]

    def _encode_lines(self, text: str, newline: int) -> list[int]:
        """Return ids of `text`, put together from remembered lines.

        Texts of one world share most of them.
        """
        ids: list[int] = []
        lines = self._lines
        for line in text.split("\n"):
            known = lines.get(line)
            if known is None:
                self._backend.encode_special_tokens = True
                known = self._backend.encode(line, add_special_tokens=False).ids
                if len(lines) >= _MAX_CACHED_LINES:
                    lines.clear()
                lines[line] = known
            ids += known
            ids.append(newline)
        ids.pop()
        return ids

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Return the text of `ids`; bytes that are no UTF-8 are replaced.

        Args:
            ids: int[L], each in [0, vocab_size).
            skip_special: leave special tokens out instead of writing their names.

        Raises:
            InvalidInputError: an id outside the vocabulary.
        """
        ids = [int(i) for i in ids]
        if ids and not (min(ids) >= 0 and max(ids) < self.vocab_size):
            raise InvalidInputError(f"ids: expected 0 <= id < {self.vocab_size}, got {min(ids)} to {max(ids)}")
        with refusing(f"ids that {self._where} can decode"):
            return str(self._backend.decode(ids, skip_special_tokens=skip_special))

    def cut(self, text: str, count: int) -> str:
        """Return the first `count` tokens of `text`, as text."""
        ids = self.encode(text)
        return text if len(ids) <= count else self.decode(ids[:count])

    def pad(
        self, rows: Sequence[Sequence[int]], length: int | None = None, *, left: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return `rows` as one array: (ids int32[B, L], mask bool[B, L]).

        The mask is True where a token of a row stands.

        Args:
            rows: token ids of each row.
            length: L; None for the longest row.
            left: pad before the tokens instead of after them.

        Raises:
            InvalidInputError: a row is longer than `length`, or there is no padding token.
        """
        longest = max(map(len, rows), default=0)
        length = longest if length is None else length
        if longest > length:
            raise InvalidInputError(f"rows: expected at most {length} tokens, got {longest}; shorten them first")
        ids = np.full((len(rows), length), self._required("pad"), np.int32)
        mask = np.zeros((len(rows), length), bool)
        for index, row in enumerate(rows):
            where = slice(length - len(row), None) if left else slice(len(row))
            ids[index, where] = row
            mask[index, where] = True
        return ids, mask

    def id_of(self, token: str) -> int:
        """Id of the token with the name `token`.

        Raises:
            InvalidInputError: there is none.
        """
        found: int | None = self._backend.token_to_id(token)
        if found is None:
            raise InvalidInputError(f"token: expected one of the vocabulary, got {token!r}")
        return found

    def token(self, index: int) -> str:
        """Return token `index` in the vocabulary's own spelling; empty without one."""
        return self._backend.id_to_token(index) or ""

    def _required(self, role: str) -> int:
        found: int | None = getattr(self, f"{role}_id")
        if found is None:
            raise InvalidInputError(f"this tokenizer has no {role} token; pass {role}=<name of one> when loading it")
        return found
