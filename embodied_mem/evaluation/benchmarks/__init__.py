"""What several worlds' benchmarks share: agents by text, lifelong agents, deliveries."""
