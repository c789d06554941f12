"""Results on a terminal: the blocks of the report that are text or tables."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from rich import box
from rich import table as rich_table
from rich.console import Console
from rich.text import Text

from manymatch.reporting.table import Block, Folded, Heading, Note, Prose, Table
from manymatch.util.errors import printable

_LEAST_WIDTH = 60
"""A narrower terminal breaks the lines itself, so that no number is cut off."""
_GAP = 2
"""Spaces between two columns."""
_NAME_WIDTH, _TEXT_WIDTH = 30, 20
"""In a table that is too wide the first column, and other columns of text, are folded down to these
widths."""


def show(blocks: Sequence[Block], written: Path | None = None) -> None:
    """Print headings, notes, lists and tables on standard output, then the path of the file.

    A table that is wider than the terminal is printed in several parts, each with the first column.
    Without a terminal the output is plain text, 80 columns wide unless the variable COLUMNS says
    otherwise. Blocks of other kinds, such as charts, are left out.
    """
    console = Console(markup=False, highlight=False, emoji=False)
    console.width = max(console.width, _LEAST_WIDTH)
    for block in blocks:
        if isinstance(block, Heading):
            small = _text(f"  {block.small}" if block.small else "")
            console.print(Text("\n").append(_text(block.text, "bold")).append(small))
        elif isinstance(block, Note):
            console.print(Text("\n").append(_text(block.text)))
        elif isinstance(block, Prose):
            for cells in block.paragraphs:
                console.print(_text(f"- {''.join(cell.text for cell in cells)}"))
        elif isinstance(block, Folded):
            show(block.blocks)
        elif isinstance(block, Table):
            if block.caption:
                console.print(Text("\n").append(_text(block.title)))
            for part in _parts(block, console.width):
                console.print()
                console.print(part)
    if written is not None:
        console.print(f"\n{written}", soft_wrap=True)


def _parts(table: Table, width: int) -> Iterator[rich_table.Table]:
    """The table in as few parts as fit into `width`. The numbers of a group stand in one column."""
    columns, texts = table.texts(merge=True)
    # A heading is folded only before and after "R@1/5/10".
    heads = [column.heading.replace(" / ", "/") for column in columns]
    rows = [["-" if set(text) <= {"-", "/", " "} else text for text in row] for row in texts]
    if _total(_widths(heads, rows)) > width:
        rows = [[text.replace(" / ", "/") for text in row] for row in rows]
    widths = _widths(heads, rows)
    if _total(widths) > width:
        text_columns = [i for i, column in enumerate(columns) if not column.numeric]
        room = width - _total(widths) + sum(widths[i] for i in text_columns)
        for i in text_columns:
            least = _TEXT_WIDTH if i else _NAME_WIDTH
            widths[i] = min(widths[i], max(least, room // len(text_columns)))
    longest = width - widths[0] - _GAP  # a longer pair stands in two lines
    rows = [
        [
            text.replace("/", "/\n") if column.numeric and len(text) > longest else text
            for column, text in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    parts = [[0]]
    for index in range(1, len(columns)):
        part = parts[-1]
        if len(part) > 1 and _total([widths[i] for i in [*part, index]]) > width:
            parts.append([0])
        parts[-1].append(index)
    for part in parts:
        # The line between two columns is one of the spaces.
        spaces = (0, _GAP - 1, 0, 0)
        drawn = rich_table.Table(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=spaces
        )
        for i in part:
            side: Literal["left", "right"] = "right" if columns[i].numeric else "left"
            drawn.add_column(_text(heads[i]), justify=side, max_width=widths[i])
        for row in rows:
            drawn.add_row(*(_marked(row[i]) for i in part))
        yield drawn


def _widths(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column if only its heading is folded, between words."""
    return [
        max(map(len, [*head.split(), *(row[i].replace("**", "") for row in rows)]))
        for i, head in enumerate(heads)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _marked(text: str) -> Text:
    """The text, in bold where Markdown is."""
    styles = itertools.cycle(["", "bold"])
    return Text().join(_text(*pair) for pair in zip(text.split("**"), styles, strict=False))


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style)
