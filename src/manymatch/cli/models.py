"""Training models, and ranking with them or with others' embeddings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from manymatch.cli import project
from manymatch.cli.options import (
    DatasetName,
    Overrides,
    PresetName,
    Split,
    check_name,
    check_names,
)
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT

commands = typer.Typer()


def _model(dataset: str, preset: str, name: str | None) -> list[Path]:
    trained = name or preset
    return [LAYOUT.model(dataset, trained), LAYOUT.curves(dataset, trained) / "plots" / "metrics"]


def _source_model(dataset: str, preset: str, overrides: list[str] | None) -> list[Path]:
    """The model of the preset's warm start, if it has one."""
    start = project.preset(dataset, preset, overrides).warm_start
    return [LAYOUT.models / start.model] if start else []


def _result(dataset: str, preset: str) -> list[Path]:
    result = LAYOUT.result(dataset, preset)
    return [result.full, result.metrics, result.provenance, result.run]


def _reranked_result(dataset: str, preset: str) -> list[Path]:
    from manymatch.evaluation.rerank import SUFFIX

    return _result(dataset, preset + SUFFIX)


def _joined_result(dataset: str, presets: list[str]) -> list[Path]:
    from manymatch.evaluation.ensemble import JOINED_BY

    return _result(dataset, JOINED_BY.join(presets))


def _scored_result(dataset: str, name: str | None) -> list[Path]:
    """Without a name the command writes no file."""
    return [*_result(dataset, name), LAYOUT.study(dataset, name)] if name else []


def _data(dataset: str) -> list[Path]:
    """What every evaluation of a model of `dataset` reads besides models."""
    return [LAYOUT.shards(dataset, ""), LAYOUT.captions(dataset), LAYOUT.relevance(dataset)]


def _models(dataset: str) -> Path:
    return LAYOUT.models / dataset


@commands.command()
@writes(_model, reads=[_data, LAYOUT.vocabulary, _source_model])
def train(
    dataset: DatasetName,
    preset: PresetName,
    overrides: Overrides = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--as",
            callback=check_name,
            metavar="NAME",
            help="Call the model NAME: --set seed=1 --as cora-1.",
        ),
    ] = None,
) -> None:
    """Train one preset: models/DATASET/PRESET. A run that was killed continues where it stopped."""
    from manymatch.training.torchrun import relaunch

    relaunch()
    from manymatch.training import train as stage

    settings = project.preset(dataset, preset, overrides)
    model = name or preset
    stage.train(
        settings,
        LAYOUT.shards(dataset, settings.features),
        LAYOUT.vocabulary(dataset),
        LAYOUT.model(dataset, model),
        LAYOUT.curves(dataset, model),
        LAYOUT.checkpoints(dataset, model),
        usage=LAYOUT.machine(dataset, model),
    )


@commands.command("import-howto100m")
@writes(LAYOUT.model("howto100m", "released"), reads=[lambda file: file])
def import_howto100m(
    file: Annotated[Path, typer.Argument(help="howto100m_pt_model.pth, as published.")],
) -> None:
    """Import HowTo100M's published model, for presets that start from it:
    models/howto100m/released."""
    from manymatch.methods.howto100m import import_howto100m as stage

    stage(file, LAYOUT.model("howto100m", "released"))


@commands.command()
@writes(_result, reads=[LAYOUT.model, _data])
def evaluate(
    dataset: DatasetName,
    preset: PresetName,
    split: Split = None,
) -> None:
    """Rank the test split with a trained model: reports/results, run files, sample queries."""
    from manymatch.evaluation import evaluate as stage

    stage.evaluate(
        *project.trained(dataset, preset),
        LAYOUT.relevance(dataset),
        LAYOUT.result(dataset, preset),
        captions=LAYOUT.captions(dataset),
        **project.ranking(split),
        elements=project.params().evaluation.elements,
    )
    _show_result(dataset, preset)


@commands.command()
@writes(_reranked_result, reads=[_models, _data])
def rerank(
    dataset: DatasetName,
    preset: Annotated[
        str,
        typer.Argument(
            callback=check_names,
            metavar="PRESET",
            help="A trained CORA, or several as an ensemble: cora+cora-1.",
        ),
    ],
    split: Split = None,
) -> None:
    """Evaluate a trained CORA re-ranked by entities: reports/results/DATASET/PRESET+rerank.json.

    An ensemble averages the members' scores of captions and of entities before it re-ranks.
    """
    from manymatch.evaluation import rerank as stage
    from manymatch.evaluation.ensemble import JOINED_BY

    stage.rerank(
        [project.trained(dataset, name) for name in preset.split(JOINED_BY)],
        LAYOUT.relevance(dataset),
        LAYOUT.result(dataset, preset + stage.SUFFIX),
        captions=LAYOUT.captions(dataset),
        **project.ranking(split),
    )
    _show_result(dataset, preset + stage.SUFFIX)


