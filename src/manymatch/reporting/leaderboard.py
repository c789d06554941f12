"""The leaderboard: which columns it has, which value is the best, and its CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from manymatch.reporting import comparison, markdown
from manymatch.results.runs import Kind, Run
from manymatch.system import files
from manymatch.system.errors import DataError

START, END = "<!-- results -->", "<!-- /results -->"
"""What stands around the results table in a README."""

MEANING = {
    "small-scale": "our own data, features or settings, so compare within the table, "
    "not with published numbers",
    "reproduced": "the paper's data and settings",
    "external": "embeddings or scores of a model that was made elsewhere",
}
"""What each `setting` of a result promises."""

KINDS: dict[Kind, str] = {
    "ensemble": "ranked by the mean of several models' scores",
    "re-ranked": "ranked by the scores of captions mixed with those of their least likely entities",
    "re-ranked ensemble": "re-ranked by the means of several models' scores, of captions and of "
    "entities",
}


@dataclass(frozen=True)
class Column:
    """A column of numbers; `key` as in `results.numbers`."""

    key: str
    label: str
    group: str
    lower_is_better: bool = False

    def text(self, value: float) -> str:
        """Percentages with one digit, ranks without a needless one."""
        return f"{value:g}" if self.lower_is_better else f"{value:.1f}"


def _directed(way: str, group: str) -> list[Column]:
    recalls = [Column(f"{way}.r{k}", f"R@{k}", group) for k in (1, 5, 10)]
    return [*recalls, Column(f"{way}.medr", "MedR", group, lower_is_better=True)]


def _multi(way: str, group: str) -> list[Column]:
    return [
        Column(f"multi.{way}.map_at_r", "mAP@R", group),
        Column(f"multi.{way}.r_precision", "R-P", group),
    ]


def _of_classes(setting: str, group: str) -> list[Column]:
    return [
        Column(f"classes.{setting}.{way}.{metric}", f"{label}, {arrow}", group)
        for way, arrow in (("i2t", "i → t"), ("t2i", "t → i"))
        for metric, label in (("r_precision", "R-P"), ("r1", "R@1"))
    ]


COLUMNS = [
    Column("rsum", "rsum", "Both ways"),
    *_directed("i2t", "Image → text"),
    *_directed("t2i", "Text → image"),
    *_multi("i2t", "Multi-match, image → text"),
    *_multi("t2i", "Multi-match, text → image"),
    Column("coco_1k.rsum", "rsum", "1K"),
    *_of_classes("all_classes", "All classes"),
    *_of_classes("zero_shot", "Zero-shot classes"),
]


@dataclass(frozen=True)
class Cell:
    """A number as printed; None where the run has no such number."""

    text: str | None
    best: bool


@dataclass(frozen=True)
class Table:
    """A leaderboard of one data set: `cells[run][column]`."""

    runs: list[Run]
    columns: list[Column]
    cells: list[list[Cell]]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The columns' groups from left to right, with how many columns each spans."""
        return [
            (group, len(list(columns)))
            for group, columns in groupby(self.columns, key=lambda column: column.group)
        ]


def by_dataset(runs: Sequence[Run]) -> list[tuple[str, list[Run]]]:
    """The runs of each data set, in the order given (sorted by data set)."""
    return [(name, list(group)) for name, group in groupby(runs, key=lambda run: run.dataset)]


def tables(runs: Sequence[Run]) -> list[Table]:
    """The leaderboard of one data set's runs: a table a setting, so that numbers of different worth
    stand in no column together."""
    groups = [[run for run in runs if run.provenance.setting == mark] for mark in comparison.MARKS]
    return [table(group) for group in groups if group]


def table(runs: list[Run]) -> Table:
    """One table; columns that none of them has are left out."""
    values = [run.metrics.numbers() for run in runs]
    columns = [column for column in COLUMNS if any(column.key in row for row in values)]
    best = {column.key: _best(column, values) for column in columns}
    cells = [[_cell(column, row, best[column.key]) for column in columns] for row in values]
    return Table(runs, columns, cells)


def _best(column: Column, rows: list[dict[str, float]]) -> float | None:
    """The best value, if there is more than one to choose from."""
    present = [row[column.key] for row in rows if column.key in row]
    if len(present) < 2:
        return None
    return min(present) if column.lower_is_better else max(present)


def _cell(column: Column, row: dict[str, float], best: float | None) -> Cell:
    value = row.get(column.key)
    if value is None:
        return Cell(None, best=False)
    return Cell(column.text(value), best=value == best)


