"""The metrics of a ranked split, and the files that hold them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import torch

from manymatch.config.layout import ResultFiles
from manymatch.datasets.base import NEAR_DUPLICATES
from manymatch.evaluation.protocols import suite
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.protocols.recall import multi_match, recall_of
from manymatch.evaluation.protocols.relevance import Judgments, read_judgments
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.evaluation.ranking.ranks import Direction, rank
from manymatch.evaluation.samples import Stored, sample_queries
from manymatch.evaluation.votes import majority, read_votes
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.embed import Embedded
from manymatch.model.scores import Score
from manymatch.results.base import Result
from manymatch.results.metrics import Headline, Metrics, Provenance
from manymatch.results.ranked import write_ranked
from manymatch.util import files
from manymatch.util.parquet_file import metadata_of
from manymatch.util.progress import say


@dataclass(frozen=True)
class EvaluationOptions:
    """The tables that judge a split, the split, and how much is kept of its ranking.

    Attributes:
        relevance: table of judged true pairs besides the positives (it may be empty).
        captions: the caption table, whose labels some protocols need; None leaves them out.
        depth: number of ranks that the run files keep of each query.
        samples: number of queries of each kind in `samples.json`.
        votes: the pairs that people judged in the explorer (`evaluation.votes`), which may be
            missing.
    """

    relevance: Path
    captions: Path | None = None
    split: str = "test"
    depth: int = 100
    samples: int = 12
    votes: Path | None = None


@dataclass(frozen=True)
class SplitResults:
    """A ranked split, its metrics, its true pairs, and by name the JSON files that show it."""

    ranked: RankedSplit
    values: dict[str, Any]
    shown: dict[str, Result]
    judgments: Judgments


def rank_split(
    embedded: Embedded,
    score: Score,
    t2i_score: Score | None,
    dataset: str,
    stored: Stored,
    options: EvaluationOptions,
) -> SplitResults:
    """Rank an embedded split, measure the ranking and pick sample queries; `stored` gives the
    images."""
    ids = embedded.image_ids, embedded.caption_ids
    voted = majority(read_votes(options.votes)) if options.votes else {}
    images, captions = map(set, ids)
    lost = [pair for pair in voted if pair[0] not in images or pair[1] not in captions]
    if lost:
        say(
            f"{options.votes}: {len(lost):,} of {len(voted):,} judged pairs have ids that are not "
            f"in the split {options.split}, and do not count. The first is {lost[0]}"
        )
    judgments = read_judgments(options.relevance, *ids, embedded.image_index, voted)
    ranking = rank(score, *embedded.gallery, options.depth, t2i_score=t2i_score)
    labels = suite.labels_for(dataset, options.captions, embedded.image_ids)
    ranked = RankedSplit(embedded, score, t2i_score, ranking, labels)
    by_labels = any(protocol.name == "pmrp" for protocol in suite.dataset_protocols(dataset))
    duplicates = None
    if options.captions and options.samples:  # experiments show no queries
        duplicates = metadata_of(options.captions, NEAR_DUPLICATES, "captions")
    queries = sample_queries(
        ranking,
        embedded.image_index,
        judgments,
        stored,
        options.samples,
        embedded.image_ids,
        labels=labels if by_labels else None,
        duplicates=duplicates,
    )
    measured = measure(ranked, judgments, dataset)
    return SplitResults(ranked, measured, {"samples": queries}, judgments)


def measure(ranked: RankedSplit, judgments: Judgments, dataset: str) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum` of the ranking, `multi` if pairs besides the positives are judged,
    and the numbers of the data set's other protocols (`suite`)."""
    return pair_metrics(ranked, judgments) | suite.dataset_metrics(dataset, ranked)


