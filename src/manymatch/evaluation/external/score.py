"""The command `score`: the protocols for what somebody else's model made.

Embeddings or a similarity matrix come from a file, and everything after that is as in `evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from manymatch import __version__
from manymatch.config.layout import ResultFiles
from manymatch.datasets import DATASETS
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.external.arrays import file_of
from manymatch.evaluation.external.external_scores import Made, embedded
from manymatch.evaluation.external.listed import read_listed
from manymatch.evaluation.outcome import Outcome, measure, own_and_judged, write
from manymatch.evaluation.protocols import suite
from manymatch.evaluation.protocols.relevance import Judgments, read_judgments
from manymatch.evaluation.protocols.subject import Subject
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.evaluation.ranking.ranks import rank
from manymatch.system import files
from manymatch.system.code_hash import code_hash
from manymatch.system.errors import ConfigError, nearest
from manymatch.system.machine import Clock, record

SETTING = "external"


def score(
    dataset: str,
    made: Made,
    captions: Path,
    relevance: Path | None = None,
    *,
    split: str = "test",
    protocols: Sequence[str] = (),
    depth: int = 100,
    name: str = SETTING,
    written: ResultFiles | None = None,
) -> Outcome:
    """A split ranked by a model's embeddings or scores, with its metrics, rounded.

    Args:
        dataset: says which protocols, unless `protocols` names them; one that the project does not
            know needs them named (`suite.PAIRS`: none).
        captions: the caption table, or a CSV file (`listed.read_listed`).
        relevance: table of true pairs beyond the own ones.
        written: the files to write, under `name`; None writes no file.

    Raises:
        ConfigError: neither or both of scores and embeddings, or no such protocol or data set.
        DataError: a file that cannot be used, or does not fit the others.
    """
    clock = Clock()
    _check_dataset(dataset, protocols)
    listed = read_listed(captions, split)
    found, by = embedded(made, listed)
    judgments = _judgments(relevance, found)
    ranking = rank(by, found.images, found.texts, found.owner, depth)
    subject = Subject(found, by, None, ranking, listed.labels)
    if protocols:
        values = own_and_judged(subject, judgments) | suite.by_name(protocols, subject)
    else:
        values = measure(subject, judgments, dataset)
    result = Outcome(subject, rounded(values), {}, judgments)
    if written is not None:
        identity = {"dataset": dataset, "preset": name, "split": split}
        write(written, result, name, _origin(made, captions, relevance) | identity)
        record(written.machine, "score", clock.usage())
    return result


def _check_dataset(name: str, protocols: Sequence[str]) -> None:
    """A slip in the name would leave out the data set's protocols without a word."""
    if name not in DATASETS and not protocols:
        raise ConfigError(
            f"no dataset '{name}'{nearest(name, DATASETS)}; for captions of your own name the "
            f"protocols too: --protocol {suite.PAIRS} for ranks alone"
        )


def _judgments(relevance: Path | None, found: Embedded) -> Judgments:
    if relevance is None:
        return Judgments(torch.empty(0, 2, dtype=torch.int64), complete=False)
    return read_judgments(relevance, found.image_ids, found.caption_ids, found.owner)


def _origin(made: Made, captions: Path, relevance: Path | None) -> dict[str, Any]:
    """The origin of the numbers; facts that only the model's author has are "not known".

    `data_sha256` is the hash of the caption table.
    """
    sources: dict[str, list[Path | None]] = {
        "scores": [file_of(text) for text in made.scores],
        "images": [file_of(made.images) if made.images else None],
        "texts": [file_of(made.texts) if made.texts else None],
        "image_ids": [made.image_ids],
        "caption_ids": [made.caption_ids],
        "data": [captions],
        "relevance": [relevance],
    }
    hashes = {
        f"{what}_sha256": "+".join(files.sha256(path) for path in paths if path)
        for what, paths in sources.items()
        if any(paths)
    }
    compared = {} if made.scores else {"similarity": made.similarity}
    return {
        "method": SETTING,
        "seed": "not known",
        "features": "not known",
        "setting": SETTING,
        "code_sha256": code_hash(__name__),
        "version": __version__,
        **compared,
        **hashes,
    }
