"""What the papers print of their ablations: `published_ablations.csv`, a fact a line.

Values are as printed, on the papers' data and settings; they stand `beside` ours of the same
question, in tables of their own.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from manymatch.reporting import markdown

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
"""By an ablation's name the paper, the table, and how `what` of it begins."""

OF_SETS = (
    ("DivE", "table 3", "within-set circular variance"),
    ("DivE", "table 5", ""),
    ("MaxMatch", "table 4", ""),
)
"""The same of what the report tells of sets: how wide they are, and what single elements find."""


@dataclass(frozen=True)
class PublishedAblation:
    """A part of a paper's table: `rows` by setting, of each the values as printed by metric."""

    paper: str
    section: str
    what: str
    rows: dict[str, dict[str, str]]

    @property
    def title(self) -> str:
        return f"{self.paper}, {self.section}: {self.what}"

    @property
    def squared_variance(self) -> bool:
        """Whether its circular variances have the norm squared."""
        return self.paper == "MaxMatch" and "circular variance" in self.what

    @property
    def metrics(self) -> list[str]:
        """Those of any row."""
        return list(dict.fromkeys(metric for values in self.rows.values() for metric in values))

    @property
    def heads(self) -> list[str]:
        return ["Setting", *(metric.replace("_", " ") for metric in self.metrics)]

    @property
    def lines(self) -> list[list[str]]:
        """A row a setting: its name and values."""
        return [
            [setting, *(values.get(metric, "-") for metric in self.metrics)]
            for setting, values in self.rows.items()
        ]


@cache
def published_ablations() -> tuple[PublishedAblation, ...]:
    """All of them, in the file's order."""
    found: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    with _FILE.open(encoding="utf-8", newline="") as stream:
        for line in csv.DictReader(stream):
            rows = found.setdefault((line["paper"], line["section"], line["what"]), {})
            rows.setdefault(line["setting"], {})[line["metric"]] = line["value"]
    return tuple(PublishedAblation(*place, rows) for place, rows in found.items())


def beside(ablation: str) -> list[PublishedAblation]:
    """What a paper prints of the question that the ablation of this name asks."""
    return _of(*OF_ABLATION[ablation]) if ablation in OF_ABLATION else []


def of_sets() -> list[PublishedAblation]:
    """What the papers print of their sets' elements."""
    return [each for place in OF_SETS for each in _of(*place)]


def _of(paper: str, section: str, what: str) -> list[PublishedAblation]:
    return [
        each
        for each in published_ablations()
        if (each.paper, each.section) == (paper, section) and each.what.startswith(what)
    ]


def to_markdown(ablation: str) -> str:
    """A table for each, marked; nothing where no paper asks the same."""
    return "".join(
        "\n".join(["", f"*published* ({each.title})", "", *markdown.table(each.heads, each.lines)])
        + "\n"
        for each in beside(ablation)
    )
