"""The stages `ensemble` and `rerank`: several trained models rank by the mean of their scores, and
a caption matches an image only if its least likely entity does (Pham et al., CORA, CVPR 2024,
eq. 14)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manymatch.config.layout import ResultFiles
from manymatch.evaluation.embedded_model import EmbeddedModel, embed_split
from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.ranking.ranks import Mixture, rank_each
from manymatch.evaluation.split_results import EvaluationOptions, rank_split, write
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.model.embed import Embedded
from manymatch.model.scores import Score
from manymatch.networks.device import pick_device
from manymatch.results.machine import Clock, record
from manymatch.shards.read import samples as samples_of
from manymatch.shards.sample import Sample
from manymatch.util.errors import ConfigError, DataError, repeated

JOINED_BY = "+"
"""Joins the members in an ensemble's name; no preset has this sign in its name."""
SUFFIX = "+rerank"
"""Follows the model's name in the name of the re-ranked result."""
BETAS = tuple(step / 20 for step in range(21))


def ensemble(
    members: Sequence[tuple[Path, Path]], written: ResultFiles, options: EvaluationOptions
) -> None:
    """Evaluate the mean of the members' similarity matrices.

    No matrix is ever whole in memory: each block of scores is averaged and ranked. The scores are
    not rescaled, so members should score on one scale: seeds or variants of one method.

    Args:
        members: the folder of the trained model and the folder of its shards, for each member.

    Raises:
        ConfigError: fewer than two members, or a member is named twice.
        DataError: the members' shards do not hold the same images and captions.
        CheckpointError: a member is not a trained model, or was trained on other features.
    """
    clock = Clock()
    if len(members) < 2:
        raise ConfigError("an ensemble needs two trained models or more")
    device = pick_device()
    models = Ensemble.embed(members, options.split, device)
    scores = models.score, models.t2i_score
    result = rank_split(models.embedded, *scores, models.dataset, models.stored, options)
    write(written, result, written.run.name, models.origin())
    record(written.machine, "ensemble", clock.usage(str(device)))


def rerank(
    members: Sequence[tuple[Path, Path]], written: ResultFiles, options: EvaluationOptions
) -> None:
    """Evaluate a trained model, or an ensemble, with `reranked` scores.

    An ensemble (table 4) first averages the scores of captions and of entities over its members;
    the minimum over a caption's entities is taken over these means. Beta is the best value on the
    split `validation`.

    Args:
        members: the folder of the trained model and the folder of its shards, for each member.

    Raises:
        ConfigError: a member's method gives captions no entities, or a member is named twice.
        DataError: the members have different images, captions or entities.
        CheckpointError: as for `ensemble`.
    """
    clock = Clock()
    device = pick_device()
    held_out = Ensemble.embed(members, "validation", device, entities=True)
    beta = best_beta(rsum_by_beta(held_out.score, held_out.embedded))
    models = Ensemble.embed(members, options.split, device, entities=True)
    score = reranked(models.score, beta)
    result = rank_split(models.embedded, score, None, models.dataset, models.stored, options)
    origin = models.origin()
    name = origin["preset"] + SUFFIX
    tag = f"{origin['method']}-{name}"
    write(written, result, tag, origin | {"preset": name, "rerank_beta": beta})
    record(written.machine, "rerank", clock.usage(str(device)))


@dataclass(frozen=True)
class Ensemble:
    """One or several models on one split; `score` is the mean of their scores.

    `embedded` holds row numbers in place of embeddings: a block of `embedded` says which rows of
    every member are scored. If all members give entities, the numbers of the entities follow those
    of the captions, and `score` compares an image with an entity as with a caption.
    """

    members: Sequence[EmbeddedModel]
    split: str

    @classmethod
    def embed(
        cls,
        members: Sequence[tuple[Path, Path]],
        split: str,
        device: torch.device,
        entities: bool = False,
    ) -> "Ensemble":
        """Embed `split` with each member: the folder of the model and the folder of its shards.

        Args:
            entities: whether all members must give the same entities.

        Raises:
            ConfigError: a member is named twice, or gives no entities.
            DataError: the members' shards do not hold the same images, captions or entities.
            CheckpointError: as for `embed_split`.
        """
        if twice := repeated(model.name for model, _ in members):
            raise ConfigError(f"ensemble: '{twice}' is named twice. Name each model once.")
        trained = [embed_split(model, shards, split, device) for model, shards in members]
        if entities:
            for one in trained:
                check_entities(one.method, one.embedded, f"re-ranking with '{one.folder.name}'")
        first, *others = trained
        expected = _gallery(first.embedded, entities)
        for other in others:
            for name, values in _gallery(other.embedded, entities).items():
                if values != expected[name]:
                    raise DataError(
                        f"{other.shards}: not the same {name} in the same order as in "
                        f"{first.shards}. Write the shards of both again."
                    )
        return cls(trained, split)

    @property
    def dataset(self) -> str:
        return self.members[0].index.dataset

    @cached_property
    def embedded(self) -> Embedded:
        first = self.members[0].embedded
        texts = _numbered(first.texts)
        if all(member.embedded.texts.entities is not None for member in self.members):
            caption_index = first.texts.parts()["entity_caption"]
            numbers = torch.arange(len(caption_index), device=caption_index.device) + len(texts)
            texts = replace(texts, entities=numbers[:, None], entity_caption=caption_index)
        return replace(first, images=_numbered(first.images), texts=texts)

    @property
    def score(self) -> Score:
        return _mean([(member.embedded, member.method.score) for member in self.members])

    @property
    def t2i_score(self) -> Score | None:
        """None if every member uses one score for both directions."""
        if not any(member.method.t2i_score for member in self.members):
            return None
        return _mean(
            [(one.embedded, one.method.t2i_score or one.method.score) for one in self.members]
        )

    def stored(self, rows: Sequence[int]) -> Iterator[Sample]:
        """Read images of the split from the first member's shards; see `shards.read.samples`."""
        first = self.members[0]
        return samples_of(first.shards, self.split, rows, first.method.shown_graph)

    def origin(self) -> dict[str, Any]:
        """The origin of the results, for the provenance file (`EmbeddedModel.origin`)."""
        origins = [member.origin(__name__) for member in self.members]
        first = origins[0] | {"dataset": self.dataset, "split": self.split}
        if len(origins) == 1:
            return first
        settings = {origin["setting"] for origin in origins}
        return {
            "preset": JOINED_BY.join(origin["preset"] for origin in origins),
            "setting": settings.pop() if len(settings) == 1 else "small-scale",
            "parameters": sum(origin["parameters"] for origin in origins),
            "members": origins,
            **{key: _joined(origins, key) for key in ("method", "seed", "features")},
            **{key: first[key] for key in ("version", "dataset", "split")},
        }


