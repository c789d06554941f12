"""What a section of the page consists of. Every block is drawn by the template that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol


class Block:
    """A part of a section; a subclass names its template."""

    template: ClassVar[str]


@dataclass(frozen=True)
class View:
    """A section of a page: its heading, the short name that links to the section, and its blocks,
    in order."""

    title: str
    link: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Heading(Block):
    """A heading inside a section. `style` is the number of a line style, whose key stands first."""

    text: str
    small: str = ""
    anchor: str = ""
    style: int | None = None
    template = "heading.html"


@dataclass(frozen=True)
class Note(Block):
    """A paragraph in small print."""

    text: str
    template = "note.html"


@dataclass(frozen=True)
class Terms(Block):
    """Labels as the tables show them, each with its meaning."""

    pairs: Sequence[tuple[str, str]]
    template = "terms.html"


@dataclass(frozen=True)
class Bullets(Block):
    """A list of sentences."""

    items: Sequence[str]
    template = "bullets.html"


@dataclass(frozen=True)
class Code(Block):
    """Text in a fixed-width font."""

    text: str
    template = "code.html"


@dataclass(frozen=True)
class Grid(Block):
    """Blocks side by side: `size` is the least width of one, "small", "medium" or "wide"."""

    blocks: Sequence[Block]
    size: str = "medium"
    template = "grid.html"


@dataclass(frozen=True)
class Folded(Block):
    """Blocks that a click on the summary unfolds."""

    summary: str
    blocks: Sequence[Block]
    badge: str = ""
    template = "folded.html"


@dataclass(frozen=True)
class MachineFacts(Block):
    """Time and memory of one data set's runs, which the page reads from `machine/machine.js`."""

    dataset: str
    template = "machine_facts.html"


class Ranked(Protocol):
    """A result, with the split and the numbers of images and captions that were ranked."""

    @property
    def split(self) -> str: ...
    @property
    def images(self) -> int: ...
    @property
    def captions(self) -> int: ...


def gallery(result: Ranked) -> str:
    """What was ranked: "test: 300 images, 1,500 captions"."""
    return f"{result.split}: {result.images:,} images, {result.captions:,} captions"
