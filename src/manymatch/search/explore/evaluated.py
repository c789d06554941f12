"""The evaluated results of a data set that can be compared: one split, the same queries."""

from __future__ import annotations

from collections.abc import Iterable

from manymatch.config.layout import Layout
from manymatch.results.metrics import Metrics, Provenance
from manymatch.results.ranked import Ranked
from manymatch.results.runs import Direction
from manymatch.util.errors import DataError
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


def read_methods(layout: Layout, dataset: str) -> Iterable[Method]:
    """The results with the queries of the best one, best first."""
    names = sorted(path.stem for path in (layout.reports / "results" / dataset).glob("*.json"))
    found = []
    for name in names:
        if (layout.run(dataset, name) / "t2i.parquet").is_file():
            found.append(Method(layout, dataset, name))
        else:
            say(f"left out: {name} has no table of ranks. Run 'dvc repro', or evaluate it again")
    if not found:
        raise DataError(
            f"{dataset}: no results to explore in {layout.reports / 'runs' / dataset}. Run 'dvc "
            "repro', or 'manymatch evaluate DATASET PRESET' for a trained model"
        )
    found.sort(key=lambda method: (-method.metrics.rsum, method.name))
    first = found[0]
    for method in found:
        if all(ranked.ids.equals(first.ways[way].ids) for way, ranked in method.ways.items()):
            yield method
        else:
            say(f"left out: {method.name} has other queries than {first.name}")
