"""The stage `evaluate`: rank a split with a trained model, and write down everything it shows."""

from functools import partial
from pathlib import Path

from manymatch.config.layout import ResultFiles
from manymatch.config.params import Elements
from manymatch.evaluation.embedded_model import embed_split
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.samples import draw_queries
from manymatch.evaluation.sets.analysis import analyse_sets
from manymatch.evaluation.split_results import EvaluationOptions, rank_split, write
from manymatch.networks.device import pick_device
from manymatch.results.machine import Clock, record
from manymatch.shards.read import samples as stored_samples


def evaluate(
    model: Path,
    shards: Path,
    written: ResultFiles,
    options: EvaluationOptions,
    elements: Elements = Elements(),  # noqa: B008  frozen
) -> RankedSplit:
    """Evaluate a trained model on one split, and return the ranked split.

    Args:
        model: folder of the trained model; its name is the preset's.
        shards: folder of the shards.
        written: the files to write. The run folder gets `i2t.trec`, `t2i.trec`, `samples.json`,
            and `sets.json` if the method embeds sets.
        elements: selections of set elements to evaluate besides each single element.

    Raises:
        CheckpointError: the model was trained on other features than the shards hold.
        DataError: shards or relevance table cannot be used, or the model's scores.
    """
    clock = Clock()
    device = pick_device()
    trained = embed_split(model, shards, options.split, device)
    method, embedded = trained.method, trained.embedded
    dataset = trained.index.dataset
    stored = partial(stored_samples, shards, options.split, graphs=method.shown_graph)
    result = rank_split(embedded, method.score, method.t2i_score, dataset, stored, options)
    queries = draw_queries(len(embedded.image_ids), len(embedded.caption_ids), options.samples)
    whole = recall_of(result.ranked.ranking)
    sets = analyse_sets(
        method, embedded, whole, elements, queries, stored, result.judgments, trained.vocabulary
    )
    if sets:
        result.values["sets"], result.shown["sets"] = sets[0].to_json(), sets[1]

    tag = f"{trained.preset.method}-{model.name}"
    origin = trained.origin(__name__) | {"dataset": dataset, "split": options.split}
    write(written, result, tag, origin)
    record(written.machine, "evaluate", clock.usage(str(device)))
    return result.ranked
