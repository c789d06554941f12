"""The stage `evaluate`: rank a split with a trained model, and write down everything it shows."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import torch

from manymatch.config.params import Elements
from manymatch.evaluation.outcome import Places, Wanted, outcome, write
from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.provenance import effort
from manymatch.evaluation.samples import draw_queries
from manymatch.evaluation.sets.analysis import analyse_sets
from manymatch.evaluation.trained import embed_split
from manymatch.shards.read import samples as stored_samples


def evaluate(
    model: Path,
    shards: Path,
    relevance: Path,
    metrics: Path,
    provenance: Path,
    run: Path,
    *,
    captions: Path | None = None,
    split: str = "test",
    depth: int = 100,
    samples: int = 12,
    elements: Elements = Elements(),  # noqa: B008  frozen
) -> None:
    """Evaluate a trained model on one split.

    Args:
        model: folder of the trained model; its name is the preset's.
        shards: folder of the shards.
        relevance: table of true pairs beyond the own ones (it may be empty).
        metrics: the JSON file of numbers to write.
        provenance: the JSON file that says where they come from.
        run: folder for `i2t.trec`, `t2i.trec`, `samples.json`, and `sets.json` of set methods.
        captions: the caption table, whose labels some protocols need (None: without those).
        depth: ranks kept of each query in the run files.
        samples: queries of each kind in `samples.json`.
        elements: selections of set elements to evaluate besides each alone.

    Raises:
        CheckpointError: the model was trained on other features than the shards hold.
        DataError: shards or relevance table cannot be used, or the model's scores.
    """
    started = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trained = embed_split(model, shards, split, device)
    method, embedded = trained.method, trained.embedded
    dataset, stored = trained.index.dataset, partial(stored_samples, shards, split)
    wanted = Wanted(relevance, captions, depth, samples)
    result = outcome(embedded, method.score, method.t2i_score, dataset, stored, wanted)
    queries = draw_queries(len(embedded.image_ids), len(embedded.caption_ids), samples)
    whole = recall_of(result.subject.ranking)
    sets = analyse_sets(
        method, embedded, whole, elements, queries, stored, result.judgments, trained.vocabulary
    )
    if sets:
        result.values["sets"], result.shown["sets"] = sets.metrics.to_json(), sets.details

    tag = f"{trained.preset.method}-{model.name}"
    record = trained.origin() | {"dataset": dataset, "split": split} | effort(device, started)
    write(Places(metrics, provenance, run), result, tag, record)
