"""Model, data and settings behind the results."""

from typing import Any

from manymatch.reporting.chart import styles
from manymatch.reporting.page import Section, method_address
from manymatch.reporting.table import Block, Cell, Column, MachineFacts, Table
from manymatch.results.all_results import AllResults

_LABELS = {
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


def section(results: AllResults) -> list[Block]:
    """A row for each fact, a column for each run; unknown facts are shown as they are."""
    runs = results.runs
    if not runs:
        return []
    records = [run.provenance.model_dump() for run in runs]
    keys = dict.fromkeys(_LABELS) | dict.fromkeys(key for record in records for key in record)
    rows = [
        [Cell(_LABELS.get(key, key)), *(_cell(key, record.get(key)) for record in records)]
        for key in keys
        if key not in _HIDDEN and any(record.get(key) not in (None, ()) for record in records)
    ]
    number = styles(runs)
    columns = [Column("Preset", numeric=False)]
    for run in runs:
        href = method_address(run.dataset, run.preset)
        columns.append(Column(run.preset, numeric=False, style=number[run.preset], href=href))
    table = Table(f"Provenance of the results on {runs[0].dataset}", columns, rows)
    return [table, MachineFacts(runs[0].dataset)]


def _cell(key: str, value: Any) -> Cell:
    if key == "members" and value:
        value = ", ".join(f"{member['preset']} (seed {member['seed']})" for member in value)
    if isinstance(value, int | float) and key != "seed":
        return Cell(f"{value:,}")
    text = str(value) if value not in (None, ()) else ""
    if len(text) > _MAX_LENGTH and " " not in text:
        return Cell(f"{text[:12]}…", hover=text)
    return Cell(text)


SECTIONS = [Section("Results", "provenance", 60, "Provenance", section)]
