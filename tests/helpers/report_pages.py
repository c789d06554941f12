"""The pages that the stage `report` writes, and changes of what it reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manymatch.reporting.report import report
from manymatch.reporting.table import Table


def pages_of(reports: Path) -> dict[str, str]:
    """Make the report; the HTML of each page by its name: `index`, `scenes-results` ..."""
    report(reports, plans_of(reports))
    return written_pages(reports)


def plans_of(reports: Path) -> Path:
    """The folder of experiments beside a made-up folder of results."""
    return reports.parent / "experiments"


def written_pages(reports: Path) -> dict[str, str]:
    """The HTML of each page that a report has written."""
    return {path.stem: path.read_text(encoding="utf-8") for path in paths_of(reports)}


def paths_of(reports: Path) -> list[Path]:
    return [reports / "index.html", *sorted((reports / "pages").iterdir())]


def section_of(page: str, anchor: str) -> str:
    """The HTML of one section."""
    return page.partition(f'<section id="{anchor}"')[2].partition("</section>\n")[0]


def texts_of(table: Table) -> list[list[str]]:
    """The texts of a table's cells, row by row."""
    return [[cell.plain for cell in row] for row in table.rows]


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Change the value of a JSON file."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
