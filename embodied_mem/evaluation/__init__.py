"""Scores: what a benchmark is, paired success with intervals, and the reports that show and compare them.

    from embodied_mem.evaluation.benchmark import Benchmark, EpisodeResult, option
    from embodied_mem.evaluation.compare import compare, read_report
    from embodied_mem.evaluation.evaluate import main                 # the command over registered benchmarks

Import from the modules; the package itself imports nothing.
"""
