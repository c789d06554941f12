"""Experiments and measurements beyond the pipeline's stages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manymatch.cli import project
from manymatch.cli.options import DatasetName, Overrides, PresetName, Split
from manymatch.cli.project import LAYOUT
from manymatch.system.errors import ConfigError

commands = typer.Typer()


@commands.command()
def ablate(
    preset: Annotated[
        str | None, typer.Argument(help="The preset to vary: presets/DATASET/PRESET.yaml.")
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V1,V2",
            help="What varies: similarity.alpha=1,4,16, training.epochs=5,10, preset=vsepp,cora. "
            "Several make a grid.",
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="S1,S2", help="Train each point with these seeds; default: 0."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="A dataset; default: that of FILE, or scenes.")
    ] = None,
    overrides: Overrides = None,
    file: Annotated[
        Path | None, typer.Option(help="Read the whole ablation from ablations/NAME.yaml.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time; default: one for each core or GPU.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the trained models.")] = False,
    accept_stale: Annotated[
        bool, typer.Option("--accept-stale", help="Accept earlier results of other code.")
    ] = False,
) -> None:
    """Train a preset with one thing changed at a time: reports/ablations/DATASET/NAME.json.

    Finished runs are kept in models/.ablations. After a kill, or when points are added, only the
    missing runs are trained.
    """
    from manymatch.experiments.ablation import ablate as stage
    from manymatch.experiments.ablation import command
    from manymatch.reporting import ablations
    from manymatch.results.ablations import Ablation

    if file and (preset or over or seeds):
        raise ConfigError("ablate: give either --file or a preset with --over, not both")
    settings = dict(project.override(text) for text in overrides or [])
    if file:
        name, plan = command.plan_from_file(file, LAYOUT, dataset, settings)
    else:
        name, plan = command.plan_from_options(
            preset, over or [], seeds or "0", dataset or "scenes", settings
        )
    options = stage.Options(jobs, keep, accept_stale)
    written = stage.ablate(name, plan, LAYOUT, project.params().evaluation.split, options)
    typer.echo(ablations.to_markdown(Ablation.read(written)))


@commands.command()
def study(
    dataset: DatasetName,
    preset: PresetName,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="rich_captions, entity_retrieval, parse_errors or reranking; repeatable.",
        ),
    ] = None,
    split: Split = None,
) -> None:
    """Study a trained model further: reports/studies/DATASET/PRESET.json."""
    from manymatch.experiments.studies import study as stage

    stage.study(
        *project.trained(dataset, preset),
        LAYOUT.study(dataset, preset),
        split=split or project.params().evaluation.split,
        only=only or [],
    )


@commands.command()
def clusters(
    dataset: DatasetName,
    preset: Annotated[
        str, typer.Argument(metavar="PRESET", help="A trained SwAMP: models/DATASET/PRESET.")
    ],
    split: Split = None,
) -> None:
    """Find keywords and members of a SwAMP's classes: reports/clusters/DATASET/PRESET.json."""
    from manymatch.experiments.clusters import clusters as stage

    params = project.params()
    stage.clusters(
        *project.trained(dataset, preset),
        LAYOUT.clusters(dataset, preset),
        split=split or params.evaluation.split,
        parser=params.scene_graphs.model,
    )


@commands.command()
def efficiency(
    dataset: DatasetName,
    presets: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Trained models; default: those that params.yaml names."),
    ] = None,
    split: Split = None,
) -> None:
    """Measure what trained models cost: reports/efficiency/DATASET.json.

    Measures multiply-adds of a similarity, parameters, a training step, the whole
    test, and a text query (parse, encode, search) over 10 to 100,000 images, with
    SCAN's cross-attention and the papers' figures for comparison. A model takes
    about a minute, SCAN a few. The times are those of this machine: run nothing
    else on it meanwhile.
    """
    from manymatch.experiments.costs import measure as stage
    from manymatch.reporting import costs
    from manymatch.results.costs import Costs

    params = project.params()
    names = presets.split(",") if presets else project.trained_names(params, dataset)
    sources = [stage.Source(*project.trained(dataset, name)) for name in names]
    written = LAYOUT.efficiency(dataset)
    split = split or params.evaluation.split
    stage.measure(dataset, sources, written, split, params.scene_graphs.model)
    typer.echo(costs.to_markdown(Costs.read(written)))


@commands.command()
def synthetic(
    file: Annotated[
        Path | None, typer.Option(help="The experiment; default: synthetic/swamp.yaml.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="S1,S2", help="Seeds in place of the file's.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time, each on one core; default: all cores."),
    ] = None,
) -> None:
    """Repeat SwAMP's experiment on synthetic pairs: reports/synthetic/NAME.json.

    The experiment needs no data. Finished runs are kept in models/.synthetic. After a kill, or when
    points are added, only the missing runs are done.
    """
    from manymatch.experiments.synthetic import experiment as stage
    from manymatch.experiments.synthetic import plan
    from manymatch.reporting import synthetic as tables
    from manymatch.results.synthetic import SyntheticExperiment

    path = file or LAYOUT.experiment("swamp")
    written = stage.perform(path.stem, plan.read_experiment(path, seeds), LAYOUT, jobs)
    typer.echo(tables.to_markdown(SyntheticExperiment.read(written)))


@commands.command()
def sketches(
    file: Annotated[Path, typer.Argument(help="The experiment: sketches/NAME.yaml.")],
    seeds: Annotated[
        str | None, typer.Option(metavar="S1,S2", help="Seeds in place of the file's.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 ...")] = "auto",
) -> None:
    """Retrieve images for sketches of unseen classes: reports/sketches/NAME.json.

    Each seed trains on published features of the seen classes; FILE names the feature files.
    """
    from manymatch.experiments.sketches import experiment as stage
    from manymatch.experiments.sketches.settings import read_sketches
    from manymatch.reporting import sketches as tables
    from manymatch.results.sketches import SketchExperiment
    from manymatch.system.device import pick_device

    written = stage.perform(file.stem, read_sketches(file, seeds), LAYOUT, pick_device(device))
    typer.echo(tables.view(SketchExperiment.read(written)).to_markdown())
