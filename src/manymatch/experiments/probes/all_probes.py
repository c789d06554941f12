"""The command `probe`: probes of a trained model in one result file (`results.probes`)."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from manymatch.evaluation.ensemble import check_entities
from manymatch.experiments.probes.entity_retrieval import entity_retrieval
from manymatch.experiments.probes.parse_errors import parse_errors
from manymatch.experiments.probes.probed_model import ProbedModel
from manymatch.experiments.probes.rank_probes import reranking, rich_captions
from manymatch.results.probes import Probe, Probes, ProbesByName
from manymatch.util.errors import ConfigError, DataError, nearest
from manymatch.util.progress import say, working

PROBES: dict[str, Callable[[ProbedModel], Probe[Any]]] = {
    "rich_captions": rich_captions,
    "entity_retrieval": entity_retrieval,
    "parse_errors": parse_errors,
    "reranking": reranking,
}
ENTITY_PROBES = {"parse_errors", "reranking"}
"""The probes that need the entities of captions."""


def probe(
    model: Path, shards: Path, target: Path, *, split: str = "test", only: Sequence[str] = ()
) -> None:
    """Run all probes that the method allows, or `only` the named probes, and write `target`.

    Earlier probes of the same model and split in `target` are kept unless they are run again.

    Raises:
        ConfigError: a probe does not exist, or the method does not allow a probe of `only`.
        CheckpointError, DataError: as for `evaluate`.
    """
    for name in only:
        if name not in PROBES:
            raise ConfigError(f"probe '{name}' does not exist{nearest(name, PROBES)}")
    probed = ProbedModel.open(model, shards, split)
    identity = probed.identity()
    probes: dict[str, Probe[Any]] = {}
    with contextlib.suppress(DataError):
        earlier = Probes.read(target)
        if all(getattr(earlier, key) == value for key, value in identity.items()):
            probes = earlier.probes.present()
    names = only
    if not names:
        without = set() if probed.embedded.texts.entities is not None else ENTITY_PROBES
        names = [name for name in PROBES if name not in without]
        if without:
            left_out = ", ".join(name for name in PROBES if name in without)
            say(f"left out, because the method gives captions no entities: {left_out}")
    for name in names:
        if name in ENTITY_PROBES:
            check_entities(probed.trained.method, probed.embedded, f"probe '{name}'")
        say(f"probe {name}")
        with working(f"probe {name}"):
            probes[name] = PROBES[name](probed)
    Probes(**identity, probes=ProbesByName.model_validate(probes)).write(target)
