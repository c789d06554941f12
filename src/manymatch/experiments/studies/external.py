"""The studies that need only ranks, for scores that another program wrote to files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from manymatch.batch.numbering import CaptionEntry
from manymatch.evaluation.protocols.subject import Subject
from manymatch.experiments.studies.reranking import recalls
from manymatch.experiments.studies.rich_captions import rich_captions
from manymatch.experiments.studies.subject import External
from manymatch.results.studies import Studies, StudiesByName, Study
from manymatch.scene_graphs.verbs import add_verbs
from manymatch.shards.tables import read_images
from manymatch.util import files
from manymatch.util.errors import DataError
from manymatch.util.progress import say


def study_scores(
    subject: Subject, captions: Path, graphs: Path, target: Path, identity: dict[str, Any]
) -> None:
    """Write the study `rich_captions`, and `reranking` with only the plain scores, to `target`.

    Without a table of scene graphs there is no study, and an earlier `target` is removed.

    Args:
        subject: the split as the command `score` ranked it.
        captions, graphs: the data set's caption table and its scene graphs.
        identity: `dataset`, `split`, `preset` and `method` of the results.

    Raises:
        DataError: a table cannot be used, or has not all captions of the split.
    """
    if not graphs.is_file():
        files.remove(target)
        say(f"{target.stem}: no study, because {graphs} is missing. Run the stage 'scene_graphs'.")
        return
    split = identity["split"]
    external = External(subject.ranking, _captions(captions, graphs, split, subject))
    plain: Study[Any] = Study(
        title="Re-ranking by entities",
        about="Another model's scores as they are: re-ranking needs scores of entities too.",
        tables=[recalls(split, [("plain", None, subject.ranking)])],
        samples=[],
    )
    studies = {"rich_captions": rich_captions(external), "reranking": plain}
    Studies(**identity, studies=StudiesByName.model_validate(studies)).write(target)


def _captions(captions: Path, graphs: Path, split: str, subject: Subject) -> list[CaptionEntry]:
    images = read_images(captions, graphs)
    captions_of_id = {
        caption.id: replace(caption, graph=add_verbs(caption.graph))
        for image in images
        if image.split == split
        for caption in image.captions
    }
    try:
        return [captions_of_id[caption_id] for caption_id in subject.embedded.caption_ids]
    except KeyError as error:
        raise DataError(
            f"{graphs}: no scene graph of the caption {error}. Run the stage 'scene_graphs' again."
        ) from None
