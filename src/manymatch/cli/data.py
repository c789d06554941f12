"""The stages that make the data, from a data set's own files to shards."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manymatch import datasets
from manymatch.cli import project
from manymatch.cli.options import DatasetName, FeaturesName, PartName
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.config.params import checked_url
from manymatch.datasets import kind
from manymatch.datasets.base import parser_of
from manymatch.util.errors import ConfigError
from manymatch.util.files import sha256
from manymatch.util.parts import Parts, identity_of
from manymatch.util.seal import seal_path

if TYPE_CHECKING:
    from manymatch.shards.write import Inputs

commands = typer.Typer()


def _with_seal(place: Callable[[str], Path]) -> Callable[[str], list[Path]]:
    """The file at `place` of a data set, and the seal beside the file."""
    return lambda dataset: [place(dataset), seal_path(place(dataset))]


@commands.command()
@writes(LAYOUT.raw)
def download(dataset: DatasetName) -> None:
    """Fetch or generate a data set's own files: data/raw/DATASET."""
    from manymatch.datasets import download as stage

    stage.download(dataset, project.params().source(dataset), LAYOUT.raw(dataset))


@commands.command()
@writes(_with_seal(LAYOUT.captions), _with_seal(LAYOUT.vocabulary), _with_seal(LAYOUT.relevance))
def captions(dataset: DatasetName) -> None:
    """Write the caption table, the training vocabulary and the judged pairs: data/captions."""
    from manymatch.datasets import captions as stage

    params = project.params()
    stage.write_captions(
        dataset,
        LAYOUT.raw(dataset),
        LAYOUT.captions(dataset),
        LAYOUT.vocabulary(dataset),
        LAYOUT.relevance(dataset),
        minimum_count=params.captions.minimum_count,
        kind=kind(dataset, params.sources.get(dataset, {})),
    )


@commands.command()
@writes(LAYOUT.features)
def features(
    dataset: DatasetName,
    features: FeaturesName,
    device: Annotated[
        str | None,
        typer.Option(
            help="auto, cpu, cuda, or one GPU: cuda:1. Default: extraction.FEATURES.device."
        ),
    ] = None,
    part: PartName = None,
) -> None:
    """Extract image features to an HDF5 store: data/features/DATASET/FEATURES.h5.

    Published features (extraction.FEATURES.published.DATASET in params.yaml) are imported instead.
    A run that was killed continues where it stopped.
    """
    settings = project.params().extraction_of(features)
    store = LAYOUT.features(dataset, features)
    parts = project.parts(store, part)
    if dataset in settings.published:
        if part:
            raise ConfigError(
                f"--part {part}: imported features have no parts. Run the command without --part."
            )
        from manymatch.features.importers.importing import import_features

        import_features(features, settings.published[dataset], _captions(dataset), store)
        return
    from manymatch.features.extract import extract

    if device:
        settings = settings.model_copy(update={"device": device})
    extract(features, LAYOUT.raw(dataset), _captions(dataset), store, settings, parts=parts)


def _captions(dataset: str) -> Path:
    """The caption table; without it, an unknown data set is a `ConfigError`."""
    table = LAYOUT.captions(dataset)
    if not table.is_file():
        settings = project.params().sources.get(dataset, {})
        datasets.entry_point(datasets.kind(dataset, settings))
    return table


@commands.command("scene-graphs")
@writes(_with_seal(LAYOUT.scene_graphs))
def scene_graphs(
    dataset: DatasetName,
    processes: Annotated[
        int | None,
        typer.Option(
            help="Processes of the parser; 0: one for each core. Default: scene_graphs.processes."
        ),
    ] = None,
    part: PartName = None,
) -> None:
    """Parse captions into scene graphs with spaCy: data/scene_graphs/DATASET.parquet."""
    from manymatch.scene_graphs import parse as stage

    settings = project.params().scene_graphs
    count = settings.processes if processes is None else processes
    table, captions = LAYOUT.scene_graphs(dataset), _captions(dataset)
    stage.parse_captions(
        captions,
        table,
        model=parser_of(captions) or settings.model,
        processes=count or os.cpu_count() or 1,
        batch_size=settings.batch_size,
        parts=project.parts(table, part),
    )


@commands.command()
@writes(LAYOUT.shards)
def shards(
    dataset: DatasetName,
    features: FeaturesName,
    part: PartName = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Also copy the shards to URL/FEATURES, such as s3://...; with --part, keep none.",
        ),
    ] = None,
) -> None:
    """Pack features, captions and graphs into WebDataset shards: data/shards/DATASET/FEATURES.

    If shards.urls in params.yaml names the data set, the shards stay at the URL.
    """
    from manymatch.shards import remote, remote_writing
    from manymatch.shards import write as stage

    params = project.params()
    folder, store = LAYOUT.shards(dataset, features), LAYOUT.features(dataset, features)
    if to is None and (url := params.shards.urls.get(dataset)):
        if part:
            raise ConfigError(f"--part {part}: shards.urls.{dataset} names finished shards")
        remote.write_head(url, folder, int(params.shards.cache_gb * 1e9))
        return
    if to is not None:
        try:
            to = checked_url(to)
        except ValueError as fault:
            raise ConfigError(f"--to {to}: {fault}") from None
        remote_writing.require_writable(to)
        if part:
            _part_at_url(dataset, features, part, to)
            return
    if not store.is_file():
        params.extraction_of(features)
    stage.write_shards(_shard_inputs(dataset, features), folder, parts=project.parts(folder, part))
    if to is not None:
        remote_writing.upload(folder, to)


def _shard_inputs(dataset: str, features: str) -> "Inputs":
    from manymatch.shards.write import Inputs

    sizes = project.params().shards
    return Inputs(
        _captions(dataset),
        LAYOUT.scene_graphs(dataset),
        LAYOUT.features(dataset, features),
        LAYOUT.raw(dataset),
        sizes.images_per_shard,
        sizes.thumbnail,
    )


def _part_at_url(dataset: str, features: str, part: str, url: str) -> None:
    """Make a part of the shards, and its features if there is no store, at `url` alone."""
    import PIL

    from manymatch.features import entry_points
    from manymatch.features import extract as stage
    from manymatch.features.store import FeatureStore
    from manymatch.shards.remote_writing import Place, make_part
    from manymatch.util.code_hash import code_hash

    params, folder = project.params(), LAYOUT.shards(dataset, features)
    inputs, entries = _shard_inputs(dataset, features), ["manymatch.shards.write"]
    if inputs.store.is_file():
        with FeatureStore(inputs.store) as whole:
            made_from: object = whole.sha256
    else:
        settings = params.extraction_of(features)
        if dataset in settings.published:
            raise ConfigError(
                f"{inputs.store}: no such file. Run 'manymatch features {dataset} {features}' "
                "first, because imported features have no parts."
            )
        made_from = settings.model_dump(mode="json", exclude={"device", "batch_size"})
        entries += ["manymatch.features.extract", *entry_points(features, settings)]
    tables = sha256(inputs.captions), sha256(inputs.graphs)
    sizes = inputs.images_per_shard, inputs.thumbnail
    identity = identity_of(code_hash(*entries), *tables, made_from, sizes, PIL.__version__)

    def extract(table: Path, own: Path) -> None:
        settings, parts = params.extraction_of(features), Parts(own.with_suffix(".parts"))
        stage.extract(features, inputs.raw, table, own, settings, parts=parts)

    make_part(Place(url, folder, identity), project.parts(folder, part), inputs, extract)
