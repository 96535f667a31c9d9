"""What is optimised: supervised losses, the GRPO loss, and the batches they are computed on."""
