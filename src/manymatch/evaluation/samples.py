"""Sampled queries for people to look at: what a model retrieved, and whether it is a positive."""

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from manymatch.batch.numbering import CaptionEntry
from manymatch.evaluation.protocols.coco import differing_labels
from manymatch.evaluation.protocols.relevance import Judgments, Labels
from manymatch.evaluation.ranking.ranks import Direction, Ranking
from manymatch.results.retrieval import (
    CaptionQuery,
    Duplicate,
    Graph,
    ImageQuery,
    Mark,
    NearDuplicates,
    RetrievedCaption,
    RetrievedImage,
    Samples,
)
from manymatch.shards.sample import Sample

ITEMS_PER_QUERY = 10
"""Retrieved items shown for each query."""

HARDEST, OWN_HARDEST = 5, 20
"""Queries of each kind with the worst ranks that join the random ones; of a data set of one's own
more, because its captions can still be corrected."""

_GROUPS = 12
"""Groups of near-duplicates that are shown."""

Stored = Callable[[Sequence[int]], Iterable[Sample]]
"""Reads images from the shards, by their rows in ascending order."""


class Queries(NamedTuple):
    """Rows of the sampled images and captions, ascending."""

    images: list[int]
    captions: list[int]


def draw_queries(n_images: int, n_captions: int, count: int, seed: int = 0) -> Queries:
    """Draw `count` random queries of each kind, or take all if there are fewer.

    The queries depend only on the numbers and the seed, so that methods can be compared on one
    split.
    """
    sides = ((n_images, f"images {seed}"), (n_captions, f"captions {seed}"))
    return Queries(
        *(sorted(Random(own).sample(range(total), min(count, total))) for total, own in sides)
    )


def sample_queries(
    ranking: Ranking,
    image_index: Tensor,
    judgments: Judgments,
    stored: Stored,
    count: int,
    image_ids: Sequence[str] = (),
    labels: Labels | None = None,
    duplicates: str | None = None,
) -> Samples:
    """Draw queries (`draw_queries`), add the hardest ones of the whole split, and collect the items
    that the model ranked first.

    With `labels` each item has its `zeta`: the number of labels in which its image differs from
    the query's image (MSRM, CVPR 2023, figure 3). A data set of one's own has `duplicates`, the
    near-duplicates as its caption table names them.
    """
    hardest = min(count, HARDEST) if duplicates is None else OWN_HARDEST
    drawn = draw_queries(len(ranking.i2t.items), len(ranking.t2i.items), count)
    images, captions = (
        list(dict.fromkeys([*rows, *worst[:hardest].tolist()]))
        for rows, way in zip(drawn, (ranking.i2t, ranking.t2i), strict=True)
        for worst in [way.ranks.argsort(descending=True, stable=True)]
    )
    rows = (
        torch.tensor(images, dtype=torch.int64),
        image_index[ranking.i2t.items[images, :ITEMS_PER_QUERY]],
        image_index[captions],
        ranking.t2i.items[captions, :ITEMS_PER_QUERY],
    )
    gallery = Gallery.read(rows, image_index, judgments, stored, labels)
    samples = Samples(
        images=[
            ImageQuery(
                image_id=gallery.images[row].image_id,
                thumbnail=thumbnail(gallery.images[row]),
                captions=[caption.text for caption in gallery.images[row].captions],
                rank=int(ranking.i2t.ranks[row]),
                retrieved=[
                    gallery.retrieved_caption(row, caption, score)
                    for caption, score in _best(ranking.i2t, row)
                ],
            )
            for row in images
        ],
        captions=[
            CaptionQuery(
                caption_id=entry.id,
                caption=entry.text,
                rank=int(ranking.t2i.ranks[row]),
                image_id=own.image_id,
                thumbnail=thumbnail(own),
                graph=Graph.model_validate(entry.graph.to_dict()),
                retrieved=[
                    gallery.retrieved_image(row, image, score)
                    for image, score in _best(ranking.t2i, row)
                ],
            )
            for row in captions
            for entry, own in [(gallery.caption(row), gallery.images[int(image_index[row])])]
        ],
    )
    if duplicates is not None:
        shown = _near_duplicates(json.loads(duplicates), image_ids, stored)
        samples = samples.model_copy(update={"near_duplicates": shown})
    return samples


