"""Programs that measure or draw something once: parity, figures, memory of a plan."""
