"""Language: tokenizers, chat models behind a protocol, embedders behind a server.

    from embodied_mem.language import Tokenizer, OpenAIChatModel

Nothing heavy is imported before it is used.
"""

from .chat import ChatError, ChatModel, ChatReply, OpenAIChatModel, RecordedChatModel, Usage, UsageMeter
from .embedders import ServerEmbedder
from .tokenizers import SPECIAL_TOKENS, Tokenizer, train_bpe

__all__ = [
    "SPECIAL_TOKENS",
    "ChatError",
    "ChatModel",
    "ChatReply",
    "OpenAIChatModel",
    "RecordedChatModel",
    "ServerEmbedder",
    "Tokenizer",
    "Usage",
    "UsageMeter",
    "train_bpe",
]
