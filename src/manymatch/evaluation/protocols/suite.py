"""Which protocols a data set is evaluated by, besides the ranks of the own pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from manymatch.evaluation.protocols.class_matches import classes
from manymatch.evaluation.protocols.coco_folds import coco_1k
from manymatch.evaluation.protocols.coco_judged import cxc, eccv_caption
from manymatch.evaluation.protocols.labels import Labels, read_labels
from manymatch.evaluation.protocols.plausible_matches import pmrp
from manymatch.evaluation.protocols.subject import DoesNotApply, Subject
from manymatch.system.errors import ConfigError, nearest
from manymatch.system.progress import say

PROTOCOLS: dict[str, Callable[[Subject], dict[str, Any]]] = {
    "coco_1k": coco_1k,
    "pmrp": pmrp,
    "eccv_caption": eccv_caption,
    "cxc": cxc,
    "classes": classes,
}
"""By name, which is also the key of its numbers in a metrics file. Each raises `DoesNotApply` to a
split that lacks what it needs."""

PAIRS = "pairs"
"""Asked for by name: the ranks of the own pairs, and nothing besides."""

OF_DATASET = {"coco": ("coco_1k", "pmrp", "eccv_caption", "cxc"), "cub": ("classes",)}


def labels_for(dataset: str, captions: Path | None, image_ids: Sequence[str]) -> Labels | None:
    """The images' labels from the caption table, if the data set's protocols may need them."""
    if captions is None or dataset not in OF_DATASET:
        return None
    return read_labels(captions, image_ids)


def of_dataset(dataset: str, subject: Subject) -> dict[str, Any]:
    """The numbers of each protocol of the data set that applies to the split; a line for each that
    does not."""
    found = {}
    for name in OF_DATASET.get(dataset, ()):
        try:
            found[name] = PROTOCOLS[name](subject)
        except DoesNotApply as reason:
            say(f"{dataset}: left out {name}: {reason}")
    return found


def by_name(names: Iterable[str], subject: Subject) -> dict[str, Any]:
    """The numbers of the named protocols; `PAIRS` adds none.

    Raises:
        ConfigError: there is no such protocol.
        DoesNotApply: one needs what the split does not have.
    """
    for name in names:
        if name not in (*PROTOCOLS, PAIRS):
            raise ConfigError(f"no protocol '{name}'{nearest(name, (*PROTOCOLS, PAIRS))}")
    return {name: PROTOCOLS[name](subject) for name in names if name != PAIRS}
