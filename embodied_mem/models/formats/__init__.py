"""Files of published models: safetensors in Hugging Face folders, GGUF, PEFT adapters."""
