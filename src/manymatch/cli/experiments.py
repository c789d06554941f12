"""Experiments and measurements beyond the pipeline's stages."""

from pathlib import Path
from typing import Annotated

import typer

from manymatch import datasets
from manymatch.cli import project
from manymatch.cli.options import (
    DatasetName,
    Device,
    PresetName,
    Split,
    check_name,
    check_names,
    trained_models,
)
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.config.names import checked_name
from manymatch.util.errors import ConfigError
from manymatch.util.packages import extra, package_folder

commands = typer.Typer()

SettingsOfPoints = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of every point, such as size=64."),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Trainings at a time. Default: one for each GPU or core."),
]


@commands.command()
def experiment(
    subject: Annotated[
        str,
        typer.Argument(metavar="FILE|DATASET", help="experiments/NAME.yaml, or a data set."),
    ],
    presets: Annotated[
        list[str] | None,
        typer.Argument(
            callback=check_names,
            metavar="PRESET",
            help="With DATASET: a preset to vary, or presets to compare.",
        ),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V1,V2",
            help="With DATASET: what varies, such as similarity.alpha=1,4,16 or "
            "training.epochs=5,10. Several --over make a grid.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            callback=check_name, help="With FILE: the data set of the presets, instead of FILE's."
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="S1,S2", help="The seeds of every point. Default: those of FILE, or 0."
        ),
    ] = None,
    overrides: SettingsOfPoints = None,
    jobs: Jobs = None,
    device: Device = "auto",
    keep: Annotated[bool, typer.Option("--keep", help="Keep the trained models.")] = False,
    accept_stale: Annotated[
        bool, typer.Option("--accept-stale", help="Count results of other source code as finished.")
    ] = False,
    extend: Annotated[
        bool,
        typer.Option("--extend", help="Count the runs in files of results as finished."),
    ] = False,
) -> None:
    """Run every point of an experiment with every seed: one table of results.

    The experiment is FILE, or presets of DATASET: 'experiment scenes dive --over
    similarity.alpha=1,4,16' varies a setting, 'experiment scenes vsepp cora'
    compares presets.

    The key `experiment` of FILE states the kind of the experiment:
    presets (the default), a preset with one thing changed at a time:
    reports/experiments/DATASET/NAME.json;
    synthetic, SwAMP's synthetic pairs: reports/synthetic/NAME.json;
    sketches, images for sketches of unseen classes: reports/sketches/NAME.json.

    Finished runs are kept in models/.experiments. After an interrupt or an
    extension, the same command does the missing runs only.
    """
    from manymatch.experiments.engine import perform
    from manymatch.experiments.grid import Options, experiment_of_file, experiment_of_options
    from manymatch.reporting.sections import experiments, over_seeds
    from manymatch.reporting.terminal import show
    from manymatch.results.experiments import Experiment, SketchExperiment, SyntheticExperiment

    file = Path(subject) if subject.endswith((".yaml", ".yml")) else None
    if file and (presets or over):
        raise ConfigError("experiment: a FILE names its presets. Leave out PRESET and --over")
    if dataset and not file:
        raise ConfigError("--dataset: the first argument is the data set. Leave out --dataset")
    project.require_project()
    if not file:
        checked_name(subject, "experiment")
    settings = project.settings_of(overrides)
    options = Options(
        dataset if file else subject, seeds, settings, jobs, device, keep, accept_stale, extend
    )
    if file:
        described = experiment_of_file(file, LAYOUT, options)
    else:
        described = experiment_of_options(presets or [], over or [], LAYOUT, options)
    written = perform(described)
    blocks = {
        "presets": lambda: experiments.blocks(Experiment.read(written)),
        "synthetic": lambda: over_seeds.synthetic(SyntheticExperiment.read(written)),
        "sketches": lambda: over_seeds.sketches(SketchExperiment.read(written)),
    }
    show(blocks[described.kind](), written)


def _tuned(dataset: str, presets: list[str]) -> list[Path]:
    return [
        path(dataset, name) for name in presets for path in (LAYOUT.tuning, LAYOUT.tuned_preset)
    ]


@commands.command()
@writes(_tuned)
def tune(
    dataset: DatasetName,
    presets: Annotated[
        list[str],
        typer.Argument(
            callback=check_names, metavar="PRESET", help="Presets: presets/DATASET/PRESET.yaml."
        ),
    ],
    trials: Annotated[int, typer.Option(min=1, help="Trials of each preset.")] = 25,
    hours: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Processor hours of each preset, after which no trial begins. Default: no limit.",
        ),
    ] = None,
    jobs: Jobs = None,
    device: Device = "auto",
) -> None:
    """Search a preset's settings: reports/tuning/DATASET/PRESET.yaml.

    experiments/spaces/DATASET.yaml says what is searched. The validation split
    decides; the test split is not read. Every preset has the same budget. All
    trials are in reports/tuning/DATASET/PRESET.json.

    Copy PRESET.yaml over presets/DATASET/PRESET.yaml to train with its settings.

    After an interrupt, or with more --trials or --hours, the same command goes on.
    """
    from manymatch.reporting.sections.tuning import table
    from manymatch.reporting.terminal import show

    project.require_project()
    package_folder("optuna", extra("tuning"), "set the settings of the preset by hand")
    from manymatch.experiments.tuning.trials import Budget
    from manymatch.experiments.tuning.trials import tune as stage

    names = list(dict.fromkeys(presets))
    tuned = stage(LAYOUT, dataset, names, Budget(trials, hours), jobs, device)
    show([table(tuned)], LAYOUT.tuning(dataset, names[0]).parent)


@commands.command()
@writes(LAYOUT.probe)
def probe(
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
    """Probe a trained model further: reports/probes/DATASET/PRESET.json."""
    from manymatch.experiments.probes import all_probes as stage
    from manymatch.reporting.sections.probes import blocks_of
    from manymatch.reporting.terminal import show
    from manymatch.results.probes import Probes

    written = LAYOUT.probe(dataset, preset)
    split = split or project.params().evaluation.split
    stage.probe(*project.trained(dataset, preset), written, split=split, only=only or [])
    show(blocks_of([Probes.read(written)]), written)


@commands.command()
@writes(LAYOUT.clusters)
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
    """Find the keywords and members of a SwAMP's classes: reports/clusters/DATASET/PRESET.json."""
    from manymatch.experiments.swamp_classes import describe_classes
    from manymatch.reporting.sections.probes import class_blocks
    from manymatch.reporting.terminal import show
    from manymatch.results.probes import Clusters

    params = project.params()
    written = LAYOUT.clusters(dataset, preset)
    describe_classes(
        *project.trained(dataset, preset),
        written,
        split=split or params.evaluation.split,
        parser=params.scene_graphs.model,
    )
    show(class_blocks(Clusters.read(written)), written)


@commands.command()
@writes(LAYOUT.efficiency)
def efficiency(
    dataset: DatasetName,
    presets: Annotated[
        list[str] | None,
        trained_models("Trained models; default: those that params.yaml names."),
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
    from manymatch.experiments.costs import efficiency as stage
    from manymatch.reporting.sections import costs
    from manymatch.reporting.terminal import show
    from manymatch.results.costs import Costs

    params = project.params()
    names = presets or project.trained_names(params, dataset)
    if not names:
        datasets.entry_point(datasets.kind(dataset, params.sources.get(dataset, {})))
    sources = [project.trained(dataset, name) for name in names]
    written = LAYOUT.efficiency(dataset)
    split = split or params.evaluation.split
    stage.measure(dataset, sources, written, split, params.scene_graphs.model)
    show(costs.blocks(Costs.read(written)), written)
