"""The command `score`: evaluate embeddings or similarity matrices of another program.

The embeddings or matrices are read from files; everything else is as in `evaluate`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from manymatch import __version__
from manymatch.config.layout import ResultFiles
from manymatch.datasets import DATASETS
from manymatch.evaluation.external.arrays import file_of
from manymatch.evaluation.external.external_scores import ExternalFiles, read_external
from manymatch.evaluation.external.split_table import read_split
from manymatch.evaluation.protocols import protocol_modules, suite
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.protocols.relevance import NO_JUDGMENTS, read_judgments
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.evaluation.ranking.ranks import rank
from manymatch.evaluation.split_results import (
    EvaluationOptions,
    SplitResults,
    measure,
    own_and_judged,
    write,
)
from manymatch.results.machine import Clock, record
from manymatch.util import files
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import ConfigError, nearest

SETTING = "external"


def score(
    dataset: str,
    external: ExternalFiles,
    captions: Path,
    relevance: Path | None = None,
    *,
    split: str = "test",
    protocols: Sequence[str] = (),
    name: str = SETTING,
    written: ResultFiles | None = None,
    known: Collection[str] = DATASETS,
) -> SplitResults:
    """Rank a split by another program's embeddings or scores; the metrics are rounded.

    Args:
        dataset: decides about the protocols unless `protocols` names them. A data set that is
            not `known` needs `protocols` (`suite.PAIRS`: none).
        captions: the caption table, or a CSV file (`split_table.read_split`).
        relevance: table of positives beyond the annotated pairs.
        written: where metrics, provenance and run files are written, under `name`; None: nowhere.
        known: the data sets whose protocols are known.

    Raises:
        ConfigError: there are neither scores nor embeddings, or both; or the protocol or data set
            is unknown.
        DataError: a file cannot be used, or does not fit the others.
    """
    clock = Clock()
    if dataset not in known and not protocols:
        # A misspelt name must not leave out the data set's protocols silently.
        raise ConfigError(
            f"no dataset '{dataset}'{nearest(dataset, known)}. For captions of your own name "
            f"the protocols too: --protocol {suite.PAIRS} for ranks only."
        )
    table = read_split(captions, split)
    embedded, similarity = read_external(external, table)
    image_index, judgments = embedded.image_index, NO_JUDGMENTS
    if relevance is not None:
        judgments = read_judgments(relevance, table.image_ids, table.caption_ids, image_index)
    ranking = rank(similarity, *embedded.gallery, EvaluationOptions.depth)
    ranked = RankedSplit(embedded, similarity, None, ranking, table.labels)
    if protocols:
        values = own_and_judged(ranked, judgments) | suite.protocol_metrics(protocols, ranked)
    else:
        values = measure(ranked, judgments, dataset)
    result = SplitResults(ranked, rounded(values), {}, judgments)
    if written is not None:
        identity = {"dataset": dataset, "preset": name, "split": split}
        write(written, result, name, _origin(external, captions, relevance) | identity)
        record(written.machine, "score", clock.usage())
    return result


def _origin(external: ExternalFiles, captions: Path, relevance: Path | None) -> dict[str, Any]:
    """The origin of the numbers; facts that only the model's author has are "not known".

    `data_sha256` is the hash of the caption table.
    """
    sources: dict[str, list[Path | None]] = {
        "scores": [file_of(text) for text in external.scores],
        "images": [file_of(external.images) if external.images else None],
        "texts": [file_of(external.texts) if external.texts else None],
        "image_ids": [external.image_ids],
        "caption_ids": [external.caption_ids],
        "data": [captions],
        "relevance": [relevance],
    }
    hashes = {
        f"{what}_sha256": "+".join(files.sha256(path) for path in paths if path)
        for what, paths in sources.items()
        if any(paths)
    }
    compared = {} if external.scores else {"similarity": external.similarity}
    return {
        "method": SETTING,
        "seed": "not known",
        "features": "not known",
        "setting": SETTING,
        "code_sha256": code_hash(__name__, *protocol_modules()),
        "version": __version__,
        **compared,
        **hashes,
    }
