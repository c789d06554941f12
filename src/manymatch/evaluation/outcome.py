"""What a ranking is worth, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manymatch import files
from manymatch.evaluation.blocks import Score
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.protocols import multi_match, recall_of
from manymatch.evaluation.ranks import Ranking
from manymatch.evaluation.relevance import Judgments
from manymatch.evaluation.run_files import write_run


def measure(
    ranking: Ranking,
    score: Score,
    found: Embedded,
    judgments: Judgments,
    *,
    t2i_score: Score | None,
) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum` of `ranking`, and `multi` by the scores that it is of, if there are
    judgments beyond the own pairs."""
    values = recall_of(ranking)
    if judgments:
        parts = found.images, found.texts, found.owner
        values["multi"] = multi_match(score, *parts, judgments, t2i_score=t2i_score)
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
