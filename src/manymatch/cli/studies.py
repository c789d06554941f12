"""Experiments and measurements beyond the pipeline's stages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manymatch.cli import project
from manymatch.cli.options import DatasetName, PresetName, Split, check_name, check_names
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.system.errors import ConfigError
from manymatch.system.progress import show

commands = typer.Typer()

SettingsOfPoints = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of every point, such as size=64."),
]


def _shards(dataset: str) -> Path:
    """The shards with all features of `dataset`."""
    return LAYOUT.shards(dataset, "")


@commands.command()
def experiment(
    file: Annotated[
        Path | None, typer.Argument(help="The experiment: experiments/NAME.yaml.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            callback=check_name,
            help="Without FILE: the preset to vary, presets/DATASET/PRESET.",
        ),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V1,V2",
            help="Without FILE: what varies, such as similarity.alpha=1,4,16, "
            "training.epochs=5,10 or preset=vsepp,cora. Several --over make a grid.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            callback=check_name, help="The dataset of the presets, instead of FILE's or scenes."
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="S1,S2", help="Run every point with these seeds, not FILE's or 0."),
    ] = None,
    overrides: SettingsOfPoints = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time. Default: one for each GPU or core.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, or one GPU: cuda:1.")] = "auto",
    keep: Annotated[bool, typer.Option("--keep", help="Keep the trained models.")] = False,
    accept_stale: Annotated[
        bool, typer.Option("--accept-stale", help="Count results of other source code as finished.")
    ] = False,
) -> None:
    """Run every point of an experiment with every seed: one table of results.

    The key `experiment` of FILE states the kind of the experiment:
    presets (the default), a preset with one thing changed at a time:
    reports/ablations/DATASET/NAME.json;
    synthetic, SwAMP's synthetic pairs: reports/synthetic/NAME.json;
    sketches, images for sketches of unseen classes: reports/sketches/NAME.json.

    Finished runs are kept in models/.experiments. After an interrupt or an
    extension, the same command does the missing runs only.
    """
    from manymatch.experiments.engine import perform
    from manymatch.experiments.experiment import Options
    from manymatch.experiments.kinds import experiment_of_file, experiment_of_options
    from manymatch.reporting import ablations, sketches, synthetic
    from manymatch.results.ablations import Ablation
    from manymatch.results.sketches import SketchExperiment
    from manymatch.results.synthetic import SyntheticExperiment

    if file and (preset or over):
        raise ConfigError("experiment: FILE and --preset or --over do not go together. Give one")
    project.require_project()
    settings = dict(project.override(text) for text in overrides or [])
    options = Options(dataset, seeds, settings, jobs, device, keep, accept_stale)
    if file:
        described = experiment_of_file(file, LAYOUT, options)
    else:
        described = experiment_of_options(preset, over or [], LAYOUT, options)
    written = perform(described)
    tables = {
        "presets": lambda: ablations.to_markdown(Ablation.read(written)),
        "synthetic": lambda: synthetic.to_markdown(SyntheticExperiment.read(written)),
        "sketches": lambda: sketches.view(SketchExperiment.read(written)).to_markdown(),
    }
    show(tables[described.kind]())


@commands.command()
@writes(LAYOUT.study, reads=[LAYOUT.model, _shards])
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
@writes(LAYOUT.clusters, reads=[LAYOUT.model, _shards])
def clusters(
    dataset: DatasetName,
    preset: Annotated[
        str,
        typer.Argument(
            callback=check_name,
            metavar="PRESET",
            help="A trained SwAMP: models/DATASET/PRESET.",
        ),
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
@writes(LAYOUT.efficiency)
def efficiency(
    dataset: DatasetName,
    presets: Annotated[
        str | None,
        typer.Option(
            callback=check_names,
            metavar="A,B",
            help="Trained models; default: those that params.yaml names.",
        ),
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
    show(costs.to_markdown(Costs.read(written)))
