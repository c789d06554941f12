"""The plan of a file of an experiment, as the command `experiment` runs the plan."""

from manymatch.config.layout import Layout
from manymatch.experiments.grid import Options, experiment_of_file


def plan_of(path, **options):
    """`options` are those of `Options`. The checkout is the folder that holds `experiments/`."""
    return experiment_of_file(path, Layout(path.parents[1]), Options(**options)).plan
