"""Programs, run in the repository's root as `python experiments/NAME.py` with the package installed.

Python puts a program's own folder on the path: programs import their siblings by bare names, and modules in a folder
below import each other relatively, so that tests find all of them as `experiments.NAME`, too.
"""
