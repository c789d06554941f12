"""The table of every section, as the page, Markdown and LaTeX show it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar, dataclass_transform


@dataclass_transform(frozen_default=True)
class Block:
    """A part of a section. A subclass is a frozen dataclass that the template of its name draws:
    `dot_chart.html` a `DotChart`."""

    template: ClassVar[str]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)
        cls.template = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower() + ".html"


class Heading(Block):
    """A heading inside a section. The legend key of the line style `style` is drawn before it."""

    text: str
    small: str = ""
    anchor: str = ""
    style: int | None = None


class Note(Block):
    """A paragraph in small print."""

    text: str


class Prose(Block):
    """Paragraphs, each of cells that stand one after the other; a cell with an address is a link.
    With `large` they are what a page found."""

    paragraphs: "Sequence[Sequence[Cell]]"
    large: bool = False


@dataclass(frozen=True)
class Card:
    """What a page shows of one method: its score, a few lines, and the path of a curve in a square
    of 1000 x 1000."""

    name: "Cell"
    score: str
    lines: Sequence[str]
    curve: str = ""


class Cards(Block):
    """Cards side by side; `score` says what their scores are."""

    score: str
    cards: Sequence[Card]


class Code(Block):
    """Text in a fixed-width font."""

    text: str


class Grid(Block):
    """Blocks side by side: `size` is the least width of one, "small", "medium" or "wide"."""

    blocks: Sequence[Block]
    size: str = "medium"


class Folded(Block):
    """Blocks that a click on the summary unfolds."""

    summary: str
    blocks: Sequence[Block]
    badge: str = ""


class MachineFacts(Block):
    """Time and memory of one data set's runs, which the page reads from `machine/machine.js`."""

    dataset: str


@dataclass(frozen=True)
class Cell:
    """One cell. The page sorts rows by `value`.

    `badges` are labels such as a setting, and `note` is small print. `style` is the number of a
    line style, whose key stands before the text. `href` is an address below the folder of the
    report, `hover` a longer text, and `thumbnail` a JPEG in base64.
    """

    text: str = ""
    value: float | None = None
    best: bool = False
    badges: tuple[str, ...] = ()
    note: str = ""
    style: int | None = None
    href: str = ""
    hover: str = ""
    thumbnail: str | None = None

    @classmethod
    def number(cls, value: float | None, digits: int = 1) -> "Cell":
        """A number with `digits` decimals; an empty cell for None."""
        return cls() if value is None else cls(f"{value:.{digits}f}", value)

    @property
    def plain(self) -> str:
        """The cell in words: the text with its badges, or a dash."""
        badges = ", ".join(self.badges)
        if self.text:
            return f"{self.text} ({badges})" if badges else self.text
        return ": ".join(filter(None, [badges, self.note])) or "-"

    @property
    def markdown(self) -> str:
        """The cell in words; the best one is bold."""
        return f"**{self.plain}**" if self.best else self.plain


@dataclass(frozen=True)
class Column:
    """A column. Neighbouring columns of one `group` stand below a common heading."""

    title: str
    group: str = ""
    unit: str = ""
    numeric: bool = True
    style: int | None = None
    href: str = ""

    @property
    def heading(self) -> str:
        """Group, title and unit in one line."""
        unit = f"({self.unit})" if self.unit else ""
        return " ".join(filter(None, [self.group, self.title, unit]))


class Table(Block):
    """Rows of as many cells as there are columns; the first column names the row.

    `title` tells a screen reader what the table shows; with `caption` the page prints the title.
    """

    title: str
    columns: list[Column]
    rows: list[list[Cell]]
    caption: bool = False

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Each group of neighbouring columns and the number of its columns."""
        groups = groupby(self.columns, key=lambda column: column.group)
        return [(group, len(list(columns))) for group, columns in groups]

    def filled_columns(self) -> "Table":
        """The table with the columns that have a text in at least one row."""
        return self._select(
            index
            for index in range(len(self.columns))
            if any(row[index].plain != "-" for row in self.rows)
        )

    def without(self, *titles: str) -> "Table":
        """The table without the columns of these titles."""
        return self._select(
            index for index, column in enumerate(self.columns) if column.title not in titles
        )

    def _select(self, positions: Iterable[int]) -> "Table":
        kept = list(positions)
        return replace(
            self,
            columns=[self.columns[index] for index in kept],
            rows=[[row[index] for index in kept] for row in self.rows],
        )

    def divided(self, *starts: str) -> "list[Table]":
        """The table without the columns whose group or title begins with one of `starts`; then
        these columns, with the rows that have a value there. Each has the first column."""
        heads = [column.group or column.title for column in self.columns]
        apart = [i for i, head in enumerate(heads) if i and head.startswith(starts)]
        others = self._select([0, *apart])
        rows = [row for row in others.rows if any(cell.plain != "-" for cell in row[1:])]
        first = self._select(i for i in range(len(heads)) if i not in apart)
        return [first, *([replace(others, rows=rows)] if rows else [])]

    def texts(self, merge: bool) -> tuple[list[Column], list[list[str]]]:
        """Columns and texts; `merge`: with the columns of a group as one: "1.0 / 2.0"."""
        if not merge:
            return self.columns, [[cell.markdown for cell in row] for row in self.rows]
        keys = [column.group or str(index) for index, column in enumerate(self.columns)]
        spans = [list(span) for _, span in groupby(range(len(keys)), key=keys.__getitem__)]
        firsts = [self.columns[span[0]] for span in spans]
        columns = [replace(first, title=first.group or first.title, group="") for first in firsts]
        rows = [[" / ".join(row[i].markdown for i in span) for span in spans] for row in self.rows]
        return columns, rows

    def to_markdown(self, merge: bool = False) -> list[str]:
        """The lines of the table, with the columns of each group as one if `merge`."""
        columns, rows = self.texts(merge)
        rule = ["---:" if column.numeric else "---" for column in columns]
        return [
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
            for cells in ([column.heading for column in columns], rule, *rows)
        ]

    def to_latex(self, merge: bool = False) -> str:
        """The table for a paper with the package booktabs."""
        columns, rows = self.texts(merge)
        head = [column.heading for column in columns]
        alignment = "".join("r" if column.numeric else "l" for column in columns)
        lines = [" & ".join(map(_latex, cells)) + r" \\" for cells in (head, *rows)]
        begin = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", lines[0], r"\midrule"]
        return "\n".join([*begin, *lines[1:], r"\bottomrule", r"\end{tabular}"])


_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$",
    "±": r"$\pm$",
    "\u00d7": r"$\times$",
    "∞": r"$\infty$",
}


def _latex(text: str) -> str:
    """The text with its signs escaped, and what Markdown sets in bold in bold."""
    parts = "".join(_LATEX.get(sign, sign) for sign in text).split("**")
    return "".join(rf"\textbf{{{part}}}" if i % 2 else part for i, part in enumerate(parts))
