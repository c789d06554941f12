"""`params.yaml`: what runs, from which sources, and the settings of the stages before training.

What makes a trained model is not here but in its preset, `presets/DATASET/PRESET.yaml`.
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from manymatch.config.names import Ensemble, ModelPath, Name, ParserName
from manymatch.config.strict import Strict, read_yaml, validate
from manymatch.util.errors import ConfigError, nearest

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
_KEYS = {
    "model": ("hf", "pixels"),
    "geometry": ("hf", "pixels"),
    "size": ("hf", "pixels", "lite0", "lite2"),
    **dict.fromkeys(("output", "grid", "layer"), ("hf",)),
    **dict.fromkeys(("detector", "backbone", "score", "nms"), ("regions",)),
    "boxes": ("objects",),
}
"""Key -> the kinds of features that have the key."""
_WITHOUT_CROPS = ("butd", "objects", "pixels", "pixels256", "pixels512", "regions")
"""Kinds of features that do not describe the crop of a region."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
"""How the address of a file on another machine begins."""


class Captions(Strict):
    """The vocabulary keeps words seen at least `minimum_count` times in training captions."""

    minimum_count: Count = 1


class Published(Strict):
    """Features that somebody else extracted: a file or folder in a format of
    `features/importers`. `max_regions`: the most regions an image has, where that is known."""

    format: str
    path: str
    max_regions: Count | None = None


def _bounds(regions: Any) -> Any:
    """A number is the most regions; a text comes from the facts of a trained model."""
    if isinstance(regions, str):
        return regions.split("-")
    return (1, regions) if isinstance(regions, int) else regions


class Extraction(Strict):
    """One backbone's extraction. `weights`: a local file or folder, for backbones that bring none.

    `regions`: the fewest and the most regions that a detector keeps of an image; one number is the
    most. `published`: the data sets whose features are imported instead.

    `kind`: the backbone; null: the one that is called like the extraction. Of `kind: hf`, `model`
    is a folder or NAME@REVISION on the hub. `grid`: cells in a row; `layer`: -1 is the last one;
    `size`: pixels in a row; `geometry: squash` instead of a crop (`features/hf.py`). `lite0` and
    `lite2` have a `size` as well. `kind: pixels` stores the pixels that the `model` reads.

    Of `kind: regions`, `detector` is a folder or NAME@REVISION on the hub, and `backbone` the
    extraction of each region. `score`: a box of a lower score is left out; `nms`: so is one that
    overlaps a better box by more (`features/regions.py`). `kind: objects` has a table of `boxes`.
    """

    batch_size: Count = 32
    device: str = "auto"
    weights: str | None = None
    regions: Annotated[tuple[Count, Count], BeforeValidator(_bounds)] = (36, 36)
    published: dict[Name, Published] = Field(default_factory=dict)
    kind: str | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    output: Literal["patches", "map", "pooled", "projected"] = "patches"
    grid: Annotated[int, Field(ge=1, le=64)] | None = None
    layer: Annotated[int, Field(ge=-1000, le=-1)] = -1
    size: Annotated[int, Field(ge=1, le=2048)] | None = None
    geometry: Literal["squash"] | None = None
    detector: Annotated[str, Field(min_length=1)] | None = None
    backbone: "Extraction | None" = None
    score: Share = 0.2
    nms: Share = 0.7
    boxes: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _most_regions(cls, value: Any) -> Any:
        """A picture may show few objects."""
        detects = isinstance(value, dict) and value.get("kind") == "regions"
        return {"regions": 36} | value if detects else value

    @model_validator(mode="after")
    def _keys_of_kind(self) -> Self:
        fields = type(self).model_fields.items()
        changed = {name for name, field in fields if getattr(self, name) != field.default}
        for key in sorted(changed & _KEYS.keys()):
            if self.kind not in _KEYS[key]:
                raise ValueError(f"{key}: only kind {' or '.join(_KEYS[key])} has this key")
        if self.regions[0] > self.regions[1]:
            raise ValueError("regions: the fewest are more than the most")
        inner = self.backbone
        if inner and (inner.kind in (None, *_WITHOUT_CROPS) or inner.published):
            raise ValueError(
                "backbone: expected the extraction of a region, such as {kind: lite0}: kind lite0, "
                "lite2, hf or a ResNet"
            )
        if self.kind == "regions" and not (self.detector and inner) and not self.published:
            raise ValueError("kind regions needs 'detector' and 'backbone'")
        if self.kind in _KEYS["model"] and self.model is None and not self.published:
            raise ValueError(f"model: kind {self.kind} needs a folder or a name on the hub")
        if self.kind in ("hf", "pixels", "regions") and self.weights is not None:
            other = "detector" if self.kind == "regions" else "model"
            raise ValueError(f"weights: kind {self.kind} has '{other}' instead")
        if self.grid is not None and self.output in ("pooled", "projected"):
            raise ValueError(f"grid: output {self.output} is one vector")
        return self


class SceneGraphs(Strict):
    """The parser: a spaCy model, in how many processes, how many captions at once."""

    model: ParserName = "en_core_web_sm"
    processes: Annotated[int, Field(ge=0)] = 0
    """0: one per core."""
    batch_size: Count = 256


def checked_url(url: str) -> str:
    """A URL of shards, with its scheme in lower case. Any other text is a `ValueError`."""
    scheme, _, rest = url.partition(":")
    if not (_SCHEME.match(url) and url.isprintable() and rest.strip("/")):
        raise ValueError("expected a URL, such as s3://bucket/flickr30k")
    url = f"{scheme.lower()}:{rest}"
    if url.startswith("pipe:"):
        if "{}" not in url:
            raise ValueError(
                "a pipe needs {} in the place of a file, such as pipe:ssh HOST cat FOLDER/{}"
            )
    elif "@" in urlsplit(url).netloc or urlsplit(url).query:
        raise ValueError("credentials come from the environment. Leave out the user and the query")
    return url


