"""One HTML file to look at: episodes of a trace, or what a memory folder holds and held. See `terminal`."""
