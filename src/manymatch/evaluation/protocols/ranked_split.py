"""What an evaluation protocol measures: a split with its embeddings, scores and ranking."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from manymatch.evaluation.protocols.relevance import Labels
from manymatch.evaluation.ranking.ranks import Ranking, rank
from manymatch.model.embed import Embedded
from manymatch.model.scores import Score
from manymatch.util.errors import DataError


class DoesNotApply(DataError):
    """A protocol needs something that the split does not have."""


@dataclass(frozen=True)
class RankedSplit:
    """An embedded and ranked split.

    `t2i_score` is None if both directions use `score`; `labels` is None if the images have no
    labels.
    """

    embedded: Embedded
    score: Score
    t2i_score: Score | None
    ranking: Ranking
    labels: Labels | None = None

    @property
    def from_texts(self) -> Score:
        """`(texts, images) -> (n_texts, n_images)`."""
        score = self.t2i_score or self.score
        return lambda texts, images: score(images, texts).T

    def ranked(self, depth: int) -> Ranking:
        """The ranking with the best `depth` items of each query, at most all items."""
        galleries = (
            (self.ranking.i2t.items, len(self.embedded.texts)),
            (self.ranking.t2i.items, len(self.embedded.images)),
        )
        if all(items.shape[1] >= min(depth, gallery) for items, gallery in galleries):
            return self.ranking
        return rank(self.score, *self.embedded.gallery, depth, t2i_score=self.t2i_score)


class Protocol(NamedTuple):
    """A protocol of evaluation.

    Attributes:
        name: also the key of the protocol's numbers in a metrics file.
        datasets: the data sets on which each evaluation follows the protocol.
        measure: the numbers of a split; `DoesNotApply` if the split lacks what the protocol needs.
    """

    name: str
    datasets: tuple[str, ...]
    measure: Callable[[RankedSplit], dict[str, Any]]


def part(embedded: Embedded, images: slice) -> Embedded:
    """A run of the images with their captions, without copying."""
    ends = torch.tensor([images.start, images.stop])
    first, last = torch.searchsorted(embedded.image_index, ends).tolist()
    return replace(
        embedded,
        images=embedded.images.rows(images),
        texts=embedded.texts.rows(slice(first, last)),
        image_ids=embedded.image_ids[images],
        caption_ids=embedded.caption_ids[first:last],
        image_index=embedded.image_index[first:last] - images.start,
    )
