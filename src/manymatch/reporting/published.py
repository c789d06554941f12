"""What the papers print: three CSV files with one value in each line.

`published_results.csv`: retrieval results. `metric` is the name of the number in our own result
files (`Record.numbers`). `setting` is the gallery (COCO's 1k and 5k) or the ground truth. `row`
keeps several rows of one method in a table apart. `marks` are what the table marks of ensemble,
cross_attention and external_data. Features and encoder are empty if the paper does not name them.

`published_costs.csv`: costs in multiply-adds (of one similarity), in multiples of VSE∞'s
(`relative`: of similarity and retrieval of ten items), or in seconds: `step` of training, `test`
and its part `ranking`, and of a text query `parse`, `encode`, `search` and their sum `query`. The
last two have the numbers of images for which the value holds. Hardware is empty if the paper names
none.

`published_ablations.csv`: ablations on the papers' data and settings. They stand in tables of their
own. All values are as printed.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from manymatch.reporting.table import Cell, Column, Table

Line = dict[str, str]

ABLATION_METRICS: dict[str, tuple[str, str, str]] = {
    "dive-similarity": ("DivE", "table 3", ""),
    "dive-slots": ("DivE", "section B.3", ""),
    "dive-elements": ("DivE", "table 4", "hyperparameter: embedding set size"),
    "dive-iterations": ("DivE", "table 4", "hyperparameter: iterations"),
    "dive-alpha": ("DivE", "table 4", "hyperparameter: smooth-Chamfer scale"),
    "msrm-losses": ("MSRM", "table 4", ""),
    "maxmatch-losses": ("MaxMatch", "table 3", ""),
    "cora-layers": ("CORA", "table 3", "number of GAT layers"),
    "cora-graph": ("CORA", "table 3", "graph structure"),
    "cora-losses": ("CORA", "table 3", "losses"),
}
"""For the name of an ablation the paper, its table, and how the column `what` begins."""

SET_METRICS = (
    ("DivE", "table 3", "within-set circular variance"),
    ("DivE", "table 5", ""),
    ("MaxMatch", "table 4", ""),
)
"""The same for the section on sets: how wide sets are, and what single elements retrieve."""


@dataclass(frozen=True)
class PublishedResult:
    """A row of a paper's table on one setting of a data set; `values` by metric."""

    paper: str
    section: str
    row: str
    method: str
    venue: str
    features: str
    text_encoder: str
    marks: str
    dataset: str
    setting: str
    values: dict[str, float]


def printed(kind: str, *varying: str) -> Iterator[tuple[Line, list[Line]]]:
    """The lines that differ in the `varying` columns alone, in the order of the file: the other
    columns, which they share, and the varying columns of each."""
    groups: dict[tuple[tuple[str, str], ...], list[Line]] = {}
    path = Path(__file__).with_name(f"published_{kind}.csv")
    with path.open(encoding="utf-8", newline="") as stream:
        for line in csv.DictReader(stream):
            values = {name: line.pop(name) for name in varying}
            groups.setdefault(tuple(line.items()), []).append(values)
    for shared, lines in groups.items():
        yield dict(shared), lines


@cache
def published_results() -> tuple[PublishedResult, ...]:
    """All published results, in the order of the file."""
    return tuple(
        PublishedResult(**row, values={line["metric"]: float(line["value"]) for line in lines})
        for row, lines in printed("results", "metric", "value")
    )


@cache
def published_ablations() -> dict[tuple[str, str, str], Table]:
    """The table of each ablation by paper, section and `what`, in the order of the file."""
    tables = {}
    for subject, lines in printed("ablations", "setting", "metric", "value"):
        paper, section, what = subject.values()
        metrics = dict.fromkeys(line["metric"] for line in lines)
        settings = dict.fromkeys(line["setting"] for line in lines)
        values = {(line["setting"], line["metric"]): line["value"] for line in lines}
        tables[paper, section, what] = Table(
            f"{paper}, {section}: {what}",
            [Column("Setting", numeric=False), *(Column(m.replace("_", " ")) for m in metrics)],
            [
                [Cell(setting), *(Cell(values.get((setting, metric), "")) for metric in metrics)]
                for setting in settings
            ],
        )
    return tables


def tables_beside(ablation: str) -> list[Table]:
    """What a paper prints of the question that the ablation of this name asks."""
    return printed_tables(ABLATION_METRICS[ablation]) if ablation in ABLATION_METRICS else []


def printed_tables(*wanted: tuple[str, str, str]) -> list[Table]:
    """The tables of ablations by paper, table and the beginning of the column `what`."""
    return [
        table
        for paper, section, start in wanted
        for subject, table in published_ablations().items()
        if subject[:2] == (paper, section) and subject[2].startswith(start)
    ]
