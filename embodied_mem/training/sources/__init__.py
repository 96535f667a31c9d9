"""Where models and tokenizers come from: made from scratch, or read from published files."""
