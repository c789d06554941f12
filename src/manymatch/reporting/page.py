"""The pages of the report: which sections stand on which page, and the HTML of a page."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import jinja2
from markupsafe import Markup

from manymatch.reporting import sections as folder
from manymatch.reporting.table import Block
from manymatch.results.all_results import AllResults, has_dataset
from manymatch.results.base import Result
from manymatch.results.costs import Costs
from manymatch.results.experiments import Experiment
from manymatch.results.metrics import Provenance

FRONT = "Overview"

Texts = Callable[[AllResults], Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A section of a page. A module in the folder `sections` lists its own in `SECTIONS`.

    Attributes:
        page: the title of the page; `FRONT`: the first page, which has all data sets.
        anchor: the address of the section on the page.
        place: a number by which sections are ordered; pages are ordered by their first section.
        title: the heading.
        view: the blocks of the section for the results on a data set; none: nothing to show.
        kinds: the results that the section shows, besides the evaluated models.
        link: the short name that links to the section, if that is not the title.
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
    markdown: Texts | None = None
    latex: Texts | None = None

    @property
    def general(self) -> bool:
        """Whether the results belong to no data set, so that one page shows all of them."""
        return bool(self.kinds) and not any(map(has_dataset, self.kinds))


def gallery(result: Experiment | Costs | Provenance) -> str:
    """What was ranked: "test: 300 images, 1,500 captions"."""
    return f"{result.split}: {result.images:,} images, {result.captions:,} captions"


def page_address(dataset: str, title: str, anchor: str = "") -> str:
    """The address of a page or of one of its anchors, below the folder of the report. The part
    after the last "-" of the file's name tells the pages of a data set apart from all others."""
    words = title.lower().split()
    name = "-".join([dataset, *words]) if dataset else "_".join(words)
    return f"pages/{name}.html" + (f"#{anchor}" if anchor else "")


def method_address(dataset: str, name: str) -> str:
    """Where the report tells of a method, below the folder of the report."""
    return page_address(dataset, "Methods", f"run-{name}")


def section_modules() -> list[str]:
    """The names of the modules in the folder `sections`."""
    return [f"{folder.__name__}.{module.name}" for module in iter_modules(folder.__path__)]


@cache
def all_sections() -> tuple[Section, ...]:
    """The sections of all modules in the folder `sections`, in the order of their places."""
    sections = [one for name in section_modules() for one in import_module(name).SECTIONS]
    return tuple(sorted(sections, key=lambda section: section.place))


TEMPLATES = Path(__file__).parent / "templates"

Views = dict[str, tuple[str, Section, Sequence[Block]]]
"""By its anchor each section that is shown: the data set (empty: that of the page), the section
and its blocks."""


@dataclass
class Page:
    """A page: its address below the folder of the report, the data set (empty: none), and what is
    shown. `pictures` are the thumbnails shown so far, each embedded once."""

    address: str
    title: str
    dataset: str
    views: Views
    pictures: dict[str, int] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The way from the page to the folder of the report."""
        return "../" * self.address.count("/")

    def picture(self, thumbnail: str) -> int:
        """The number of a thumbnail on this page."""
        return self.pictures.setdefault(thumbnail, len(self.pictures))

    def show(self, block: Block) -> Markup:
        """The HTML of a block."""
        template = environment().get_template(block.template)
        return Markup(template.render(block=block, page=self))


def render(results: AllResults) -> dict[str, str]:
    """The HTML of every page by its address below the folder of the report."""
    style, script = (
        (TEMPLATES / name).read_text(encoding="utf-8") for name in ("style.css", "script.js")
    )
    pages = _pages(results)
    context: dict[str, Any] = {
        "pages": pages,
        # Both files belong to the package, and are the only text that a page shows unescaped.
        "style": Markup(style),
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    template = environment().get_template("page.html")
    return {page.address: template.render(page=page, **context) for page in pages}


@cache
def environment() -> jinja2.Environment:
    """The templates. Every text is escaped, because captions and names come from elsewhere."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _pages(results: AllResults) -> list[Page]:
    """The first page, the pages of each data set, then those of results without one. Pages without
    a section are left out."""
    overview: Views = {}
    for dataset in results.datasets:
        sections = [section for section in all_sections() if section.page == FRONT]
        for anchor, view in _views(sections, results.on_dataset(dataset), dataset).items():
            overview[f"{dataset}-{anchor}"] = view
    pages = [Page("index.html", FRONT, "", overview)]
    for dataset in [*results.datasets, ""]:
        selected = results.on_dataset(dataset) if dataset else results
        shown = [section for section in all_sections() if section.general == (not dataset)]
        for title in dict.fromkeys(one.page for one in all_sections() if one.page != FRONT):
            if views := _views([section for section in shown if section.page == title], selected):
                pages.append(Page(page_address(dataset, title), title, dataset, views))
    return pages


def _views(sections: Iterable[Section], results: AllResults, dataset: str = "") -> Views:
    """The sections that have something to show."""
    views = {section.anchor: (dataset, section, section.view(results)) for section in sections}
    return {anchor: view for anchor, view in views.items() if view[-1]}
