"""What a section of the page consists of. Each kind of block has a template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, dataclass_transform

from manymatch.results.costs import Costs
from manymatch.results.experiments import Experiment
from manymatch.results.provenance import Provenance


@dataclass_transform(frozen_default=True)
class Block:
    """A part of a section. A subclass is a frozen dataclass that the template of its name draws:
    `dot_chart.html` a `DotChart`."""

    template: ClassVar[str]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)
        cls.template = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower() + ".html"


class Heading(Block):
    """A heading inside a section. `style` is the number of a line style, whose key stands first."""

    text: str
    small: str = ""
    anchor: str = ""
    style: int | None = None


class Note(Block):
    """A paragraph in small print."""

    text: str


class Terms(Block):
    """Labels as the tables show them, each with its meaning."""

    pairs: Sequence[tuple[str, str]]


class Bullets(Block):
    """A list of sentences."""

    items: Sequence[str]


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


def gallery(result: Experiment | Costs | Provenance) -> str:
    """What was ranked: "test: 300 images, 1,500 captions"."""
    return f"{result.split}: {result.images:,} images, {result.captions:,} captions"
