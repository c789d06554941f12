"""The evaluated results of a data set that can be compared: one split, the same queries."""

from __future__ import annotations

from manymatch.config.layout import Layout
from manymatch.results.metrics import Metrics, Provenance
from manymatch.results.ranked import Ranked
from manymatch.results.runs import Direction
from manymatch.util.errors import DataError, ManyMatchError
from manymatch.util.progress import say


class Method:
    """One evaluated result: its metrics, and its ranking of both directions."""

    def __init__(self, layout: Layout, dataset: str, name: str) -> None:
        files = layout.result(dataset, name)
        self.name = name
        self.metrics, self.provenance = Metrics.read(files.full), Provenance.read(files.provenance)
        self.ways: dict[Direction, Ranked] = {
            way: Ranked(files.run / f"{way}.parquet") for way in ("i2t", "t2i")
        }
        self.ids = [ranked.ids for ranked in self.ways.values()]


def read_methods(layout: Layout, dataset: str) -> list[Method]:
    """The results with the queries that most results have, best first."""
    names = sorted(path.stem for path in (layout.reports / "results" / dataset).glob("*.json"))
    found = []
    for name in names:
        if (layout.run(dataset, name) / "t2i.parquet").is_file():
            try:
                found.append(Method(layout, dataset, name))
            except ManyMatchError as error:
                say(f"left out: {name}: {error}")
        else:
            say(f"left out: {name} has no table of ranks. Run 'dvc repro', or evaluate it again")
    if not found:
        raise DataError(
            f"{dataset}: no results to explore in {layout.reports / 'runs' / dataset}. Run 'dvc "
            "repro', or 'manymatch evaluate DATASET PRESET' for a trained model"
        )
    found.sort(key=lambda method: (-method.metrics.rsum, method.name))
    groups: list[list[Method]] = []
    for method in found:
        group = next((group for group in groups if group[0].ids == method.ids), [])
        if not group:
            groups.append(group)
        group.append(method)
    largest = max(groups, key=len)  # of equally large ones the first, which has the highest rsum
    for method in found:
        if method not in largest:
            say(f"left out: {method.name} has other queries than {largest[0].name}")
    return largest
