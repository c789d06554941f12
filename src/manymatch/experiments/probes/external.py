"""The probes that need only ranks, for scores that another program wrote to files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from manymatch.batch.numbering import CaptionEntry
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.experiments.probes.probed_model import External
from manymatch.experiments.probes.reranking import recalls
from manymatch.experiments.probes.rich_captions import rich_captions
from manymatch.results.probes import Probe, Probes, ProbesByName
from manymatch.scene_graphs.verbs import add_verbs
from manymatch.shards.tables import read_images
from manymatch.util import files
from manymatch.util.errors import DataError
from manymatch.util.progress import say


def probe_scores(
    ranked: RankedSplit, captions: Path, graphs: Path, target: Path, identity: dict[str, Any]
) -> None:
    """Write the probe `rich_captions`, and `reranking` with only the plain scores, to `target`.

    Without a table of scene graphs there is no probe, and an earlier `target` is removed.

    Args:
        ranked: the split as the command `score` ranked it.
        captions, graphs: the data set's caption table and its scene graphs.
        identity: `dataset`, `split`, `preset` and `method` of the results.

    Raises:
        DataError: a table cannot be used, or has not all captions of the split.
    """
    if not graphs.is_file():
        files.remove(target)
        say(f"{target.stem}: no probe, because {graphs} is missing. Run the stage 'scene_graphs'.")
        return
    split = identity["split"]
    external = External(ranked.ranking, _captions(captions, graphs, split, ranked))
    plain: Probe[Any] = Probe(
        title="Re-ranking by entities",
        about="Another model's scores as they are: re-ranking needs scores of entities too.",
        tables=[recalls(split, [("plain", None, ranked.ranking)])],
        samples=[],
    )
    probes = {"rich_captions": rich_captions(external), "reranking": plain}
    Probes(**identity, probes=ProbesByName.model_validate(probes)).write(target)


def _captions(captions: Path, graphs: Path, split: str, ranked: RankedSplit) -> list[CaptionEntry]:
    images = read_images(captions, graphs)
    captions_of_id = {
        caption.id: replace(caption, graph=add_verbs(caption.graph))
        for image in images
        if image.split == split
        for caption in image.captions
    }
    try:
        return [captions_of_id[caption_id] for caption_id in ranked.embedded.caption_ids]
    except KeyError as error:
        raise DataError(
            f"{graphs}: no scene graph of the caption {error}. Run the stage 'scene_graphs' again."
        ) from None
