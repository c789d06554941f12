"""What the protocols of a data set are applied to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.protocols.labels import Labels
from manymatch.evaluation.ranking.blocks import Score
from manymatch.evaluation.ranking.ranks import Ranking, rank
from manymatch.evaluation.ranking.whole_rows import turned
from manymatch.system.errors import DataError


class DoesNotApply(DataError):
    """A protocol needs what this split does not have."""


@dataclass(frozen=True)
class Subject:
    """A split as a model embedded it, how the model scores it (both ways alike, unless there is a
    `t2i_score`), and the ranks that came out.

    `labels` is None where nothing is known of the images but their captions.
    """

    found: Embedded
    score: Score
    t2i_score: Score | None
    ranking: Ranking
    labels: Labels | None = None

    @property
    def from_texts(self) -> Score:
        """`(texts, images) -> (n_texts, n_images)`."""
        return turned(self.t2i_score or self.score)

    def ranked(self, depth: int) -> Ranking:
        """The ranking with at least so many of the best items a query, or all there are."""
        deep = (
            (self.ranking.i2t.items, len(self.found.texts)),
            (self.ranking.t2i.items, len(self.found.images)),
        )
        if all(items.shape[1] >= min(depth, gallery) for items, gallery in deep):
            return self.ranking
        parts = self.found.images, self.found.texts, self.found.owner
        return rank(self.score, *parts, depth, t2i_score=self.t2i_score)


def part(found: Embedded, images: slice) -> Embedded:
    """A run of the images with their captions, without copying."""
    ends = torch.tensor([images.start, images.stop])
    first, last = torch.searchsorted(found.owner, ends).tolist()
    return replace(
        found,
        images=found.images.rows(images),
        texts=found.texts.rows(slice(first, last)),
        image_ids=found.image_ids[images],
        caption_ids=found.caption_ids[first:last],
        owner=found.owner[first:last] - images.start,
    )
