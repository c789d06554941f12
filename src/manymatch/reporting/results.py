"""What training and evaluation left behind, read back and checked: one `Run` a result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ValidationError

from manymatch.reporting.curves import Curves, read_curves
from manymatch.reporting.records import (
    BothWays,
    MultiMatch,
    Named,
    OfDataset,
    Recall,
    Record,
    RetrievedCaption,
    RetrievedImage,
    Thumbnail,
)
from manymatch.reporting.set_results import SetMetrics, ShownSets
from manymatch.scene_graphs.graph import SceneGraph
from manymatch.system.errors import DataError

_MOST_BYTES = 256 * 1024**2
"""A result file beyond this is not one of ours, and is not read into memory."""

Kind = Literal["ensemble", "re-ranked", "re-ranked ensemble"]

_Model = TypeVar("_Model", bound=BaseModel)


class Metrics(Recall):
    """`reports/results/D/P.json`; `multi` only with judgments beyond the pairs, `sets` only of
    methods with several elements."""

    multi: BothWays[MultiMatch] | None = None
    sets: SetMetrics | None = None


class Member(Record):
    """One model of an ensemble."""

    preset: str
    method: str
    seed: int
    features: str


class Provenance(Record):
    """`reports/provenance/D/P.json`: what says which result this is; the rest is shown as found.

    An ensemble's `method`, `seed` and `features` are those of its `members`, joined by "+" where
    they differ.
    """

    dataset: str
    preset: str
    method: str
    split: str
    seed: int | str
    features: str
    setting: Literal["small-scale", "reproduced", "external"]
    images: int
    captions: int
    members: tuple[Member, ...] = ()
    rerank_beta: float | None = None
    """Of a re-ranked result: how much the caption itself counts."""


class ImageQuery(Record):
    """An image, its own captions, and the captions that a model ranked first."""

    image_id: str
    thumbnail: Thumbnail | None
    captions: list[str]
    retrieved: list[RetrievedCaption]


def _whole(graph: SceneGraph) -> SceneGraph:
    count = len(graph.objects)
    ends = {end for edge in graph.relations for end in (edge.subject, edge.object)}
    if len(graph.attributes) != count or not ends <= set(range(count)):
        raise ValueError("attributes or relations of objects that the graph does not have")
    return graph


Graph = Annotated[SceneGraph, AfterValidator(_whole)]


class CaptionQuery(Record):
    """A caption, its scene graph, and the images that a model ranked first."""

    caption_id: str
    caption: str
    graph: Graph | None
    retrieved: list[RetrievedImage]


class Samples(Record):
    """`reports/runs/D/P/samples.json`."""

    images: list[ImageQuery]
    captions: list[CaptionQuery]


@dataclass(frozen=True)
class Run:
    """One preset on one data set. Curves, samples and sets are missing on a bare clone."""

    metrics: Metrics
    provenance: Provenance
    curves: Curves
    samples: Samples | None
    sets: ShownSets | None = None

    @property
    def dataset(self) -> str:
        return self.provenance.dataset

    @property
    def preset(self) -> str:
        return self.provenance.preset

    @property
    def kind(self) -> Kind | None:
        """What it is made of, if it is not a trained model's own ranking."""
        if self.provenance.rerank_beta is None:
            return "ensemble" if self.provenance.members else None
        return "re-ranked ensemble" if self.provenance.members else "re-ranked"


def read_runs(reports: Path) -> list[Run]:
    """Every result under `reports`, data sets in order of name, each best rsum first.

    Raises `DataError` if there is none, or one that is malformed or of unknown origin.
    """
    files = sorted((reports / "results").glob("*/*.json"))
    if not files:
        raise DataError(
            f"{reports / 'results'}: no results to report; run 'dvc repro', "
            "or 'manymatch evaluate DATASET PRESET' for a trained model"
        )
    runs = [_read_run(reports, path.parent.name, path.stem) for path in files]
    return sorted(runs, key=lambda run: (run.dataset, -run.metrics.rsum, run.preset))


def _read_run(reports: Path, dataset: str, preset: str) -> Run:
    again = f"run 'manymatch evaluate {dataset} {preset}' again"
    shown = reports / "runs" / dataset / preset
    samples, sets = shown / "samples.json", shown / "sets.json"
    run = Run(
        metrics=read_json(reports / "results" / dataset / f"{preset}.json", Metrics, again),
        provenance=read_json(
            reports / "provenance" / dataset / f"{preset}.json", Provenance, again
        ),
        curves=read_curves(reports / "curves" / dataset / preset),
        samples=read_json(samples, Samples, again) if samples.is_file() else None,
        sets=read_json(sets, ShownSets, again) if sets.is_file() else None,
    )
    if (run.dataset, run.preset) != (dataset, preset):
        raise DataError(
            f"{reports / 'provenance' / dataset / preset}.json: belongs to "
            f"'{run.dataset}/{run.preset}', not to '{dataset}/{preset}'; {again}"
        )
    return run


def read_json(path: Path, model: type[_Model], again: str) -> _Model:
    """The JSON file `path` as `model`; a fault is one line: file, key, and how to make it anew."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise DataError(f"{path}: too large for a result file; {again}")
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: missing; {again}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise DataError(f"{path}: {_first_fault(error)}; {again}") from None


_OfDataset = TypeVar("_OfDataset", bound=OfDataset)
_Named = TypeVar("_Named", bound=Named)


def read_placed(path: Path, model: type[_OfDataset], again: str, key: str = "preset") -> _OfDataset:
    """`read_json` of a file `DATASET/NAME.json`, of that `dataset` and, by its `key`, that name."""
    found = read_json(path, model, again)
    dataset, name = found.dataset, getattr(found, key)
    if (dataset, name) != (path.parent.name, path.stem):
        raise DataError(f"{path}: belongs to '{dataset}/{name}', not where it lies; {again}")
    return found


def read_named(path: Path, model: type[_Named], again: str) -> _Named:
    """`read_json` of a file `NAME.json`, of that `name`."""
    found = read_json(path, model, again)
    if found.name != path.stem:
        raise DataError(f"{path}: belongs to '{found.name}', not where it lies; {again}")
    return found


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in fault["loc"])
    message = fault["msg"].partition("\n")[0]
    return f"{key}: {message}" if key else message


def numbers(metrics: Record) -> dict[str, float]:
    """All metrics under dotted names: `i2t.r1`, `multi.t2i.map_at_r`."""
    return dict(_flat(metrics.model_dump(exclude_none=True)))


def _flat(value: dict[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    pairs: list[tuple[str, float]] = []
    for key, item in value.items():
        if isinstance(item, dict):
            pairs += _flat(item, f"{prefix}{key}.")
        elif isinstance(item, int | float):
            pairs.append((prefix + key, item))
    return pairs
