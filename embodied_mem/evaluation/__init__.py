"""Scores: paired success of deliveries with intervals, and the reports that show them.

    from embodied_mem.evaluation.score import score_deliveries
    from embodied_mem.evaluation.report import write_report

Import from the modules; the package itself imports nothing.
"""