def pair_metrics(ranked: RankedSplit, judgments: Judgments) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum`, and `multi` if there are judgments."""
    values = recall_of(ranked.ranking)
    if judgments:
        values["multi"] = multi_match(ranked, judgments)
    return values


def write(written: ResultFiles, outcome: SplitResults, tag: str, origin: dict[str, Any]) -> None:
    """Write the run files with the name `tag`, the rounded metrics, and the provenance: `origin`
    (`EmbeddedModel.origin`) and the split's size. `written.machine` is left to the stage."""
    embedded, ranking = outcome.ranked.embedded, outcome.ranked.ranking
    images, captions = embedded.image_ids, embedded.caption_ids
    with files.replacing(written.run) as partial:
        partial.mkdir()
        write_run(partial / "i2t.trec", ranking.i2t, images, captions, tag)
        write_run(partial / "t2i.trec", ranking.t2i, captions, images, tag)
        if ranking.i2t.items.shape[1]:  # experiments keep no ranking
            points = map_points(outcome.ranked.embedded)
            for way, ids in (("i2t", images), ("t2i", captions)):
                best: Direction = getattr(ranking, way)
                values = best.ranks.numpy(), best.items.numpy(), best.scores.numpy()
                write_ranked(partial / f"{way}.parquet", ids, *values, points[way])
        for name, result in outcome.shown.items():
            result.write(partial / f"{name}.json")
    metrics = Metrics.model_validate(rounded(outcome.values))
    metrics.write(written.full)
    Headline.of(metrics).write(written.metrics)
    size = {"images": len(images), "captions": len(captions)}
    Provenance.model_validate(origin | size).write(written.provenance)


def map_points(embedded: Embedded) -> dict[str, np.ndarray | None]:
    """The images `i2t (n, 2)` and the captions `t2i (m, 2)` on the plane of the two largest
    principal components of all of them. A set counts by the mean of its elements. None: row
    numbers stand in place of embeddings, or the sides have different widths.

    The sign of a component is that of its largest loading, so that a map is not mirrored by chance.
    """
    sides = embedded.images, embedded.texts
    widths = {side.vectors.shape[-1] for side in sides}
    if len(widths) > 1 or widths == {1} or not embedded.images.vectors.is_floating_point():
        return {"i2t": None, "t2i": None}
    vectors = torch.cat([set_means(side).float() for side in sides])
    vectors -= vectors.mean(0)
    with torch.inference_mode(False), torch.random.fork_rng():
        torch.manual_seed(0)  # of the start of the iteration
        size = min(8, *vectors.shape)
        _, _, axes = torch.pca_lowrank(vectors.clone(), size, center=False, niter=6)
    axes = axes[:, :2]
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    points = (vectors @ (axes * signs)).cpu().numpy()
    return {"i2t": points[: len(sides[0])], "t2i": points[len(sides[0]) :]}


def set_means(side: Embeddings) -> torch.Tensor:
    """The mean of the real elements of each set `(n, D)`."""
    if side.mask is None:
        return side.vectors.mean(1)
    real = side.mask[..., None].to(side.vectors.dtype)
    return (side.vectors * real).sum(1) / real.sum(1)


_UNSAFE = re.compile(r"[\s%]")


def run_id(name: str) -> str:
    """`name` with white space percent-encoded ("a b" -> "a%20b"), because a space ends a field.

    `urllib.parse.unquote` restores the name.
    """
    return _UNSAFE.sub(lambda match: quote(match[0]), name)


def write_run(
    target: Path, direction: Direction, queries: Sequence[str], items: Sequence[str], tag: str
) -> None:
    """Write lines `query Q0 item rank score tag` with ranks from 1, whole or not at all; `queries`
    and `items` are ids."""
    digits = 17 if direction.scores.dtype == torch.float64 else 9  # they tell two scores apart
    fields, tag = [*map(run_id, items)], run_id(tag)
    with (
        files.replacing(target) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        for query, *best in zip(queries, direction.items, direction.scores, strict=True):
            ranked = enumerate(zip(*map(torch.Tensor.tolist, best), strict=True), start=1)
            stream.writelines(
                f"{run_id(query)} Q0 {fields[item]} {place} {score:.{digits}g} {tag}\n"
                for place, (item, score) in ranked
            )