IDENTITY = ["dataset", "preset", "method", "features", "split", "seed", "setting"]
SIZES = ["images", "captions"]


def to_csv(runs: list[Run]) -> str:
    """Every number of every run at full precision; an empty field where a run has none."""
    rows = [
        run.provenance.model_dump(include={*IDENTITY, *SIZES}) | run.metrics.numbers()
        for run in runs
    ]
    keys = {key: None for row in rows for key in row if key not in {*IDENTITY, *SIZES}}
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*IDENTITY, *SIZES, *keys], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _r_precision(setting: str) -> list[str]:
    return [f"classes.{setting}.{way}.r_precision" for way in ("i2t", "t2i")]


_COMPACT = {
    "Image → text R@1 / 5 / 10": ["i2t.r1", "i2t.r5", "i2t.r10"],
    "Text → image R@1 / 5 / 10": ["t2i.r1", "t2i.r5", "t2i.r10"],
    "rsum": ["rsum"],
    "MedR": ["i2t.medr", "t2i.medr"],
    "mAP@R": ["multi.i2t.map_at_r", "multi.t2i.map_at_r"],
    "R-P": ["multi.i2t.r_precision", "multi.t2i.r_precision"],
    "1K rsum": ["coco_1k.rsum"],
    "All classes R-P": _r_precision("all_classes"),
    "Zero-shot R-P": _r_precision("zero_shot"),
}
"""Columns of the Markdown table, each several numbers wide."""


def to_markdown(runs: list[Run]) -> str:
    """Of each data set a compact table a setting, those beside the papers' numbers, and what
    `setting` means."""
    parts = [
        part
        for name, group in by_dataset(runs)
        for part in (
            *(_markdown_table(name, board) for board in tables(group)),
            *comparison.to_markdown(name, group),
        )
    ]
    terms = [*settings(runs), *kinds(runs)]
    notes = [f"*{term}*: {meaning}." for term, meaning in terms]
    pairs = "Pairs of numbers: image → text / text → image. Best of a column in bold."
    return "\n\n".join([*parts, " ".join([pairs, *notes])]) + "\n"


def _markdown_table(dataset: str, board: Table) -> str:
    runs = board.runs
    keys = [column.key for column in board.columns]
    shown = {head: group for head, group in _COMPACT.items() if group[0] in keys}
    head = ["Method", "Setting", *shown]
    rows = []
    for run, cells in zip(runs, board.cells, strict=True):
        row = dict(zip(keys, cells, strict=True))
        compact = [" / ".join(_bold(row[key]) for key in group) for group in shown.values()]
        rows.append([run.preset, _setting(run), *compact])
    return "\n".join([f"**{dataset}** ({sizes(runs)})", "", *markdown.table(head, rows, texts=2)])


def _setting(run: Run) -> str:
    return f"{run.provenance.setting}, {run.kind}" if run.kind else run.provenance.setting


def sizes(runs: list[Run]) -> str:
    """On what the runs were scored: "test: 300 images, 1,500 captions"."""
    galleries = {
        (run.provenance.split, run.provenance.images, run.provenance.captions): None for run in runs
    }
    return "; ".join(
        f"{split}: {images:,} images, {captions:,} captions"
        for split, images, captions in galleries
    )


def settings(runs: list[Run]) -> list[tuple[str, str]]:
    """The settings that occur among the runs, each with what it promises."""
    names = sorted({run.provenance.setting for run in runs})
    return [(name, MEANING[name]) for name in names]


def kinds(runs: list[Run]) -> list[tuple[str, str]]:
    """The kinds that occur among the runs, each with what it means."""
    there = {run.kind for run in runs}
    return [(kind, meaning) for kind, meaning in KINDS.items() if kind in there]


def _bold(cell: Cell) -> str:
    text = cell.text or "-"
    return f"**{text}**" if cell.best else text


def update_readme(readme: Path, leaderboard_md: Path) -> None:
    """Put the Markdown leaderboard between the README's results markers, and touch nothing else.

    Raises `DataError` if either file or the one pair of markers is missing.
    """
    board = _text(leaderboard_md, "run 'manymatch report'")
    text = _text(readme, f"write one with the lines {START} and {END}")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end) or START in rest or END in before + after:
        raise DataError(f"{readme}: expected one line {START} and below it one line {END}")
    files.write_text(readme, f"{before}{START}\n\n{board.strip()}\n\n{END}{after}")


def _text(path: Path, remedy: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; {remedy}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