def _near_duplicates(
    known: dict[str, Any], image_ids: Sequence[str], stored: Stored
) -> NearDuplicates:
    """The first groups that have a picture of the split with these `image_ids`."""
    rows = {name: row for row, name in enumerate(image_ids)}
    groups = [group for group in known["groups"] if any(name in rows for name, _ in group)]
    own = {split for group in groups for name, split in group if name in rows}
    # A caption table of an older version has no counts.
    count = sum(known.get("of_split", {}).get(split, len(groups)) for split in own)
    groups = groups[:_GROUPS]
    needed = sorted(rows[name] for group in groups for name, _ in group if name in rows)
    pictures = {image.image_id: thumbnail(image) for image in stored(needed)}
    return NearDuplicates(
        copies=known["copies"],
        crossing=known["crossing"],
        found=count,
        groups=[
            [
                Duplicate(image_id=name, split=split, thumbnail=pictures.get(name))
                for name, split in group
            ]
            for group in groups
        ],
    )


@dataclass(frozen=True)
class Gallery:
    """Stored images by row, the positives of each caption, and the images' labels."""

    images: dict[int, Sample]
    image_index: Tensor
    judgments: Judgments
    labels: Labels | None

    @classmethod
    def read(
        cls,
        rows: Iterable[Tensor],
        image_index: Tensor,
        judgments: Judgments,
        stored: Stored,
        labels: Labels | None = None,
    ) -> "Gallery":
        """Read the images at `rows`, tensors of any shape in which rows may repeat."""
        needed = torch.cat([part.flatten() for part in rows]).unique().tolist()
        images = dict(zip(needed, stored(needed), strict=True))
        return cls(images, image_index, judgments, labels)

    def caption(self, row: int) -> CaptionEntry:
        image = int(self.image_index[row])
        first = int(torch.searchsorted(self.image_index, image))
        return self.images[image].captions[row - first]

    def mark(self, image: int, caption: int) -> Mark:
        if self.image_index[caption] == image:
            return "own"
        pair, judgments = torch.tensor([image, caption]), self.judgments
        if bool((judgments.extra == pair).all(1).any()):
            return "true"
        known = judgments.complete or bool((judgments.judged_false == pair).all(1).any())
        return "wrong" if known else "unjudged"

    def retrieved_caption(self, image: int, caption: int, score: float) -> RetrievedCaption:
        """A caption that was retrieved for an image."""
        entry = self.caption(caption)
        return RetrievedCaption(
            caption_id=entry.id, caption=entry.text, score=score, **self._judged(image, caption)
        )

    def retrieved_image(self, caption: int, image: int, score: float) -> RetrievedImage:
        """An image that was retrieved for a caption."""
        stored = self.images[image]
        return RetrievedImage(
            image_id=stored.image_id,
            thumbnail=thumbnail(stored),
            score=score,
            **self._judged(image, caption),
        )

    def _judged(self, image: int, caption: int) -> dict[str, Any]:
        """The pair's `mark`, and its `zeta` if images have labels."""
        judged: dict[str, Any] = {"mark": self.mark(image, caption)}
        if self.labels is not None:
            judged["zeta"] = differing_labels(self.labels, image, int(self.image_index[caption]))
        return judged


def thumbnail(image: Sample) -> str | None:
    """The image's thumbnail in base64, as result files hold it."""
    return base64.b64encode(image.thumbnail).decode("ascii") if image.thumbnail else None


def _best(direction: Direction, query: int) -> list[tuple[int, float]]:
    items = direction.items[query, :ITEMS_PER_QUERY].tolist()
    scores = direction.scores[query, :ITEMS_PER_QUERY].tolist()
    return [(item, round(score, 4)) for item, score in zip(items, scores, strict=True)]
