"""MSRM: a query is a Gaussian, its candidates are points, and both directions are trained.

Wang et al., Multilateral Semantic Relations Modeling for Image Text Retrieval, CVPR 2023.

The variance of a query's Gaussian says how far a match may differ from the query in each dimension.
A candidate is represented by its mean. The squared Mahalanobis distances d2 between a query and all
candidates become match probabilities: loss L_d. Candidates are also related through the queries
that they are near to. A hypergraph with a hyperedge for each query passes messages between
candidates; a query's mean must find its matches among the candidates' new vectors U by cosine: loss
L_h. In retrieval the hypergraph is not used, or each candidate is a hypergraph of its own, so that
a score never depends on the rest of the batch or gallery.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from manymatch.batch.batch import Batch
from manymatch.batch.shared_rows import share_rows
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import NonNegative, Positive
from manymatch.losses.contrastive import positive_pairs, transposed
from manymatch.losses.probabilistic import soft_match
from manymatch.methods.shared.gaussian_tower import (
    GaussianSettings,
    PositiveScalar,
    gaussian_towers,
)
from manymatch.methods.shared.matching import check_weights
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.methods.shared.products import (
    ProductForm,
    ProductQuery,
    cosine_query,
    largest_product,
)
from manymatch.networks.pooling.hypergraph import (
    Activation,
    HypergraphConvolution,
    messages,
    soft_incidence,
)
from manymatch.similarities.gaussians import mahalanobis
from manymatch.similarities.vectors import cosine, unit


class MSRMSettings(GaussianSettings):
    """The defaults are the paper's."""

    tau: Positive = 10.0
    """First value of the sharpness of L_d's probabilities; learned, like the next two."""
    hypergraph_sharpness: Positive = 5.0
    """First value of the paper's lambda, the sharpness of L_h's probabilities."""
    alpha: NonNegative | None = 2.0
    """First value of the rate at which a candidate's part in a hyperedge falls with d2. 0: all
    candidates are full parts of all hyperedges, and nothing is learned; null: only matches are part
    of a hyperedge."""
    hypergraph_layers: Annotated[int, Field(ge=1)] = 2
    hypergraph_activation: Literal["sigmoid", "relu"] = "sigmoid"
    """The sigmoid after every layer (eq. 10), or HGNN's own form: a ReLU between layers, and none
    after the last."""
    distance_weight: NonNegative = 0.8
    hypergraph_weight: NonNegative = 1.0
    inference: Literal["intact", "mu", "hypergraph"] = "intact"
    """The score of retrieval: -d2 with the query's Gaussian, the cosine of the means, or the cosine
    of the query's mean and the candidate's output of the last layer of the hypergraph. For this
    output, each candidate is a hypergraph of its own."""

    @model_validator(mode="after")
    def _one_loss_matches_pairs(self) -> Self:
        check_weights(self, "distance_weight", "hypergraph_weight")
        if self.inference == "hypergraph" and not self.hypergraph_weight:
            raise ValueError(
                "inference 'hypergraph' with hypergraph_weight 0: no hypergraph is trained. Give "
                "it a weight, or rank by 'intact' or 'mu'"
            )
        return self


