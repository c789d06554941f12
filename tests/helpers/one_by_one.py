"""Replaces worker processes, which start slowly, by one run after the other in this process."""

from manymatch.experiments.workers import caught


def run_one_by_one(monkeypatch):
    """Let experiments and searches do one run after the other.

    Returns:
        A list to which the label of each run is added when the run starts.
    """
    labels = []

    def one_by_one(work, runs, *_):
        for run in runs:
            labels.append(run.label)
            yield run, caught(work, run)

    monkeypatch.setattr("manymatch.experiments.workers.side_by_side", one_by_one)
    return labels