class Shards(Strict):
    """Images per tar file, and the longest side of the thumbnails in them, in pixels.

    `urls`: by data set, where shards are that this machine reads and does not write; each kind of
    features is a folder below. `cache_gb`: the most gigabytes of these shards on this machine.
    """

    images_per_shard: Count = 250
    thumbnail: Count = 112
    urls: dict[Name, Annotated[str, AfterValidator(checked_url)]] = Field(default_factory=dict)
    cache_gb: Annotated[float, Field(gt=0, le=1_000_000)] = 20


Selection = Annotated[tuple[Count, ...], Field(min_length=1)]


class Elements(Strict):
    """Selections of set elements, numbered from 1, that are evaluated besides each element alone:
    `images: [[1, 3, 4]]` is the image sets without element 2 against whole text sets."""

    images: tuple[Selection, ...] = ()
    texts: tuple[Selection, ...] = ()
    projected: Count | None = 1000
    """Vectors of each modality in the t-SNE picture, random ones of the split; null: all."""


class Evaluation(Strict):
    """Which split, how many ranks a query keeps in the run files, how many sample queries."""

    split: Literal["train", "validation", "test"] = "test"
    depth: Count = 100
    samples: Annotated[int, Field(ge=0)] = 12
    elements: Elements = Elements()


class TrainedModel(Strict):
    """The model of a preset."""

    dataset: Name
    preset: Name


class WarmStarted(TrainedModel):
    """A preset that starts from the trained `model`, DATASET/PRESET."""

    model: ModelPath


def _local(path: str) -> str:
    """DVC takes a text such as s3:x for an address."""
    if "\0" in path or _SCHEME.match(path):
        raise ValueError("expected a path of this machine. Write ./ before a name with a colon")
    return path


class Indexed(Strict):
    """An index of the folder, shards, store or captions `source` with the trained `model`."""

    source: Annotated[str, Field(min_length=1), AfterValidator(_local)]
    model: ModelPath


def _different(names: Sequence[str]) -> Sequence[str]:
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise ValueError(f"listed twice: {', '.join(doubled)}. List each name once.")
    return names


Names = Annotated[list[Name], AfterValidator(_different)]


class Params(Strict):
    """The whole of `params.yaml`."""

    datasets: Annotated[Names, Field(min_length=1)]
    presets: Names
    features: Names
    warm_starts: dict[str, WarmStarted] = Field(default_factory=dict)
    """By DATASET-PRESET."""
    ensembles: Annotated[tuple[Ensemble, ...], AfterValidator(_different)] = ()
    probes: dict[str, TrainedModel] = Field(default_factory=dict)
    """The models that are probed, by DATASET-PRESET."""
    clusters: dict[str, TrainedModel] = Field(default_factory=dict)
    """The SwAMP models whose classes are described, by DATASET-PRESET."""
    experiments: dict[Name, Name] = Field(default_factory=dict)
    """The data set of each file in `experiments/`, which is named without `.yaml`."""
    indexes: dict[Name, Indexed] = Field(default_factory=dict)
    """The indexes in `data/indexes`, by name."""
    sources: dict[str, dict[str, Any]]
    captions: Captions = Captions()
    extraction: dict[Name, Extraction]
    scene_graphs: SceneGraphs = SceneGraphs()
    shards: Shards = Shards()
    evaluation: Evaluation = Evaluation()

    def source(self, dataset: str) -> dict[str, Any]:
        """The settings of a data set's sources."""
        return _entry(self.sources, dataset, "sources")

    def extraction_of(self, features: str) -> Extraction:
        """The settings of a backbone's extraction."""
        return _entry(self.extraction, features, "extraction")

    def index(self, name: str) -> Indexed:
        """What an index is made of."""
        return _entry(self.indexes, name, "indexes")

    def check_names_with(self, dataset: str, features: str) -> None:
        """Check the names of stages as if `dataset` and `features` were listed too.

        Raises:
            ConfigError: two pairs of names are joined to one.
        """
        wider = {"datasets": [*self.datasets, dataset], "features": [*self.features, features]}
        try:
            self.model_copy(update=wider)._refuse_joined_names()
        except ValueError as fault:
            raise ConfigError(f"params.yaml: {fault}") from None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        self._refuse_joined_names()
        return self

    def _refuse_joined_names(self) -> None:
        """DVC calls the stage of a pair DATASET-NAME. Of two stages with one name it keeps the
        last."""
        for key in ("presets", "features", "ensembles"):
            pairs: dict[str, tuple[str, str]] = {}
            for pair in itertools.product(self.datasets, getattr(self, key)):
                joined = "-".join(pair)
                if (first := pairs.setdefault(joined, pair)) != pair:
                    raise ValueError(
                        f"{key}: '{first[1]}' of '{first[0]}' and '{pair[1]}' of '{pair[0]}' have "
                        f"one name in DVC, '{joined}', and DVC would leave one of them out. Rename "
                        "one"
                    )


def _entry(group: dict[str, Any], name: str, where: str) -> Any:
    if name not in group:
        raise ConfigError(f"params.yaml: no entry '{where}.{name}'{nearest(name, group)}")
    return group[name]


def read_params(path: Path) -> Params:
    """`params.yaml`, checked; a fault is a `ConfigError` that names the key."""
    return validate(Params, read_yaml(path), str(path))
