"""The classes of trained SwAMPs, ready for the page: keywords, captions and pictures of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manymatch.reporting.queries import Thumbnails
from manymatch.results.clusters import Cluster, Clusters, Keyword

MOST_CLASSES, MOST_CAPTIONS, MOST_WORDS = 12, 4, 5
"""Of a model, and of a class, that the page shows."""


@dataclass(frozen=True)
class ClusterView:
    """A class as the page shows it; the pictures are numbers of thumbnails, with image ids."""

    title: str
    nouns: str
    verbs: str
    captions: list[str]
    pictures: list[tuple[int | None, str]]


@dataclass(frozen=True)
class ClustersView:
    preset: str
    summary: str
    classes: list[ClusterView]


def views(found: Sequence[Clusters], dataset: str, thumbnails: Thumbnails) -> list[ClustersView]:
    """Those of one data set."""
    return [_view(each, thumbnails) for each in found if each.dataset == dataset]


def _view(found: Clusters, thumbnails: Thumbnails) -> ClustersView:
    summary = (
        f"{found.split}: {found.used.captions:,} of {found.n_classes:,} classes hold captions, "
        f"{found.used.images:,} hold images; {found.agreement:.1f}% of captions are in the class "
        "of their image"
    )
    shown = found.classes[:MOST_CLASSES]
    return ClustersView(found.preset, summary, [_cluster(each, thumbnails) for each in shown])


def _cluster(each: Cluster, thumbnails: Thumbnails) -> ClusterView:
    return ClusterView(
        title=f"Class {each.number}: {_count(len(each.captions), 'caption')}, "
        f"{_count(len(each.images), 'image')}",
        nouns=_words(each.nouns),
        verbs=_words(each.verbs),
        captions=[member.caption for member in each.captions[:MOST_CAPTIONS]],
        pictures=[(thumbnails.number(data), name) for name, data in each.thumbnails.items()],
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _words(found: Sequence[Keyword]) -> str:
    return ", ".join(f"{word} ({count})" for word, count in found[:MOST_WORDS])