@commands.command()
@writes(_joined_result, reads=[_models, _data])
def ensemble(
    dataset: DatasetName,
    presets: Annotated[
        list[str],
        typer.Argument(
            callback=check_names,
            metavar="PRESET",
            help="Trained models: cora cora-1, or cora+cora-1.",
        ),
    ],
    split: Split = None,
) -> None:
    """Rank with the mean of several models' scores: reports/results/DATASET/A+B.json.

    'manymatch train scenes cora --set seed=1 --as cora-1' trains a second seed.
    """
    from manymatch.evaluation import ensemble as stage

    names = [name for preset in presets for name in preset.split(stage.JOINED_BY)]
    joined = stage.JOINED_BY.join(names)
    stage.ensemble(
        [project.trained(dataset, name) for name in names],
        LAYOUT.relevance(dataset),
        LAYOUT.result(dataset, joined),
        captions=LAYOUT.captions(dataset),
        **project.ranking(split),
    )
    _show_result(dataset, joined)


@commands.command()
@writes(_scored_result)
def score(
    dataset: DatasetName,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Similarities, images x captions; several files are averaged."
        ),
    ] = None,
    images: Annotated[
        str | None, typer.Option(metavar="FILE", help="Image embeddings, (n, D) or (n, K, D).")
    ] = None,
    texts: Annotated[str | None, typer.Option(metavar="FILE", help="Caption embeddings.")] = None,
    similarity: Annotated[
        str, typer.Option(help="cosine, dot; of sets mil, chamfer, smooth_chamfer, max_match.")
    ] = "cosine",
    image_ids: Annotated[
        Path | None, typer.Option(help="Ids of the image rows, one a line, or .npy.")
    ] = None,
    caption_ids: Annotated[
        Path | None, typer.Option(help="Ids of the caption rows, one a line, or .npy.")
    ] = None,
    captions: Annotated[
        Path | None,
        typer.Option(help="Caption table (.parquet), or .csv: image_id,caption_id[,split,labels]."),
    ] = None,
    relevance: Annotated[
        Path | None,
        typer.Option(help="Table of judged true pairs besides the positives (.parquet)."),
    ] = None,
    split: Annotated[
        str, typer.Option(callback=check_name, help="train, validation or test.")
    ] = "test",
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="coco_1k, pmrp, eccv_caption, cxc, classes or pairs (ranks alone); repeatable.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--as",
            callback=check_name,
            metavar="NAME",
            help="Keep the result: reports/results/DATASET/NAME.json.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all metrics as JSON instead of a table.")
    ] = False,
) -> None:
    """Evaluate another model's embeddings or similarities by the data set's protocols.

    FILE is .npy, .npz, .safetensors, .h5 or .hdf5; FILE:KEY names one of several
    arrays. Rows follow the caption table, or the files of ids if they are given.
    Without --as the metrics are printed and no file is written. With --as the
    studies that need only ranks are written as well:
    reports/studies/DATASET/NAME.json. Your own captions work with any DATASET name:
    give --captions and --protocol; no study is made of them.
    """
    from manymatch.evaluation.external import score as stage
    from manymatch.evaluation.external.external_scores import ExternalFiles, similarity_name
    from manymatch.experiments.studies.external import study_scores
    from manymatch.reporting.blocks import Heading
    from manymatch.reporting.leaderboard import both_ways
    from manymatch.reporting.terminal import show
    from manymatch.results.metrics import Metrics

    table = captions or LAYOUT.captions(dataset)
    if captions is None:
        project.require_project()
        relevance = relevance or LAYOUT.relevance(dataset)
    by = similarity_name(similarity)
    files = ExternalFiles(tuple(scores or ()), images, texts, by, image_ids, caption_ids)
    scored = stage.score(
        dataset,
        files,
        table,
        relevance,
        split=split,
        protocols=protocol or [],
        name=name or stage.SETTING,
        written=LAYOUT.result(dataset, name) if name else None,
    )
    if name and captions is None:
        identity = {"dataset": dataset, "split": split, "preset": name, "method": stage.SETTING}
        graphs = LAYOUT.scene_graphs(dataset)
        study_scores(scored.subject, table, graphs, LAYOUT.study(dataset, name), identity)
    if as_json:
        typer.echo(json.dumps(scored.values, indent=2))
    elif name:
        _show_result(dataset, name)
    else:
        metrics = Metrics.model_validate(scored.values)
        show([Heading(dataset, split), both_ways(metrics)])


def _show_result(dataset: str, name: str) -> None:
    """Print the metrics that a command has written."""
    from manymatch.reporting.blocks import Heading, gallery
    from manymatch.reporting.leaderboard import both_ways
    from manymatch.reporting.terminal import show
    from manymatch.results.metrics import Metrics
    from manymatch.results.provenance import Provenance

    written = LAYOUT.result(dataset, name)
    size = gallery(Provenance.read(written.provenance))
    show([Heading(f"{dataset} {name}", size), both_ways(Metrics.read(written.full))], written.full)
