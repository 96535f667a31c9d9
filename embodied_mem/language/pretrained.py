"""The tokenizer of a published model with its chat template, from a folder or a GGUF file, and back to a folder.

    pretrained = PretrainedTokenizer.from_folder("Qwen2.5-0.5B-Instruct")
    pretrained = PretrainedTokenizer.from_gguf(file.metadata)               # `models.gguf.GGUFFile`
    text = pretrained.render([{"role": "user", "content": "Where is the apple?"}])
    pretrained.save(folder)              # beside `save_hf`'s files, for transformers and vLLM

Templates are Jinja, rendered in a sandbox as transformers does, but without it. Needs the extra `train`.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import DataNotFoundError, InvalidInputError, MissingDependencyError
from .tokenizers import Tokenizer, _package

_ROLES = ("bos", "eos", "pad", "unk")
_CONTROL, _USER_DEFINED = 3, 4
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# How the families cut text: one digit at a time and the pattern of GPT-2; or a pattern of their own.
_PATTERNS = {
    "qwen2": _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST,
    "llama-bpe": _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST,
}
_KNOWN = ("gpt-2", "smollm", *_PATTERNS)


@dataclasses.dataclass(frozen=True)
class PretrainedTokenizer:
    """A tokenizer and how its model writes a conversation.

    Attributes:
        tokenizer: text to ids and back.
        chat_template: Jinja text, or None where the model has none.
        roles: `bos`, `eos`, `pad`, `unk` -> name of the token, as far as the model has them; None takes those of the
            tokenizer. A role that a published model leaves out is left out of what it renders and saves: the tokenizer
            has a token for it all the same, to pad with for instance.
    """

    tokenizer: Tokenizer
    chat_template: str | None
    roles: Mapping[str, str] | None = None

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> PretrainedTokenizer:
        """Return the tokenizer in a Hugging Face folder.

        Raises:
            DataNotFoundError: there is no tokenizer.json.
            InvalidInputError: a file is damaged.
        """
        folder = pathlib.Path(folder)
        if not (folder / "tokenizer.json").is_file():
            raise DataNotFoundError(f"{folder}: expected tokenizer.json in the folder of a model; it is missing")
        path = folder / "tokenizer_config.json"
        try:
            described = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"{path}: expected JSON, got {error}") from error
        if not isinstance(described, dict):
            raise InvalidInputError(f"{path}: expected an object, got {type(described).__name__}")
        roles = {}
        for role in _ROLES:
            token = described.get(f"{role}_token")
            token = token.get("content") if isinstance(token, dict) else token
            if token is not None and not isinstance(token, str):
                raise InvalidInputError(f"{path}: {role}_token: expected a text, got {token!r:.80}")
            if token is not None:
                roles[role] = token
        template = described.get("chat_template")
        if (folder / "chat_template.jinja").is_file():
            template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
        elif isinstance(template, list):  # several by name
            named = [one for one in template if isinstance(one, dict) and one.get("name") == "default"]
            template = named[0].get("template") if named else None
        if template is not None and not isinstance(template, str):
            raise InvalidInputError(f"{path}: chat_template: expected a text, got {template!r:.80}")
        return cls(Tokenizer.load(folder / "tokenizer.json", **roles), template, roles)

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> PretrainedTokenizer:
        """Return the tokenizer in a GGUF file's metadata; raises as `backend_from_gguf`."""
        backend, roles = backend_from_gguf(metadata), roles_from_gguf(metadata)
        template = metadata.get("tokenizer.chat_template")
        if template is not None and not isinstance(template, str):
            raise InvalidInputError(f"tokenizer.chat_template: expected a text, got {template!r:.80}")
        return cls(Tokenizer(backend, **roles), template, roles)

    def render(
        self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """Write the conversation by the model's template.

        A name of a special token inside a message reads as this token if the text is encoded with `special=True`: for
        texts that are not trusted use `models.chat`, which keeps them apart.

        Args:
            messages: dicts with `role` and `content`.
            add_generation_prompt: end where the answer begins.
            **variables: what else the template reads, e.g. `tools`, `enable_thinking`.

        Raises:
            InvalidInputError: there is no template, or it refuses these messages.
            MissingDependencyError: without the package `jinja2`.
        """
        if self.chat_template is None:
            raise InvalidInputError("chat template: this model has none; write the prompt yourself")
        tokens = {f"{role}_token": name for role, name in self._named().items()}
        values = {"tools": None, "documents": None, **tokens, **variables}
        values |= {"messages": messages, "add_generation_prompt": add_generation_prompt}
        template = _compiled(self.chat_template)
        try:
            return str(template.render(**values))
        except Exception as error:  # of the template's code: no list of types would have them all
            raised = type(error).__name__
            why = "" if raised == "TemplateError" else f"expected messages that it can write, got {raised}: "
            raise InvalidInputError(f"chat template: {why}{error}") from error

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes tokenizer.json, tokenizer_config.json, generation_config.json with the tokens that begin and end, and
        chat_template.jinja where there is a template; one of an earlier save goes where there is none."""
        folder = pathlib.Path(folder)
        self.tokenizer.save(folder / "tokenizer.json")
        described: dict[str, Any] = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            **{f"{role}_token": name for role, name in self._named().items()},
        }
        template = folder / "chat_template.jinja"
        template.unlink(missing_ok=True)
        if self.chat_template is not None:
            described["chat_template"] = self.chat_template  # for readers older than the file
            template.write_text(self.chat_template, encoding="utf-8")
        ids = {f"{role}_token_id": getattr(self.tokenizer, f"{role}_id") for role in self._named() if role != "unk"}
        for name, content in (("tokenizer_config.json", described), ("generation_config.json", ids)):
            text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
            (folder / name).write_text(text, encoding="utf-8")

    def _named(self) -> dict[str, str]:
        """Return the tokens of the roles that the model has."""
        if self.roles is not None:
            return {role: self.roles[role] for role in _ROLES if role in self.roles}
        ids = {role: getattr(self.tokenizer, f"{role}_id") for role in _ROLES}
        return {role: self.tokenizer.token(index) for role, index in ids.items() if index is not None}


@functools.lru_cache(maxsize=16)
def _compiled(template: str) -> Any:
    """Compile the template in a sandbox.

    It gets the settings and functions that published templates expect.
    """
    try:
        import jinja2
        from jinja2.ext import Extension
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise MissingDependencyError(
            "the package `jinja2` is not installed; install it with: pip install 'embodied_mem[train]'"
        ) from error

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    class Generation(Extension):
        """The tag around what an assistant says, which marks it for training; it changes no text."""

        tags = {"generation"}  # noqa: RUF012 - as the base class has it

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.Scope(body).set_lineno(line)

    def to_json(
        value: object, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    try:
        return environment.from_string(template)
    except Exception as error:  # e.g. a constant that cannot be computed
        raise InvalidInputError(f"chat template: expected Jinja, got {error}") from error


def backend_from_gguf(metadata: Mapping[str, Any]) -> Any:
    """Return the `tokenizers.Tokenizer` that the metadata describes.

    Raises:
        InvalidInputError: it is not byte-level BPE, its cutting is not known, or the vocabulary is damaged.
        MissingDependencyError: without the package `tokenizers`.
    """
    kind, cutting = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if not isinstance(kind, str) or kind != "gpt2":
        raise InvalidInputError(f"tokenizer.ggml.model: expected gpt2 (byte-level BPE), got {kind!r:.80}")
    if not isinstance(cutting, str) or cutting not in _KNOWN:
        raise InvalidInputError(
            f"tokenizer.ggml.pre: expected one of {', '.join(_KNOWN)}, got {cutting!r:.80}; where a file has none, and "
            "it is known how its model cuts text, hand over its metadata with this entry"
        )
    try:
        tokens, merges = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"]
        kinds = metadata["tokenizer.ggml.token_type"]
    except KeyError as error:
        raise InvalidInputError(f"GGUF metadata: expected {error}, got none") from error
    for name, texts in (("tokens", tokens), ("merges", merges)):
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError(f"tokenizer.ggml.{name}: expected texts, got {texts!r:.80}")
    if np.ndim(kinds) != 1:
        raise InvalidInputError(f"tokenizer.ggml.token_type: expected a number per token, got {kinds!r:.80}")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    if len(vocabulary) != len(tokens) or len(kinds) != len(tokens) or any(len(pair) != 2 for pair in pairs):
        raise InvalidInputError(
            f"GGUF metadata: expected distinct tokens with a type each and merges of two, got {len(tokens)} tokens "
            f"({len(vocabulary)} distinct), {len(kinds)} types"
        )
    package = _package()
    byte_level = package.pre_tokenizers.ByteLevel
    try:
        model = package.models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=cutting == "llama-bpe")
    except Exception as error:  # the package raises Exception itself
        raise InvalidInputError(f"GGUF metadata: expected merges of the vocabulary's tokens: {error}") from error
    backend = package.Tokenizer(model)
    steps = [byte_level(add_prefix_space=False)]
    if cutting == "smollm":
        steps.insert(0, package.pre_tokenizers.Digits(individual_digits=True))
    elif cutting in _PATTERNS:
        split = package.pre_tokenizers.Split(package.Regex(_PATTERNS[cutting]), "isolated")
        steps = [split, byte_level(add_prefix_space=False, use_regex=False)]
    if cutting == "qwen2":
        backend.normalizer = package.normalizers.NFC()
    backend.pre_tokenizer = package.pre_tokenizers.Sequence(steps)
    backend.decoder = package.decoders.ByteLevel()
    added = {
        special: [
            package.AddedToken(token, special=special, normalized=False)
            for token, number in zip(tokens, kinds, strict=True)
            if number == wanted
        ]
        for special, wanted in ((True, _CONTROL), (False, _USER_DEFINED))
    }
    backend.add_special_tokens(added[True])
    backend.add_tokens(added[False])
    return backend


def roles_from_gguf(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the token names of `Tokenizer`'s roles that the metadata has.

    Raises:
        InvalidInputError: one is no token of the vocabulary.
    """
    tokens = metadata["tokenizer.ggml.tokens"]
    keys = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    roles = {}
    for role, key in keys.items():
        index = metadata.get(f"tokenizer.ggml.{key}_token_id")
        if index is None:
            continue
        if type(index) is not int or not 0 <= index < len(tokens):
            raise InvalidInputError(
                f"tokenizer.ggml.{key}_token_id: expected a number below {len(tokens)}, got {index!r:.80}"
            )
        roles[role] = tokens[index]
    return roles
