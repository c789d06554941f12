"""The ablations that the papers print: `published_ablations.csv`, one value for each line.

The values are as printed, on the papers' data and settings. They stand in tables of their own.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from manymatch.reporting.table import Cell, Column, Table, names

_FILE = Path(__file__).with_suffix(".csv")

OF_ABLATION: dict[str, tuple[str, str, str]] = {
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

OF_SETS = (
    ("DivE", "table 3", "within-set circular variance"),
    ("DivE", "table 5", ""),
    ("MaxMatch", "table 4", ""),
)
"""The same for the section on sets: how wide sets are, and what single elements retrieve."""


@cache
def published_ablations() -> tuple[tuple[str, str, str, Table], ...]:
    """Paper, section, `what` and table of each ablation, in the order of the file."""
    rows: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    with _FILE.open(encoding="utf-8", newline="") as stream:
        for line in csv.DictReader(stream):
            settings = rows.setdefault((line["paper"], line["section"], line["what"]), {})
            settings.setdefault(line["setting"], {})[line["metric"]] = line["value"]
    return tuple((*place, _table(place, settings)) for place, settings in rows.items())


def _table(place: tuple[str, str, str], settings: dict[str, dict[str, str]]) -> Table:
    paper, section, what = place
    metrics = list(dict.fromkeys(metric for values in settings.values() for metric in values))
    return Table(
        f"{paper}, {section}: {what}",
        [Column("Setting", numeric=False), *(Column(name.replace("_", " ")) for name in metrics)],
        [
            [Cell(setting), *names(*(values.get(metric, "") for metric in metrics))]
            for setting, values in settings.items()
        ],
    )


def tables_beside(ablation: str) -> list[Table]:
    """What a paper prints of the question that the ablation of this name asks."""
    return _tables_of(*OF_ABLATION[ablation]) if ablation in OF_ABLATION else []


def tables_of_sets() -> list[Table]:
    """What the papers print of the elements of their sets."""
    return [table for place in OF_SETS for table in _tables_of(*place)]


def _tables_of(paper: str, section: str, what: str) -> list[Table]:
    return [
        table
        for of_paper, of_section, of_what, table in published_ablations()
        if (of_paper, of_section) == (paper, section) and of_what.startswith(what)
    ]


def to_markdown(ablation: str) -> str:
    """The papers' tables, marked as published; nothing if no paper asks the same question."""
    return "".join(
        "\n".join(["", f"*published* ({table.title})", "", *table.to_markdown()]) + "\n"
        for table in tables_beside(ablation)
    )
