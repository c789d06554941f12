"""The leaderboard, also as CSV, Markdown and LaTeX; and model, data and settings behind it."""

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from manymatch.reporting.chart import styles
from manymatch.reporting.estimates import best_value
from manymatch.reporting.page import Section, gallery, method_address
from manymatch.reporting.sections import published
from manymatch.reporting.table import Block, Cell, Column, Heading, MachineFacts, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.metrics import Metrics
from manymatch.results.retrieval import metric
from manymatch.results.runs import WAYS, Kind, Run

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


METRICS = {
    "rsum": Column("rsum", "Both ways"),
    **{
        f"{way}.{key}": Column(metric(key).label, group)
        for way, group in published.WAY_LABELS.items()
        for key in ("r1", "r5", "r10", "medr")
    },
    **{
        f"multi.{way}.{key}": Column(metric(key).label, f"Multi-match, {group}")
        for way, group in WAYS.items()
        for key in ("map_at_r", "r_precision")
    },
    "coco_1k.rsum": Column("rsum", "1K"),
    **{
        f"classes.{setting}.{way}.{key}": Column(f"{metric(key).label}, {arrow}", group)
        for setting, group in (("all_classes", "All classes"), ("zero_shot", "Zero-shot classes"))
        for way, arrow in (("i2t", "i → t"), ("t2i", "t → i"))
        for key in ("r_precision", "r1")
    },
}
"""The columns by the names that `Record.numbers` gives."""
_COMPACT = {
    "Image → text R@1 / 5 / 10": ["i2t.r1", "i2t.r5", "i2t.r10"],
    "Text → image R@1 / 5 / 10": ["t2i.r1", "t2i.r5", "t2i.r10"],
    "rsum": ["rsum"],
    "MedR": ["i2t.medr", "t2i.medr"],
    "mAP@R": ["multi.i2t.map_at_r", "multi.t2i.map_at_r"],
    "R-P": ["multi.i2t.r_precision", "multi.t2i.r_precision"],
    "1K rsum": ["coco_1k.rsum"],
    "All classes R-P": [f"classes.all_classes.{way}.r_precision" for way in WAYS],
    "Zero-shot R-P": [f"classes.zero_shot.{way}.r_precision" for way in WAYS],
}
"""The columns of the Markdown and LaTeX tables, each with its metrics."""


