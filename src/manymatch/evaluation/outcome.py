"""The metrics of a ranked split, and the files that hold them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymatch.config.layout import ResultFiles
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.protocols import suite
from manymatch.evaluation.protocols.recall import multi_match, recall_of
from manymatch.evaluation.protocols.relevance import Judgments, read_judgments
from manymatch.evaluation.protocols.subject import Subject
from manymatch.evaluation.ranking.blocks import Score
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.evaluation.ranking.ranks import rank
from manymatch.evaluation.run_files import write_run
from manymatch.evaluation.samples import Stored, sample_queries
from manymatch.system import files


@dataclass(frozen=True)
class Wanted:
    """The tables that judge a split, and how much is kept of its ranking; see `evaluate`."""

    relevance: Path
    captions: Path | None
    depth: int
    samples: int


@dataclass(frozen=True)
class Outcome:
    """A ranked split, its metrics, its true pairs, and by name the JSON files that show it."""

    subject: Subject
    values: dict[str, Any]
    shown: dict[str, dict[str, Any]]
    judgments: Judgments


def outcome(
    found: Embedded,
    score: Score,
    t2i_score: Score | None,
    dataset: str,
    stored: Stored,
    wanted: Wanted,
) -> Outcome:
    """Rank an embedded split, measure the ranking and pick sample queries; `stored` gives the
    images."""
    judgments = read_judgments(wanted.relevance, found.image_ids, found.caption_ids, found.owner)
    parts = found.images, found.texts, found.owner
    ranking = rank(score, *parts, wanted.depth, t2i_score=t2i_score)
    labels = suite.labels_for(dataset, wanted.captions, found.image_ids)
    subject = Subject(found, score, t2i_score, ranking, labels)
    zeta = labels if "pmrp" in suite.OF_DATASET.get(dataset, ()) else None
    queries = sample_queries(ranking, found.owner, judgments, stored, wanted.samples, labels=zeta)
    values = measure(subject, judgments, dataset)
    return Outcome(subject, values, {"samples": queries}, judgments)


def measure(subject: Subject, judgments: Judgments, dataset: str) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum` of the ranking, `multi` if pairs besides the positives are judged,
    and the numbers of the data set's other protocols (`suite`)."""
    return own_and_judged(subject, judgments) | suite.of_dataset(dataset, subject)


def own_and_judged(subject: Subject, judgments: Judgments) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum`, and `multi` if there are judgments."""
    found, values = subject.found, recall_of(subject.ranking)
    if judgments:
        parts = found.images, found.texts, found.owner
        values["multi"] = multi_match(subject.score, *parts, judgments, t2i_score=subject.t2i_score)
    return values


def write(written: ResultFiles, outcome: Outcome, tag: str, origin: dict[str, Any]) -> None:
    """Write the run files, the rounded metrics, and the provenance: `origin` and the split's size.

    Args:
        written: the files; `written.machine` is left to the stage.
        tag: the name of the run in the TREC files.
        origin: model, data and code of the result (`provenance.origin`).
    """
    found = outcome.subject.found
    _write_ranks(written.run, outcome.subject, outcome.shown, tag)
    values = rounded(outcome.values)
    files.write_json(written.full, values)
    # Unsorted: `dvc exp show` cuts columns at the right, so rsum comes first.
    files.write_text(written.metrics, json.dumps(headline(values), indent=2) + "\n")
    size = {"images": len(found.image_ids), "captions": len(found.caption_ids)}
    files.write_json(written.provenance, origin | size)


def headline(values: dict[str, Any]) -> dict[str, float]:
    """The few numbers that DVC's tables show: rsum, R@1 both ways and, if pairs are judged, mAP@R
    both ways."""
    numbers = {"rsum": values["rsum"], "i2t_r1": values["i2t"]["r1"], "t2i_r1": values["t2i"]["r1"]}
    if "multi" in values:
        numbers |= {f"{way}_map_at_r": values["multi"][way]["map_at_r"] for way in ("i2t", "t2i")}
    return numbers


def _write_ranks(
    folder: Path, subject: Subject, shown: dict[str, dict[str, Any]], tag: str
) -> None:
    """Both run files, and NAME.json of all that is `shown`: the whole folder or nothing."""
    ranking, found = subject.ranking, subject.found
    with files.replacing(folder) as partial:
        partial.mkdir()
        images, captions = found.image_ids, found.caption_ids
        write_run(partial / "i2t.trec", ranking.i2t, images, captions, tag)
        write_run(partial / "t2i.trec", ranking.t2i, captions, images, tag)
        for name, value in shown.items():
            files.write_json(partial / f"{name}.json", value)
