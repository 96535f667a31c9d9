"""Language: tokenizers, chat models behind a protocol, embedders behind a server.

    from embodied_mem.language import Tokenizer, OpenAIChatModel

Nothing heavy is imported before it is used.
"""

from .chat import ChatError, ChatModel, ChatReply, Prices, Usage, UsageMeter
from .json_answers import complete_json
from .openai_chat import OpenAIChatModel, ServerEmbedder
from .recorded_chat import RecordedChatModel
from .tokenizers import SPECIAL_TOKENS, Tokenizer, train_bpe

__all__ = [
    "SPECIAL_TOKENS",
    "ChatError",
    "ChatModel",
    "ChatReply",
    "OpenAIChatModel",
    "Prices",
    "RecordedChatModel",
    "ServerEmbedder",
    "Tokenizer",
    "Usage",
    "UsageMeter",
    "complete_json",
    "train_bpe",
]