class MSRM(Method):
    """Distribution-to-point matching with a hypergraph over the candidates of a batch."""

    title = "MSRM"
    paper = "Wang et al., CVPR 2023"
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

    def embedded(self, encoded: Embeddings) -> Embeddings:
        if self.settings.inference != "hypergraph":
            return encoded
        with torch.no_grad():  # the losses have the candidates of a whole batch
            return replace(encoded, candidate=self.hypergraph.alone(encoded.vectors[:, 0]))

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        return self._rank(images, texts)

    @property
    def t2i_score(self) -> Callable[[Embeddings, Embeddings], Tensor] | None:
        if self.settings.inference == "mu":
            return None
        return lambda images, texts: self._rank(texts, images).T

    def _rank(self, queries: Embeddings, candidates: Embeddings) -> Tensor:
        """`(q, c)` scores by which a query ranks candidates."""
        if self.settings.inference == "intact":
            spread = queries.part("log_variance")
            return -mahalanobis(queries.vectors[:, 0], spread, candidates.vectors[:, 0])
        if self.settings.inference == "mu":
            return cosine(queries.vectors, candidates.vectors)
        return cosine(queries.vectors, candidates.part("candidate")[:, None])

    def products(self, side: str, beta: float | None = None) -> ProductForm | None:
        if self.settings.inference == "mu" or beta is not None:
            return super().products(side, beta)
        if self.settings.inference == "intact":
            return ProductForm(_gaussian_query, _squares)
        return ProductForm(cosine_query, lambda items: items.part("candidate")[:, None])

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        match, left_out = positive_pairs(images.vectors, batch.image_index), batch.left_out
        image_queries = self._direction(images, texts, match, left_out)
        text_queries = self._direction(texts, images, match.T, transposed(left_out))
        return {name: term + text_queries[name] for name, term in image_queries.items()}

    def _direction(
        self,
        queries: Embeddings,
        candidates: Embeddings,
        match: Tensor,
        left_out: Tensor | None,
    ) -> dict[str, Tensor]:
        settings = self.settings
        centres, points = queries.vectors.squeeze(1), candidates.vectors.squeeze(1)
        d2 = share_rows(
            lambda mean, log_variance: mahalanobis(mean, log_variance, points),
            centres,
            queries.part("log_variance"),
        )
        weights, logits = {"distance": settings.distance_weight}, [-self.tau() * d2]
        if settings.hypergraph_weight:
            weights["hypergraph"] = settings.hypergraph_weight
            logits.append(self.hypergraph(centres, points, d2, match))
        losses = soft_match(torch.stack(logits), match, left_out).unbind()
        pairs = zip(weights.items(), losses, strict=True)
        return {name: weight * loss for (name, weight), loss in pairs}


_ACTIVATIONS: dict[str, tuple[Activation, Activation]] = {
    "sigmoid": (torch.sigmoid, torch.sigmoid),
    "relu": (torch.relu, torch.positive),
}
"""The activation between layers, and that of the last layer."""


class Hypergraph(nn.Module):
    """Cosines of queries and candidates, after convolutions of the candidates over hyperedges."""

    def __init__(self, settings: MSRMSettings) -> None:
        super().__init__()
        size, last = settings.size, settings.hypergraph_layers - 1
        form = _ACTIVATIONS[settings.hypergraph_activation]
        self.layers: Any = nn.ModuleList(
            HypergraphConvolution(size, size, form[layer == last]) for layer in range(last + 1)
        )
        self.sharpness = PositiveScalar(settings.hypergraph_sharpness)
        self.alpha = PositiveScalar(settings.alpha) if settings.alpha else None
        self._constant_alpha = settings.alpha

    def forward(self, queries: Tensor, candidates: Tensor, d2: Tensor, match: Tensor) -> Tensor:
        """`queries (q, D)`, `candidates (c, D)`, `d2` and `match (q, c)` -> logits `(q, c)`."""
        alpha = self._constant_alpha if self.alpha is None else self.alpha()
        passed = messages(soft_incidence(d2, match, alpha))
        for layer in self.layers:
            candidates = layer.exchange(candidates, passed)
        vectors = unit(candidates)[:, None]
        return self.sharpness() * share_rows(lambda rows: cosine(rows[:, None], vectors), queries)

    def alone(self, candidates: Tensor) -> Tensor:
        """`candidates (c, D)` -> `(c, D)`, L2-normalised: the output of the last layer where each
        candidate is a hypergraph of its own."""
        for layer in self.layers:
            candidates = layer(candidates, None)
        return unit(candidates)


def _squares(items: Embeddings) -> Tensor:
    """`[b c^2, c]` of points c: a Mahalanobis distance is linear in these numbers."""
    points = items.vectors
    return torch.cat([_balance(points.shape[2]) * points.square(), points], 2)


def _balance(size: int) -> float:
    """A factor that makes the squares of a unit vector about as large as the vector's numbers.

    A power of two multiplies without rounding.
    """
    return 2.0 ** round((size - 1).bit_length() / 2)


def _gaussian_query(query: Embeddings, longest: float) -> ProductQuery:
    """`-d2 = [b c^2, c] . [-1/(b var), 2 mu/var] - sum mu^2/var`."""
    mean, precision = query.vectors[0], (-query.part("log_variance")).exp()
    constant = float((mean.square() * precision).sum())
    vectors = torch.cat([-precision / _balance(mean.shape[1]), 2 * mean * precision], 1)

    def reduce(products: Tensor, mask: Tensor | None) -> Tensor:
        return (products[0, 0] - constant).clamp_(max=0)

    return ProductQuery(vectors, reduce, constant + largest_product(vectors, longest))
