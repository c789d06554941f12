"""The stage `evaluate`: rank a split with a trained model, and write down everything it shows."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

from manymatch import files
from manymatch.config.params import Elements
from manymatch.config.recipe import Recipe
from manymatch.errors import CheckpointError
from manymatch.evaluation.embed import Embedded, embed
from manymatch.evaluation.metrics import rounded
from manymatch.evaluation.protocols import multi_match, recall_of
from manymatch.evaluation.provenance import effort, origin
from manymatch.evaluation.ranks import Ranking, rank
from manymatch.evaluation.relevance import Judgments, read_judgments
from manymatch.evaluation.run_files import write_run
from manymatch.evaluation.samples import drawn_queries, sample_queries
from manymatch.evaluation.sets import analyse_sets
from manymatch.methods.base import Method
from manymatch.methods.checkpoint import feature_width, load_model
from manymatch.progress import track
from manymatch.shards.read import Index, batches, read_index
from manymatch.shards.read import samples as stored_samples

_IMAGES_PER_BATCH = 64


def evaluate(
    model: Path,
    shards: Path,
    relevance: Path,
    metrics: Path,
    provenance: Path,
    run: Path,
    *,
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
        depth: ranks kept of each query in the run files.
        samples: queries of each kind in `samples.json`.
        elements: selections of set elements to evaluate besides each alone.

    Raises:
        CheckpointError: the model was trained on other features than the shards hold.
        DataError: shards or relevance table cannot be used, or the model's scores.
    """
    started = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    method, recipe, vocabulary = load_model(model)
    index = read_index(shards)
    _check_fit(model, recipe, index)
    stream = batches(shards, split, vocabulary, _IMAGES_PER_BATCH)
    found = embed(method.to(device), track(stream, f"embed {split}", len(stream)), device)
    judgments = read_judgments(relevance, found.image_ids, found.caption_ids, found.owner)
    parts = found.images, found.texts, found.owner
    ranking = rank(method.score, *parts, depth, t2i_score=method.t2i_score)
    values = _metrics(method, found, ranking, judgments)
    stored = partial(stored_samples, shards, split)
    shown = {"samples": sample_queries(ranking, found.owner, judgments, stored, samples)}
    queries = drawn_queries(len(found.image_ids), len(found.caption_ids), samples)
    whole = recall_of(ranking)
    sets = analyse_sets(method, found, whole, elements, queries, stored, vocabulary)
    if sets:
        values["sets"], shown["sets"] = sets.metrics, sets.shown

    _write_run(run, ranking, found, shown, tag=f"{recipe.method}-{model.name}")
    files.write_json(metrics, rounded(values))
    record = origin(model, shards, recipe) | {
        "dataset": index.dataset,
        "split": split,
        "images": len(found.image_ids),
        "captions": len(found.caption_ids),
        "parameters": sum(parameter.numel() for parameter in method.parameters()),
    }
    files.write_json(provenance, record | effort(device, started))


def _check_fit(model: Path, recipe: Recipe, index: Index) -> None:
    width = feature_width(model)
    if (recipe.features, width) != (index.features, index.width):
        raise CheckpointError(
            f"{model}: trained on '{recipe.features}' features of width {width}, but the shards "
            f"hold '{index.features}' of width {index.width}; evaluate it on the shards of its "
            "own features, or train it again"
        )


def _metrics(
    method: Method, found: Embedded, ranking: Ranking, judgments: Judgments
) -> dict[str, Any]:
    values = recall_of(ranking)
    if judgments:
        parts = found.images, found.texts, found.owner
        values["multi"] = multi_match(method.score, *parts, judgments, t2i_score=method.t2i_score)
    return values


def _write_run(
    folder: Path, ranking: Ranking, found: Embedded, shown: dict[str, dict[str, Any]], tag: str
) -> None:
    with files.replacing(folder) as partial_folder:
        partial_folder.mkdir()
        images, captions = found.image_ids, found.caption_ids
        write_run(partial_folder / "i2t.trec", ranking.i2t, images, captions, tag)
        write_run(partial_folder / "t2i.trec", ranking.t2i, captions, images, tag)
        for name, value in shown.items():
            files.write_json(partial_folder / f"{name}.json", value)