def by_dataset(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each data set, in the given order (sorted by data set)."""
    groups = itertools.groupby(runs, key=lambda run: run.dataset)
    return {name: list(group) for name, group in groups}


def tables(runs: Sequence[Run], compact: bool = False) -> list[tuple[str, str, Table]]:
    """One data set's leaderboard: the setting, the gallery and the table of each setting and
    gallery, because numbers of different settings or galleries are not comparable."""
    galleries = dict.fromkeys(gallery(run.provenance) for run in runs)
    groups = {
        kind: [run for run in runs if (run.provenance.setting, gallery(run.provenance)) == kind]
        for kind in itertools.product(published.MARKS, galleries)
    }
    number = styles(runs)
    return [(*kind, _table(group, number, compact)) for kind, group in groups.items() if group]


def _table(runs: list[Run], styles: dict[str, int], compact: bool) -> Table:
    """The runs of one setting; columns without a number are left out."""
    columns = [*METRICS.items()]
    if compact:
        pairs = [(group, key) for group, keys in _COMPACT.items() for key in keys]
        columns = [(key, replace(METRICS[key], group=group)) for group, key in pairs]
    numbers = [run.metrics.numbers() for run in runs]
    best = {
        key: best_value([row.get(key) for row in numbers], metric(key).lower_is_better)
        for key, _ in columns
    }
    rows = []
    for run, row in zip(runs, numbers, strict=True):
        href = method_address(run.dataset, run.preset)
        badges = (run.provenance.setting, run.kind) if run.kind else (run.provenance.setting,)
        cells = [
            Cell(number_text(key, row[key]), row[key], row[key] == top) if key in row else Cell()
            for key, top in best.items()
        ]
        name = Cell(run.preset, style=styles[run.preset], href=href)
        rows.append([name, Cell(badges=badges), *cells])
    heads = [Column("Method", numeric=False), Column("Setting", numeric=False)]
    title = f"Leaderboard of {runs[0].dataset}, {runs[0].provenance.setting}"
    return Table(title, [*heads, *(column for _, column in columns)], rows).filled_columns()


def number_text(key: str, value: float) -> str:
    """The number `key` with the decimals of its metric."""
    digits = metric(key).digits
    return f"{value:g}" if digits is None else f"{value:.{digits}f}"


def blocks(runs: Sequence[Run]) -> list[Block]:
    """The compact tables of all data sets for a terminal, each below its setting and sizes."""
    return [
        block
        for name, group in by_dataset(runs).items()
        for setting, size, table in tables(group, compact=True)
        for block in (Heading(f"{name}, {setting}", size), table.without("Setting"))
    ]


def both_ways(metrics: Metrics) -> Table:
    """The numbers of one result: a row for each direction, and one for sums over both.

    Mean ranks and the numbers of set elements are left out.
    """
    rows: dict[str, dict[str, Cell]] = {way: {} for way in (*published.WAY_LABELS, "")}
    names: dict[str, None] = {}
    for key, value in metrics.numbers().items():
        parts = key.split(".")
        if parts[0] == "sets" or parts[-1] == "meanr":
            continue
        way = next((part for part in parts if part in published.WAY_LABELS), "")
        labels = [metric(part).label for part in parts if part != way]
        name = " ".join(labels)
        names[name] = None
        rows[way][name] = Cell(number_text(key, value), value)
    return Table(
        "Both directions",
        [Column("", numeric=False), *map(Column, names)],
        [
            [Cell(published.WAY_LABELS.get(way, "Both")), *(cells.get(n, Cell()) for n in names)]
            for way, cells in rows.items()
        ],
    )


def to_csv(runs: list[Run]) -> str:
    """Every number of every run; an empty field where a run has no number."""
    identity = ["dataset", "preset", "method", "features", "split", "seed", "setting"]
    columns = [*identity, "images", "captions"]
    rows = [run.provenance.model_dump(include={*columns}) | run.metrics.numbers() for run in runs]
    keys = {key: None for row in rows for key in row if key not in columns}
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*columns, *keys], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def to_markdown(runs: list[Run]) -> str:
    """For each data set the compact tables, the tables beside the papers' numbers, and what the
    labels mean."""
    parts = []
    for name, group in by_dataset(runs).items():
        for _, size, table in tables(group, compact=True):
            head = f"**{name}** ({size})"
            parts.append("\n".join([head, "", *table.to_markdown(merge=True)]))
        parts += published.to_markdown(name, group)
    notes = [f"*{term}*: {meaning}." for term, meaning in terms(runs)]
    pairs = "Pairs of numbers: image → text / text → image. Best of a column in bold."
    return "\n\n".join([*parts, " ".join([pairs, *notes])]) + "\n"


def to_latex(results: AllResults) -> list[str]:
    """The compact tables as LaTeX, each below a comment with the data set and the sizes."""
    return [
        f"% {name}: {size}\n{table.to_latex(merge=True)}"
        for name, group in by_dataset(results.runs).items()
        for _, size, table in tables(group, compact=True)
    ]


def terms(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The settings and kinds that occur among the runs, each with its meaning."""
    settings = sorted({run.provenance.setting for run in runs})
    kinds = {run.kind for run in runs}
    return [(name, MEANING[name]) for name in settings] + [
        (kind, meaning) for kind, meaning in KINDS.items() if kind in kinds
    ]


def section(results: AllResults) -> list[Block]:
    """The leaderboard of a data set."""
    runs = results.runs
    if not runs:
        return []
    sizes = "; ".join(dict.fromkeys(gallery(run.provenance) for run in runs))
    board = [table for *_, table in tables(runs)]
    blocks: list[Block] = [Note(f"Scored on {sizes}."), *board]
    blocks += [Note(f"{term}: {meaning}.") for term, meaning in terms(runs)]
    if not results.judged:
        note = "This data set has no judgments beyond the pairs, so there is no multi-match metric."
        blocks.append(Note(note))
    return blocks


_FACTS = {
    "method": "Method",
    "features": "Features",
    "setting": "Setting",
    "split": "Split",
    "images": "Images",
    "captions": "Captions",
    "seed": "Seed",
    "parameters": "Parameters",
    "checkpoint_sha256": "Checkpoint (SHA-256)",
    "data_sha256": "Data (SHA-256)",
    "code_sha256": "Code (SHA-256)",
    "version": "ManyMatch version",
    "members": "Members",
    "rerank_beta": "Re-ranking, beta",
}
_HIDDEN = {"dataset", "preset", "resolved", "defaults"}
_MAX_LENGTH = 24
"""A longer word, such as a hash, is shortened."""


def provenance(results: AllResults) -> list[Block]:
    """A row for each fact, a column for each run; unknown facts are shown as they are."""
    runs = results.runs
    if not runs:
        return []
    records = [run.provenance.model_dump() for run in runs]
    keys = dict.fromkeys(_FACTS) | dict.fromkeys(key for record in records for key in record)
    rows = [
        [Cell(_FACTS.get(key, key)), *(_fact(key, record.get(key)) for record in records)]
        for key in keys
        if key not in _HIDDEN and any(record.get(key) not in (None, ()) for record in records)
    ]
    columns = [Column("Preset", numeric=False), *run_columns(runs, numeric=False)]
    table = Table(f"Provenance of the results on {runs[0].dataset}", columns, rows)
    return [table, MachineFacts(runs[0].dataset)]


def run_columns(runs: Sequence[Run], numeric: bool = True) -> list[Column]:
    """A column for each run."""
    number = styles(runs)
    hrefs = {run.preset: method_address(run.dataset, run.preset) for run in runs}
    return [
        Column(name, numeric=numeric, style=number[name], href=href) for name, href in hrefs.items()
    ]


def _fact(key: str, value: Any) -> Cell:
    if key == "members" and value:
        value = ", ".join(f"{member['preset']} (seed {member['seed']})" for member in value)
    if isinstance(value, int | float) and key != "seed":
        return Cell(f"{value:,}")
    text = str(value) if value not in (None, ()) else ""
    if len(text) > _MAX_LENGTH and " " not in text:
        return Cell(f"{text[:12]}…", hover=text)
    return Cell(text)


def _markdown(results: AllResults) -> list[str]:
    return [to_markdown(results.runs)]


SECTIONS = [
    Section("Results", "leaderboard", 10, "Leaderboard", section, (), "", _markdown, to_latex),
    Section("Results", "provenance", 60, "Provenance", provenance),
]
