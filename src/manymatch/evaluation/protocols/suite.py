"""The protocols of each data set, besides the ranks of the annotated pairs."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from manymatch.evaluation.protocols import protocol_modules
from manymatch.evaluation.protocols.ranked_split import DoesNotApply, Protocol, RankedSplit
from manymatch.evaluation.protocols.relevance import Labels, read_labels
from manymatch.util.errors import ConfigError, nearest
from manymatch.util.progress import say, working

PAIRS = "pairs"
"""The name that asks for the ranks of the annotated pairs and for nothing else."""


@cache
def protocols() -> dict[str, Protocol]:
    """The protocols of all modules in the folder `protocols`, by name."""
    modules = map(import_module, protocol_modules())
    defined = [one for module in modules for one in getattr(module, "PROTOCOLS", ())]
    return {protocol.name: protocol for protocol in defined}


def dataset_protocols(dataset: str) -> list[Protocol]:
    """The protocols that every evaluation on a data set has."""
    return [protocol for protocol in protocols().values() if dataset in protocol.datasets]


def labels_for(dataset: str, captions: Path | None, image_ids: Sequence[str]) -> Labels | None:
    """The images' labels from the caption table, if the data set's protocols may need labels."""
    if captions is None or not dataset_protocols(dataset):
        return None
    return read_labels(captions, image_ids)


def dataset_metrics(dataset: str, split: RankedSplit) -> dict[str, Any]:
    """The numbers of the data set's protocols; a protocol that does not apply is reported in one
    line and left out."""
    numbers = {}
    for protocol in dataset_protocols(dataset):
        try:
            with working(f"protocol {protocol.name}"):
                numbers[protocol.name] = protocol.measure(split)
        except DoesNotApply as reason:
            say(f"{dataset}: left out {protocol.name}: {reason}")
    return numbers


def protocol_metrics(names: Iterable[str], split: RankedSplit) -> dict[str, Any]:
    """The numbers of the named protocols; `PAIRS` adds no numbers.

    Raises:
        ConfigError: there is no such protocol.
        DoesNotApply: a protocol needs something that the split does not have.
    """
    known = protocols()
    for name in names:
        if name not in (*known, PAIRS):
            raise ConfigError(f"no protocol '{name}'{nearest(name, (*known, PAIRS))}")
    return {name: known[name].measure(split) for name in names if name != PAIRS}