def _gallery(embedded: Embedded, entities: bool) -> dict[str, Any]:
    """What all members must have in the same order."""
    gallery = {
        "images": embedded.image_ids,
        "captions": embedded.caption_ids,
        "pairs": embedded.image_index.tolist(),
    }
    if not entities:
        return gallery
    parts = embedded.texts.parts()
    names = ("entity_caption", "entity_names", "entity_attributes")
    return gallery | {"entities": [parts[name].tolist() for name in names]}


def _joined(origins: Sequence[dict[str, Any]], key: str) -> Any:
    """The value that the members share, or all their values joined."""
    values = list(dict.fromkeys(origin[key] for origin in origins))
    return values[0] if len(values) == 1 else JOINED_BY.join(map(str, values))


def _numbered(embeddings: Embeddings) -> Embeddings:
    numbers = torch.arange(len(embeddings), device=embeddings.vectors.device)
    return Embeddings(numbers[:, None, None])


def _mean(members: Sequence[tuple[Embedded, Score]]) -> Score:
    """The mean of the members' scores, for consecutive runs of numbered images and texts."""

    def run_of(numbered: Embeddings) -> slice:
        first = int(numbered.vectors[0])
        return slice(first, first + len(numbered))

    def mean(images: Embeddings, texts: Embeddings) -> Tensor:
        rows, run = run_of(images), run_of(texts)
        scores = [
            score(embedded.images.rows(rows), _texts(embedded.texts, run))
            for embedded, score in members
        ]
        return torch.stack(scores).mean(0)

    return mean


def _texts(texts: Embeddings, run: slice) -> Embeddings:
    """A run of the captions, or of the entities, whose numbers follow those of the captions."""
    count = len(texts)
    if run.start < count:
        return texts.rows(run)
    entities = texts.parts()["entities"][run.start - count : run.stop - count]
    return Embeddings(entities[:, None])


def check_entities(method: Method, embedded: Embedded, user: str) -> None:
    """Check that the captions have entities, which `user` needs (else a `ConfigError`)."""
    if embedded.texts.entities is None:
        raise ConfigError(
            f"{user} needs the entities of captions, and the method "
            f"'{type(method).__module__.rpartition('.')[2]}' gives none. Use the method 'cora'."
        )


def rsum_by_beta(score: Score, embedded: Embedded) -> dict[float, float]:
    """The rsum on an embedded split for each beta of `BETAS`. Scores are computed once."""

    def mixture(beta: float) -> Mixture:
        return lambda scores: [_mixed(scores[0], scores[1], beta)]

    rankings = rank_each(
        [score, partial(lowest_entity, score)], [mixture(beta) for beta in BETAS], *embedded.gallery
    )
    return {beta: recall_of(ranking)["rsum"] for beta, ranking in zip(BETAS, rankings, strict=True)}


def best_beta(rsums: dict[float, float]) -> float:
    """The beta of the highest rsum; among equals the largest, which changes the scores least."""
    return max(rsums, key=lambda beta: (rsums[beta], beta))


def reranked(score: Score, beta: float) -> Score:
    """`beta s(v, t) + (1 - beta) min_k s(v, e_k)` over the entities e_k of each caption (eq. 14).

    `score` must accept the entities of captions in place of captions.
    """

    def mixed(images: Embeddings, texts: Embeddings) -> Tensor:
        return _mixed(score(images, texts), lowest_entity(score, images, texts), beta)

    return mixed


def _mixed(whole: Tensor, lowest: Tensor, beta: float) -> Tensor:
    return beta * whole + (1 - beta) * lowest


def lowest_entity(score: Score, images: Embeddings, texts: Embeddings) -> Tensor:
    """`(n_images, n_texts)`: the score of each caption's least likely entity. Every caption must
    have an entity."""
    parts = texts.parts()
    scores = score(images, Embeddings(parts["entities"][:, None]))
    lowest = scores.new_full((len(images), len(texts)), torch.inf)
    caption_index = parts["entity_caption"].expand(len(images), -1)
    return lowest.scatter_reduce(1, caption_index, scores, "amin")
