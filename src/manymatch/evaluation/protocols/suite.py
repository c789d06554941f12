"""The protocols of each data set, besides the ranks of the annotated pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from manymatch.evaluation.protocols.class_matches import classes
from manymatch.evaluation.protocols.coco import coco_1k, cxc, eccv_caption, pmrp
from manymatch.evaluation.protocols.labels import Labels, read_labels
from manymatch.evaluation.protocols.ranked_split import DoesNotApply, RankedSplit
from manymatch.util.errors import ConfigError, nearest
from manymatch.util.progress import say, working

PROTOCOLS: dict[str, Callable[[RankedSplit], dict[str, Any]]] = {
    "coco_1k": coco_1k,
    "pmrp": pmrp,
    "eccv_caption": eccv_caption,
    "cxc": cxc,
    "classes": classes,
}
"""Protocols by name. The name is also the key of the protocol's numbers in a metrics file. A
protocol raises `DoesNotApply` if the split lacks what the protocol needs."""

PAIRS = "pairs"
"""The name that asks for the ranks of the annotated pairs and for nothing else."""

DATASET_PROTOCOLS = {"coco": ("coco_1k", "pmrp", "eccv_caption", "cxc"), "cub": ("classes",)}


def labels_for(dataset: str, captions: Path | None, image_ids: Sequence[str]) -> Labels | None:
    """The images' labels from the caption table, if the data set's protocols may need labels."""
    if captions is None or dataset not in DATASET_PROTOCOLS:
        return None
    return read_labels(captions, image_ids)


def dataset_metrics(dataset: str, split: RankedSplit) -> dict[str, Any]:
    """The numbers of the data set's protocols; a protocol that does not apply is reported in one
    line and left out."""
    numbers = {}
    for name in DATASET_PROTOCOLS.get(dataset, ()):
        try:
            with working(f"protocol {name}"):
                numbers[name] = PROTOCOLS[name](split)
        except DoesNotApply as reason:
            say(f"{dataset}: left out {name}: {reason}")
    return numbers


def protocol_metrics(names: Iterable[str], split: RankedSplit) -> dict[str, Any]:
    """The numbers of the named protocols; `PAIRS` adds no numbers.

    Raises:
        ConfigError: there is no such protocol.
        DoesNotApply: a protocol needs something that the split does not have.
    """
    for name in names:
        if name not in (*PROTOCOLS, PAIRS):
            raise ConfigError(f"no protocol '{name}'{nearest(name, (*PROTOCOLS, PAIRS))}")
    return {name: PROTOCOLS[name](split) for name in names if name != PAIRS}
