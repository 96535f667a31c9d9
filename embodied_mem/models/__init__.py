"""Models in Flax NNX: one decoder for several families, LoRA, Soft-Mem, batched sampling, checkpoint import.

    from embodied_mem.models.config import preset
    from embodied_mem.models.decoder import Decoder

Import from the modules; the package itself imports nothing.
"""
