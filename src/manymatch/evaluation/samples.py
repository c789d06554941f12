"""What a person wants to see: for a few queries, what was retrieved and whether it is right."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from manymatch.evaluation.protocols.labels import Labels
from manymatch.evaluation.protocols.plausible_matches import differing_labels
from manymatch.evaluation.protocols.relevance import Judgments
from manymatch.evaluation.ranking.ranks import Direction, Ranking
from manymatch.shards.sample import CaptionEntry, Sample

SHOWN = 10
"""Items shown of each query."""

Stored = Callable[[Sequence[int]], Iterable[Sample]]
"""Images as the shards hold them, by their (ascending) rows."""


class Queries(NamedTuple):
    """Rows of the images and captions that a person sees the answers to, ascending."""

    images: list[int]
    captions: list[int]


def drawn_queries(n_images: int, n_captions: int, count: int, seed: int = 0) -> Queries:
    """`count` random queries of each kind (all, if there are fewer).

    The same queries for every method on the same split, so that methods can be compared.
    """
    return Queries(
        _drawn(n_images, count, f"images {seed}"), _drawn(n_captions, count, f"captions {seed}")
    )


def sample_queries(
    ranking: Ranking,
    owner: Tensor,
    judgments: Judgments,
    stored: Stored,
    count: int,
    seed: int = 0,
    labels: Labels | None = None,
) -> dict[str, Any]:
    """`{"images": [...], "captions": [...]}`: `drawn_queries` of each, with what they found.

    With `labels` each answer has its `zeta`: in how many labels its image differs from the
    query's (MSRM, CVPR 2023, figure 3).
    """
    images, captions = drawn_queries(len(ranking.i2t.items), len(ranking.t2i.items), count, seed)
    shown = (
        torch.tensor(images, dtype=torch.int64),
        owner[ranking.i2t.items[images, :SHOWN]],
        owner[captions],
        ranking.t2i.items[captions, :SHOWN],
    )
    gallery = Gallery.of(shown, owner, judgments, stored, labels)
    return {
        "images": [_image_query(gallery, row, ranking.i2t) for row in images],
        "captions": [_caption_query(gallery, row, ranking.t2i) for row in captions],
    }


def _drawn(total: int, count: int, seed: str) -> list[int]:
    return sorted(Random(seed).sample(range(total), min(count, total)))


@dataclass(frozen=True)
class Gallery:
    """The stored images by row, which captions are true of which, and the images' labels."""

    images: dict[int, Sample]
    owner: Tensor
    judgments: Judgments
    labels: Labels | None

    @classmethod
    def of(
        cls,
        rows: Iterable[Tensor],
        owner: Tensor,
        judgments: Judgments,
        stored: Stored,
        labels: Labels | None = None,
    ) -> Gallery:
        """The images at `rows`, tensors of any shape; a row may stand there several times."""
        needed = torch.cat([part.flatten() for part in rows]).unique().tolist()
        return cls(dict(zip(needed, stored(needed), strict=True)), owner, judgments, labels)

    def caption(self, row: int) -> CaptionEntry:
        image = int(self.owner[row])
        first = int(torch.searchsorted(self.owner, image))
        return self.images[image].captions[row - first]

    def thumbnail(self, image: int) -> str | None:
        jpeg = self.images[image].thumbnail
        return base64.b64encode(jpeg).decode("ascii") if jpeg is not None else None

    def mark(self, image: int, caption: int) -> str:
        if self.owner[caption] == image:
            return "own"
        extra = self.judgments.extra
        judged = (extra[:, 0] == image) & (extra[:, 1] == caption)
        return "true" if bool(judged.any()) else "wrong"

    def judged(self, image: int, caption: int) -> dict[str, Any]:
        """The pair's `mark`, and its `zeta` where images have labels."""
        known: dict[str, Any] = {"mark": self.mark(image, caption)}
        if self.labels is not None:
            known["zeta"] = differing_labels(self.labels, image, int(self.owner[caption]))
        return known

    def retrieved_caption(self, image: int, caption: int, score: float) -> dict[str, Any]:
        """A caption that was found for an image."""
        entry = self.caption(caption)
        return {
            "caption_id": entry.id,
            "caption": entry.text,
            "score": score,
            **self.judged(image, caption),
        }

    def retrieved_image(self, image: int, caption: int, score: float) -> dict[str, Any]:
        """An image that was found for a caption."""
        return {
            "image_id": self.images[image].image_id,
            "thumbnail": self.thumbnail(image),
            "score": score,
            **self.judged(image, caption),
        }


def _best(direction: Direction, query: int) -> list[tuple[int, float]]:
    items, scores = direction.items[query, :SHOWN], direction.scores[query, :SHOWN]
    return [
        (item, round(score, 4)) for item, score in zip(items.tolist(), scores.tolist(), strict=True)
    ]


def _image_query(gallery: Gallery, image: int, direction: Direction) -> dict[str, Any]:
    stored = gallery.images[image]
    return {
        "image_id": stored.image_id,
        "thumbnail": gallery.thumbnail(image),
        "captions": [caption.text for caption in stored.captions],
        "retrieved": [
            gallery.retrieved_caption(image, caption, score)
            for caption, score in _best(direction, image)
        ],
    }


def _caption_query(gallery: Gallery, caption: int, direction: Direction) -> dict[str, Any]:
    entry = gallery.caption(caption)
    return {
        "caption_id": entry.id,
        "caption": entry.text,
        "graph": entry.graph.to_dict(),
        "retrieved": [
            gallery.retrieved_image(image, caption, score)
            for image, score in _best(direction, caption)
        ],
    }
