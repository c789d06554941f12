"""The results in README.md and docs/results.md, between two markers in each page."""

from __future__ import annotations

from pathlib import Path

from manymatch.util import files
from manymatch.util.errors import DataError

START, END = "<!-- results -->", "<!-- /results -->"
README_TABLE = "scenes-study"
"""The experiment whose table README.md shows."""
_COLUMNS = 6
"""The columns that README.md shows; docs/results.md has all."""


def update_pages(readme: Path, results: Path, leaderboard_md: Path) -> None:
    """Put the Markdown leaderboard between the markers of the page `results`, and the table of
    `README_TABLE` between the markers of `readme`.

    Raises:
        DataError: a file, a pair of markers, or the table is missing. No page is then changed.
    """
    board = _text(leaderboard_md, "Run 'manymatch report'")
    pages = {}
    for page, shown in ((results, board), (readme, readme_block(board, leaderboard_md))):
        old = _text(page, f"Write the page, with the lines {START} and {END}")
        before, start, rest = old.partition(START)
        _, end, after = rest.partition(END)
        if not (start and end) or START in rest or END in before + after:
            raise DataError(f"{page}: expected one line {START} and below it one line {END}")
        pages[page] = f"{before}{START}\n\n{shown.strip()}\n\n{END}{after}"
    for path, text in pages.items():
        files.write_through(path, text)


def readme_block(board: str, path: Path) -> str:
    """The part of the leaderboard that README.md shows: the caption of `README_TABLE`, the first
    columns of the table, and the line that explains the columns."""
    _, caption, rest = board.strip().partition(f"**{README_TABLE}** (")
    if not caption:
        raise DataError(
            f"{path}: the table of the experiment '{README_TABLE}' is missing. "
            f"Run the experiment on 'scenes', then 'manymatch report'"
        )
    head, table, *others = f"{caption}{rest}".split("\n\n")[:3]
    cells = (line.strip("| ").split(" | ")[:_COLUMNS] for line in table.splitlines())
    lines = [f"| {' | '.join(row)} |" for row in cells]
    # The sentence that explains the other columns goes with them.
    explained = [
        ". ".join(text for text in part.split(". ") if not text.startswith("Log variance"))
        for part in others
        if part[:2] != "**"
    ]
    return "\n\n".join([head, "\n".join(lines), *explained])


def _text(path: Path, remedy: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: the file is missing. {remedy}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
