"""The command `probe`: probes of a trained model in one result file (`results.probes`); and the
probes that need only ranks: of a trained model, or of scores in another program's files."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from manymatch.evaluation.ensemble import best_beta, check_entities, reranked, rsum_by_beta
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.ranking.metrics import CUTS, recall_metrics, rounded
from manymatch.evaluation.ranking.ranks import Ranking, rank
from manymatch.experiments.probes.entity_retrieval import entity_retrieval
from manymatch.experiments.probes.parse_errors import parse_errors
from manymatch.experiments.probes.probed_model import External, ProbedModel
from manymatch.results.probes import Cell, Probe, Probes, ProbesByName, ProbeTable, RichCaption
from manymatch.scene_graphs.verbs import add_verbs
from manymatch.shards.tables import read_images
from manymatch.util import files
from manymatch.util.errors import ConfigError, DataError, nearest
from manymatch.util.progress import say, working

COUNT = 100
_SAMPLES = 10


def rich_captions(probed: ProbedModel | External) -> Probe[RichCaption]:
    """Text-to-image recalls on the `COUNT` captions with most attributes and relations."""
    ranks = probed.ranking.t2i.ranks
    graphs = [caption.graph for caption in probed.captions]
    sizes = [sum(map(len, graph.attributes)) + len(graph.relations) for graph in graphs]
    # Sorting is stable: of equally rich captions the first are taken.
    richest = sorted(range(len(sizes)), key=lambda row: -sizes[row])[:COUNT]
    heads = ["Captions", "Attributes and relations", *(f"R@{cut}" for cut in CUTS), "Sum", "MedR"]
    rows = [
        _row(f"the {len(richest)} richest", [sizes[row] for row in richest], ranks[richest]),
        _row("all", sizes, ranks),
    ]
    samples = [
        RichCaption(
            caption_id=probed.captions[row].id,
            caption=probed.captions[row].text,
            attributes_and_relations=sizes[row],
            rank=int(ranks[row]),
        )
        for row in richest[:_SAMPLES]
    ]
    return Probe[RichCaption](
        title="Captions rich in semantics",
        about=f"The {COUNT} captions with most attributes and relations in their scene graphs, "
        "each ranking all images of the split.",
        tables=[ProbeTable(title="Text to image", columns=heads, rows=rows)],
        samples=samples,
    )


def _row(name: str, sizes: list[int], ranks: Tensor) -> list[Cell]:
    values = recall_metrics(ranks)
    recalls = [values[f"r{cut}"] for cut in CUTS]
    mean = sum(sizes) / len(sizes)
    return [name, *map(rounded, [mean, *recalls, sum(recalls), values["medr"]])]


def reranking(probed: ProbedModel) -> Probe[Any]:
    """The validation rsum for each beta, and the split's recalls with the best beta."""
    score, embedded = probed.trained.method.score, probed.embedded
    rsums = rsum_by_beta(score, probed.held_out())
    beta = best_beta(rsums)
    rows: list[list[Cell]] = [[tried, rounded(rsum)] for tried, rsum in rsums.items()]
    after = rank(reranked(score, beta), *embedded.gallery)
    return Probe(
        title="Re-ranking by entities",
        about="Score beta s(image, caption) + (1 - beta) min over the caption's entities of "
        f"s(image, entity). The best beta on the split 'validation' is {beta:g}.",
        tables=[
            ProbeTable(title="Validation", columns=["beta", "rsum"], rows=rows),
            recalls(probed.split, [("plain", None, probed.ranking), ("re-ranked", beta, after)]),
        ],
        samples=[],
    )


def recalls(split: str, rankings: Sequence[tuple[str, float | None, Ranking]]) -> ProbeTable:
    """The recalls of several rankings of `split`: each has a name and a beta."""
    columns = [f"{way} R@{cut}" for way in ("Image to text", "Text to image") for cut in CUTS]
    rows: list[list[Cell]] = []
    for name, beta, ranking in rankings:
        values = recall_of(ranking)
        cells = [values[way][f"r{cut}"] for way in ("i2t", "t2i") for cut in CUTS]
        rows.append([name, beta, *map(rounded, [*cells, values["rsum"]])])
    heads = ["Scores", "beta", *columns, "rsum"]
    return ProbeTable(title=f"Recalls on the split '{split}'", columns=heads, rows=rows)


def probe_scores(
    ranked: RankedSplit, captions: Path, graphs: Path, target: Path, identity: dict[str, Any]
) -> None:
    """Write the probe `rich_captions`, and `reranking` with only the plain scores, to `target`.

    Without the table `graphs` of scene graphs there is no probe, and an earlier `target` is
    removed. `ranked` is the split as the command `score` ranked it, `identity` the `dataset`,
    `split`, `preset` and `method` of the results. A table that cannot be used, or lacks a caption
    of the split, is a `DataError`.
    """
    if not graphs.is_file():
        files.remove(target)
        say(f"{target.stem}: no probe, because {graphs} is missing. Run the stage 'scene_graphs'.")
        return
    split = identity["split"]
    captions_of_id = {
        caption.id: replace(caption, graph=add_verbs(caption.graph))
        for image in read_images(captions, graphs)
        if image.split == split
        for caption in image.captions
    }
    try:
        entries = [captions_of_id[caption_id] for caption_id in ranked.embedded.caption_ids]
    except KeyError as error:
        raise DataError(
            f"{graphs}: no scene graph of the caption {error}. Run the stage 'scene_graphs' again."
        ) from None
    external = External(ranked.ranking, entries)
    plain: Probe[Any] = Probe(
        title="Re-ranking by entities",
        about="Another model's scores as they are: re-ranking needs scores of entities too.",
        tables=[recalls(split, [("plain", None, ranked.ranking)])],
        samples=[],
    )
    probes = {"rich_captions": rich_captions(external), "reranking": plain}
    Probes(**identity, probes=ProbesByName.model_validate(probes)).write(target)


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
