"""A section of the report: what each module in the folder `sections` says of its sections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from manymatch.reporting import sections as folder
from manymatch.reporting.blocks import Block
from manymatch.results.all_results import AllResults, has_dataset
from manymatch.results.base import Result

Texts = Callable[[AllResults], Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A section of a page. A module in the folder `sections` lists its own in `SECTIONS`.

    Attributes:
        page: the title of the page.
        anchor: the address of the section on the page.
        place: a number by which sections are ordered; pages are ordered by their first section.
        title: the heading.
        view: the blocks of the section for the results on a data set; none: nothing to show.
        kinds: the results that the section shows, besides the evaluated models.
        link: the short name that links to the section, if that is not the title.
        overview: whether the section stands on the first page, too.
        markdown: the texts that the section adds to `leaderboard.md`.
        latex: the texts that the section adds to `leaderboard.tex`.
    """

    page: str
    anchor: str
    place: int
    title: str
    view: Callable[[AllResults], Sequence[Block]]
    kinds: tuple[type[Result], ...] = ()
    link: str = ""
    overview: bool = False
    markdown: Texts | None = None
    latex: Texts | None = None

    @property
    def general(self) -> bool:
        """Whether the results belong to no data set, so that one page shows all of them."""
        return bool(self.kinds) and not any(map(has_dataset, self.kinds))


def section_modules() -> list[str]:
    """The names of the modules in the folder `sections`."""
    return [f"{folder.__name__}.{module.name}" for module in iter_modules(folder.__path__)]


@cache
def all_sections() -> tuple[Section, ...]:
    """The sections of all modules in the folder `sections`, in the order of their places."""
    found = [one for name in section_modules() for one in import_module(name).SECTIONS]
    return tuple(sorted(found, key=lambda section: section.place))
