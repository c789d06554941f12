"""What a ranking is worth, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manymatch import files
from manymatch.evaluation import suite
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.protocols import multi_match, recall_of
from manymatch.evaluation.ranks import Ranking
from manymatch.evaluation.relevance import Judgments
from manymatch.evaluation.run_files import write_run
from manymatch.evaluation.subject import Subject


def measure(subject: Subject, judgments: Judgments, dataset: str) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum` of the ranking, `multi` if there are judgments beyond the own pairs,
    and what else the data set is evaluated by (`suite`)."""
    return own_and_judged(subject, judgments) | suite.of_dataset(dataset, subject)


def own_and_judged(subject: Subject, judgments: Judgments) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum`, and `multi` if there are judgments."""
    found, values = subject.found, recall_of(subject.ranking)
    if judgments:
        parts = found.images, found.texts, found.owner
        values["multi"] = multi_match(subject.score, *parts, judgments, t2i_score=subject.t2i_score)
    return values


def write_ranks(
    folder: Path, ranking: Ranking, found: Embedded, shown: dict[str, dict[str, Any]], tag: str
) -> None:
    """Both run files, and NAME.json of all that is `shown`: the whole folder or nothing."""
    with files.replacing(folder) as partial:
        partial.mkdir()
        images, captions = found.image_ids, found.caption_ids
        write_run(partial / "i2t.trec", ranking.i2t, images, captions, tag)
        write_run(partial / "t2i.trec", ranking.t2i, captions, images, tag)
        for name, value in shown.items():
            files.write_json(partial / f"{name}.json", value)
