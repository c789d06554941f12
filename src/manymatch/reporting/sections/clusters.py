"""The classes of trained SwAMPs: keywords, captions and pictures of each class."""

from collections.abc import Sequence

from manymatch.reporting.page import Section
from manymatch.reporting.sections.probes import left_out
from manymatch.reporting.table import Block, Cell, Column, Heading, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.probes import Cluster, Clusters, Keyword

MAX_CLASSES, MAX_WORDS = 12, 5
"""The most classes of a model, and words of a class, that the page shows."""


class ClusterGrid(Block):
    """Classes side by side: each with its title, and its words of each kind."""

    classes: list[tuple[str, list[str], Cluster]]


def section(results: AllResults) -> list[Block]:
    blocks = left_out(results, Clusters)
    for model in results.current(Clusters):
        classes = [
            (
                f"Class {one.number}: {_count(len(one.captions), 'caption')}, "
                f"{_count(len(one.images), 'image')}",
                [_words(one.nouns), _words(one.verbs)],
                one,
            )
            for one in model.classes[:MAX_CLASSES]
        ]
        blocks += [heading(model), ClusterGrid(classes)]
    note = Note(
        "SwAMP assigns images and captions to classes, and learns the class of each sample from "
        "the sample's partner. No class was labelled by a person. The page shows the classes "
        "with most captions, with their most frequent nouns and verbs (and the number of "
        "captions that have the word)."
    )
    return [note, *blocks] if blocks else []


def heading(model: Clusters) -> Heading:
    """The model, the number of classes that it uses, and how well its classes agree."""
    return Heading(
        model.preset,
        f"{model.split}: {model.used.captions:,} of {model.n_classes:,} classes hold captions, "
        f"{model.used.images:,} hold images; {model.agreement:.1f}% of captions are in the "
        "class of their image",
    )


def table(model: Clusters) -> Table:
    """The classes with most captions, for a terminal."""
    titles = {"Class": True, "Captions": True, "Images": True, "Nouns": False, "Verbs": False}
    return Table(
        "The classes with most captions",
        [Column(title, numeric=numeric) for title, numeric in titles.items()],
        [
            [
                *(Cell.number(n, 0) for n in (c.number, len(c.captions), len(c.images))),
                *(Cell(_words(words)) for words in (c.nouns, c.verbs)),
            ]
            for c in model.classes[:MAX_CLASSES]
        ],
        caption=True,
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _words(keywords: Sequence[Keyword]) -> str:
    return ", ".join(f"{word} ({count})" for word, count in keywords[:MAX_WORDS])


SECTIONS = [
    Section("Probes", "clusters", 200, "Classes without labels", section, (Clusters,), "Classes")
]
