"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> list[str]:
    """The lines of a table: its first `texts` columns set left, the others, of numbers, right."""
    rule = ["---" if column < texts else "---:" for column in range(len(heads))]
    return [_line(cells) for cells in (heads, rule, *rows)]


def _line(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
