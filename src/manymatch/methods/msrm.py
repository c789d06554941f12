"""MSRM: a query is a Gaussian, its candidates are points, and both directions are trained.

Wang et al., Multilateral Semantic Relations Modeling for Image Text Retrieval, CVPR 2023.

The variance of a query's Gaussian says how far a match may differ from the query in each dimension.
A candidate is represented by its mean. The squared Mahalanobis distances d2 between a query and all
candidates become match probabilities: loss L_d. Candidates are also related through the queries
that they are near to. A hypergraph with a hyperedge for each query passes messages between
candidates; a query's mean must find its matches among the candidates' new vectors U by cosine: loss
L_h. The hypergraph serves training alone, so that a score never depends on the rest of the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from manymatch.config.preset import NonNegative, Positive
from manymatch.layers.positive import PositiveScalar
from manymatch.layers.shared_rows import by_rows
from manymatch.losses.pairs import positive_pairs
from manymatch.losses.soft_match import soft_match
from manymatch.methods.base import Embeddings, Method
from manymatch.methods.gaussian_tower import GaussianSettings, gaussian_towers
from manymatch.methods.weighted import check_weights
from manymatch.pooling.hypergraph import HypergraphConvolution, soft_incidence
from manymatch.shards.batch import Batch
from manymatch.similarities.cosine import cosine
from manymatch.similarities.mahalanobis import mahalanobis
from manymatch.similarities.unit import unit
from manymatch.text.wordpieces import AnyVocabulary


class MSRMSettings(GaussianSettings):
    """The defaults are the paper's."""

    tau: Positive = 10.0
    """First value of the sharpness of L_d's probabilities; learned, like the next two."""
    hypergraph_sharpness: Positive = 5.0
    """First value of the paper's lambda, the sharpness of L_h's probabilities."""
    alpha: Positive | None = 2.0
    """First value of the rate at which a candidate's part in a hyperedge falls with d2; null: only
    matches are part of a hyperedge."""
    hypergraph_layers: Annotated[int, Field(ge=1)] = 2
    distance_weight: NonNegative = 0.8
    hypergraph_weight: NonNegative = 1.0
    inference: Literal["intact", "mu"] = "intact"
    """The score of retrieval: -d2 with the query's Gaussian, or the cosine of the means."""

    @model_validator(mode="after")
    def _one_loss_matches_pairs(self) -> Self:
        check_weights(self, "distance_weight", "hypergraph_weight")
        return self


class MSRM(Method):
    """Distribution-to-point matching with a hypergraph over the candidates of a batch."""

    Settings = MSRMSettings

    def __init__(
        self, settings: MSRMSettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        self.settings = settings
        self.image, self.text = gaussian_towers(settings, vocabulary, feature_width)
        self.tau = PositiveScalar(settings.tau)
        if settings.hypergraph_weight:
            self.hypergraph = Hypergraph(settings)

    def encode_images(self, batch: Batch) -> Embeddings:
        return self.image(batch.features, batch.region_padding)

    def encode_texts(self, batch: Batch) -> Embeddings:
        return self.text(batch.words, batch.word_padding)

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        if self.settings.inference == "mu":
            return cosine(images.vectors, texts.vectors)
        return -distances(images, texts)

    @property
    def t2i_score(self) -> Callable[[Embeddings, Embeddings], Tensor] | None:
        return None if self.settings.inference == "mu" else _score_of_caption_queries

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        match = positive_pairs(images.vectors, batch.image_index)
        to_texts = self._direction(images, texts, match)
        to_images = self._direction(texts, images, match.T)
        return {name: term + to_images[name] for name, term in to_texts.items()}

    def _direction(
        self, queries: Embeddings, candidates: Embeddings, match: Tensor
    ) -> dict[str, Tensor]:
        settings = self.settings
        assert queries.log_variance is not None
        points = candidates.vectors[:, 0]
        d2 = by_rows(
            lambda mean, log_variance: mahalanobis(mean, log_variance, points),
            queries.vectors[:, 0],
            queries.log_variance,
        )
        terms = {"distance": settings.distance_weight * soft_match(-self.tau() * d2, match)}
        if settings.hypergraph_weight:
            logits = self.hypergraph(queries.vectors[:, 0], points, d2, match)
            terms["hypergraph"] = settings.hypergraph_weight * soft_match(logits, match)
        return terms


class Hypergraph(nn.Module):
    """Cosines of queries and candidates, after convolutions of the candidates over hyperedges."""

    def __init__(self, settings: MSRMSettings) -> None:
        super().__init__()
        size = settings.size
        self.layers = nn.ModuleList(
            HypergraphConvolution(size, size) for _ in range(settings.hypergraph_layers)
        )
        self.sharpness = PositiveScalar(settings.hypergraph_sharpness)
        self.alpha = PositiveScalar(settings.alpha) if settings.alpha is not None else None

    def forward(self, queries: Tensor, candidates: Tensor, d2: Tensor, match: Tensor) -> Tensor:
        """`queries (q, D)`, `candidates (c, D)`, `d2` and `match (q, c)` -> logits `(q, c)`."""
        incidence = soft_incidence(d2, match, self.alpha() if self.alpha is not None else None)
        for layer in self.layers:
            candidates = layer(candidates, incidence)
        vectors = unit(candidates)[:, None]
        return self.sharpness() * by_rows(lambda rows: cosine(rows[:, None], vectors), queries)


def distances(queries: Embeddings, candidates: Embeddings) -> Tensor:
    """`(q, c)` squared Mahalanobis distances of queries' Gaussians and candidates' means."""
    assert queries.log_variance is not None
    return mahalanobis(queries.vectors[:, 0], queries.log_variance, candidates.vectors[:, 0])


def _score_of_caption_queries(images: Embeddings, texts: Embeddings) -> Tensor:
    """`(n, m)` scores with the captions as queries."""
    return -distances(texts, images).T
