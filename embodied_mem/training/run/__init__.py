"""One run: its loop, its folder, its metrics, its throughput."""
