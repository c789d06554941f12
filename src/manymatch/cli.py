"""The command line: every stage of dvc.yaml is a subcommand that runs alone.

Stages import their rooms when they run, so that `--help` and the light stages start at once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from manymatch import __version__
from manymatch.config.layout import Layout
from manymatch.config.params import Params, Published, model_name, read_params
from manymatch.config.recipe import Recipe, preset_path, read_recipe
from manymatch.config.strict import yaml_value
from manymatch.errors import ConfigError, ManyMatchError
from manymatch.parts import Part, Parts
from manymatch.progress import say

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Image-text retrieval where an image has many captions and a caption many images. "
    "Run the whole pipeline with 'dvc repro'; each stage below also runs by hand, in the folder "
    "that holds params.yaml.",
)

DatasetName = Annotated[
    str,
    typer.Argument(
        help="A dataset: scenes, flickr8k, flickr30k, coco, cub, youcook2, msrvtt, lsmdc."
    ),
]
MethodName = Annotated[str, typer.Argument(help="A recipe: presets/DATASET/METHOD.yaml.")]
FeaturesName = Annotated[
    str, typer.Argument(help="A backbone: lite0, objects, resnet50 ...; pixels256 for none.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override the recipe, e.g. --set training.epochs=2."
    ),
]
PartName = Annotated[
    str | None,
    typer.Option(
        "--part", metavar="K/N", help="Make only part K of N, for the stage to join: data/parts."
    ),
]
Split = Annotated[str | None, typer.Option(help="train, validation or test.")]
_LAYOUT = Layout()
_INTERRUPTED = 130
"""The exit code of an interrupt, which typer turns it into without a word."""


def _params() -> Params:
    return read_params(_LAYOUT.params)


def _recipe(dataset: str, method: str, overrides: list[str] | None = None) -> Recipe:
    path = preset_path(_LAYOUT.presets, dataset, method)
    return read_recipe(path, dict(_override(text) for text in overrides or []))


def _parts(output: Path, part: str | None) -> Parts:
    return Parts(_LAYOUT.parts(output), Part.read(part) if part else None)


def _trained(dataset: str, name: str) -> tuple[Path, Path]:
    """A trained model's folder, and that of the shards of its features."""
    folder = _LAYOUT.model(dataset, name)
    recipe = folder / "recipe.yaml"
    trained = read_recipe(recipe) if recipe.is_file() else _recipe(dataset, name)
    return folder, _LAYOUT.shards(dataset, trained.features)


def _trained_names(params: Params, dataset: str) -> list[str]:
    """The models that params.yaml names and that are trained."""
    warm = [each.method for each in params.warm_starts.values() if each.dataset == dataset]
    return [name for name in [*params.methods, *warm] if _LAYOUT.model(dataset, name).is_dir()]


def _outputs(dataset: str, name: str) -> tuple[Path, Path, Path]:
    """Where the metrics, provenance and ranks of a model or ensemble go."""
    return (
        _LAYOUT.metrics(dataset, name),
        _LAYOUT.provenance(dataset, name),
        _LAYOUT.run(dataset, name),
    )


def _ranking(split: str | None) -> dict[str, Any]:
    """Which split is ranked, and how much of it is kept: `evaluation` in params.yaml."""
    settings = _params().evaluation
    return {
        "split": split or settings.split,
        "depth": settings.depth,
        "samples": settings.samples,
    }


def _override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise ConfigError(f"--set {text}: expected KEY=VALUE")
    return key, yaml_value(value, f"--set {text}")


def _check_recipe(params: Params, dataset: str, method: str, starts_from: str | None) -> None:
    from manymatch.methods import check_model

    path = preset_path(_LAYOUT.presets, dataset, method)
    recipe = _recipe(dataset, method)
    check_model(recipe.method, recipe.model)
    if recipe.features not in params.features:
        raise ConfigError(
            f"{path}: features '{recipe.features}' are not extracted; "
            "add them to 'features' in params.yaml"
        )
    own = recipe.warm_start.model if recipe.warm_start else None
    if own != starts_from:
        raise ConfigError(
            f"{path}: starts from {own or 'nothing'}, but from {starts_from or 'nothing'} in "
            "params.yaml; recipes with a warm start are named under 'warm_starts' there, "
            "the others under 'methods'"
        )


@app.command()
def check() -> None:
    """Check params.yaml and the recipes it names, and say what will run."""
    from manymatch import datasets
    from manymatch.ablation.command import plan_from_file
    from manymatch.ablation.recipes import check_plan
    from manymatch.features import check_name
    from manymatch.features.importers import check_format

    params = _params()
    for features in params.features:
        settings = params.extraction_of(features)
        for published in settings.published.values():
            check_format(published.format)
        if set(params.datasets) - set(settings.published):
            check_name(features)
    for name in params.datasets:
        datasets.check_settings(name, params.source(name))
        for method in params.methods:
            _check_recipe(params, name, method, starts_from=None)
    for key, started in params.warm_starts.items():
        if key != f"{started.dataset}-{started.method}":
            raise ConfigError(f"params.yaml: warm_starts: '{key}' is not its DATASET-METHOD")
        _check_recipe(params, started.dataset, started.method, starts_from=started.model)
    for name, dataset in params.ablations.items():
        check_plan(_LAYOUT.presets, plan_from_file(_LAYOUT.plan(name), dataset)[1])
    say(
        f"datasets {', '.join(params.datasets)}; methods {', '.join(params.methods)}; "
        f"warm starts {', '.join(params.warm_starts) or 'none'}; "
        f"features {', '.join(params.features)}: all known"
    )


@app.command()
def download(dataset: DatasetName) -> None:
    """Fetch or generate a dataset's own files: data/raw/DATASET."""
    from manymatch.datasets import download as stage

    stage.download(dataset, _params().source(dataset), _LAYOUT.raw(dataset))


@app.command()
def captions(dataset: DatasetName) -> None:
    """Write the caption table, training vocabulary and judged pairs: data/captions."""
    from manymatch.datasets import captions as stage

    stage.write_captions(
        dataset,
        _LAYOUT.raw(dataset),
        _LAYOUT.captions(dataset),
        _LAYOUT.vocabulary(dataset),
        _LAYOUT.relevance(dataset),
        minimum_count=_params().captions.minimum_count,
    )


@app.command()
def features(
    dataset: DatasetName,
    features: FeaturesName,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1 ...")] = None,
    part: PartName = None,
) -> None:
    """Extract image features to an HDF5 store: data/features/DATASET/FEATURES.h5. Resumable.

    Published ones (extraction.FEATURES.published.DATASET in params.yaml) are imported instead.
    """
    settings = _params().extraction_of(features)
    store = _LAYOUT.features(dataset, features)
    parts = _parts(store, part)
    if dataset in settings.published:
        if part:
            raise ConfigError(f"--part {part}: features that are imported have no parts")
        _import_features(dataset, features, settings.published[dataset])
        return

    from manymatch.features import extract as stage

    stage.extract(
        features,
        _LAYOUT.raw(dataset),
        _LAYOUT.captions(dataset),
        store,
        batch_size=settings.batch_size,
        device=device or settings.device,
        weights=settings.weights,
        regions=settings.regions,
        parts=parts,
    )


def _import_features(dataset: str, features: str, published: Published) -> None:
    from manymatch.features.importers import importing as stage

    stage.import_features(
        features,
        published.format,
        Path(published.path),
        _LAYOUT.captions(dataset),
        _LAYOUT.features(dataset, features),
        max_regions=published.max_regions,
    )


@app.command("scene-graphs")
def scene_graphs(
    dataset: DatasetName,
    processes: Annotated[int | None, typer.Option(help="Parser processes; 0: one a core.")] = None,
    part: PartName = None,
) -> None:
    """Parse captions into scene graphs with spaCy: data/scene_graphs/DATASET.parquet."""
    from manymatch.scene_graphs import parse as stage

    settings = _params().scene_graphs
    count = settings.processes if processes is None else processes
    table = _LAYOUT.scene_graphs(dataset)
    stage.parse_captions(
        _LAYOUT.captions(dataset),
        table,
        model=settings.model,
        processes=count or os.cpu_count() or 1,
        batch_size=settings.batch_size,
        parts=_parts(table, part),
    )


@app.command()
def shards(dataset: DatasetName, features: FeaturesName, part: PartName = None) -> None:
    """Pack features, captions and graphs into WebDataset shards: data/shards/DATASET/FEATURES."""
    from manymatch.shards import write as stage

    settings = _params().shards
    folder = _LAYOUT.shards(dataset, features)
    stage.write_shards(
        _LAYOUT.captions(dataset),
        _LAYOUT.scene_graphs(dataset),
        _LAYOUT.features(dataset, features),
        _LAYOUT.raw(dataset),
        folder,
        images_per_shard=settings.images_per_shard,
        thumbnail=settings.thumbnail,
        parts=_parts(folder, part),
    )


@app.command()
def train(
    dataset: DatasetName,
    method: MethodName,
    overrides: Overrides = None,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Call the model NAME: --set seed=1 --as cora-1."),
    ] = None,
) -> None:
    """Train one recipe: models/DATASET/METHOD. Resumes where a killed run left off."""
    from manymatch.training.torchrun import relaunch

    relaunch()
    from manymatch.training import train as stage

    recipe = _recipe(dataset, method, overrides)
    method = model_name(name) if name else method
    stage.train(
        recipe,
        _LAYOUT.shards(dataset, recipe.features),
        _LAYOUT.vocabulary(dataset),
        _LAYOUT.model(dataset, method),
        _LAYOUT.curves(dataset, method),
        _LAYOUT.checkpoints(dataset, method),
    )


@app.command("import-howto100m")
def import_howto100m(
    file: Annotated[Path, typer.Argument(help="howto100m_pt_model.pth, as published.")],
) -> None:
    """Take over HowTo100M's model as one to start from: models/howto100m/released."""
    from manymatch.methods.howto100m import import_howto100m as stage

    stage(file, _LAYOUT.model("howto100m", "released"))


@app.command()
def evaluate(
    dataset: DatasetName,
    method: MethodName,
    split: Split = None,
) -> None:
    """Rank the test split with a trained model: reports/metrics, run files, sample queries."""
    from manymatch.evaluation import evaluate as stage

    stage.evaluate(
        *_trained(dataset, method),
        _LAYOUT.relevance(dataset),
        *_outputs(dataset, method),
        captions=_LAYOUT.captions(dataset),
        **_ranking(split),
        elements=_params().evaluation.elements,
    )


@app.command()
def rerank(
    dataset: DatasetName,
    method: MethodName,
    split: Split = None,
) -> None:
    """Evaluate a trained CORA re-ranked by entities: reports/metrics/DATASET/METHOD+rerank.json."""
    from manymatch.evaluation import rerank as stage

    stage.rerank(
        *_trained(dataset, method),
        _LAYOUT.relevance(dataset),
        *_outputs(dataset, method + stage.SUFFIX),
        captions=_LAYOUT.captions(dataset),
        **_ranking(split),
    )


@app.command()
def study(
    dataset: DatasetName,
    method: MethodName,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="rich_captions, entity_retrieval, parse_errors or reranking; may be given twice.",
        ),
    ] = None,
    split: Split = None,
) -> None:
    """Study a trained model further: reports/studies/DATASET/METHOD.json."""
    from manymatch.studies import study as stage

    stage.study(
        *_trained(dataset, method),
        _LAYOUT.study(dataset, method),
        split=split or _params().evaluation.split,
        only=only or [],
    )


@app.command()
def clusters(
    dataset: DatasetName,
    method: Annotated[str, typer.Argument(help="A trained SwAMP: models/DATASET/METHOD.")],
    split: Split = None,
) -> None:
    """Keywords and members of a trained SwAMP's classes: reports/clusters/DATASET/METHOD.json."""
    from manymatch.clusters import clusters as stage

    params = _params()
    stage.clusters(
        *_trained(dataset, method),
        _LAYOUT.clusters(dataset, method),
        split=split or params.evaluation.split,
        parser=params.scene_graphs.model,
    )


@app.command()
def ablate(
    preset: Annotated[
        str | None, typer.Argument(help="The recipe to vary: presets/DATASET/PRESET.yaml.")
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
        str | None, typer.Option(metavar="S1,S2", help="Each point with each seed; 0 if not given.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="A dataset; scenes unless FILE says.")] = None,
    overrides: Overrides = None,
    file: Annotated[
        Path | None, typer.Option(help="All of this from a file: ablations/NAME.yaml.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time; one a core or GPU if not given.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the trained models.")] = False,
    accept_stale: Annotated[
        bool, typer.Option("--accept-stale", help="Count earlier results of other source code too.")
    ] = False,
) -> None:
    """Train a recipe with one thing changed at a time: reports/ablations/DATASET/NAME.json.

    Finished runs are kept in models/.ablations: killed or extended, only the rest is trained.
    """
    from manymatch.ablation import ablate as stage
    from manymatch.ablation import command
    from manymatch.reporting import ablations

    if file and (preset or over or seeds):
        raise ConfigError("ablate: give either --file or a preset with --over, not both")
    settings = dict(_override(text) for text in overrides or [])
    if file:
        name, plan = command.plan_from_file(file, dataset, settings)
    else:
        chosen = dataset or "scenes"
        name, plan = command.plan_from_options(preset, over or [], seeds or "0", chosen, settings)
    options = stage.Options(jobs, keep, accept_stale)
    written = stage.ablate(name, plan, _LAYOUT, _params().evaluation.split, options)
    typer.echo(ablations.to_markdown(ablations.read_ablation(written)))


@app.command()
def synthetic(
    file: Annotated[
        Path | None, typer.Option(help="The experiment; synthetic/swamp.yaml if not given.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="S1,S2", help="Other seeds than the file's.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time, each on a core; one a core.")
    ] = None,
) -> None:
    """SwAMP's experiment on made-up pairs, against its paper: reports/synthetic/NAME.json.

    Needs no data. Finished runs are kept in models/.synthetic: killed or extended, only the rest
    is done.
    """
    from manymatch.reporting import synthetic as results
    from manymatch.synthetic import experiment as stage
    from manymatch.synthetic import plan

    path = file or _LAYOUT.experiment("swamp")
    chosen = plan.read_experiment(path, seeds)
    written = stage.perform(path.stem, chosen, _LAYOUT, jobs)
    typer.echo(results.to_markdown(results.read_experiment(written)))


@app.command()
def sketches(
    file: Annotated[Path, typer.Argument(help="The experiment: sketches/NAME.yaml.")],
    seeds: Annotated[
        str | None, typer.Option(metavar="S1,S2", help="Other seeds than the file's.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 ...")] = "auto",
) -> None:
    """Find images for sketches of unseen classes: reports/sketches/NAME.json.

    Trains on published features of the seen classes, whose files FILE names, with every seed.
    """
    from manymatch.features.extract import pick_device
    from manymatch.reporting import sketches as results
    from manymatch.sketches import experiment as stage
    from manymatch.sketches.settings import read_sketches

    written = stage.perform(file.stem, read_sketches(file, seeds), _LAYOUT, pick_device(device))
    typer.echo(results.view(results.read_sketches(written)).to_markdown())


@app.command()
def ensemble(
    members: Annotated[
        list[str],
        typer.Argument(metavar="A B", help="Trained models: cora cora-1, or cora+cora-1."),
    ],
    dataset: Annotated[str, typer.Option(help="The dataset that they were trained on.")] = "scenes",
    split: Split = None,
) -> None:
    """Rank with the mean of several models' scores: reports/metrics/DATASET/A+B.json.

    A second seed is trained with 'manymatch train scenes cora --set seed=1 --as cora-1'.
    """
    from manymatch.evaluation import ensemble as stage

    names = [name for member in members for name in member.split(stage.JOINED_BY)]
    joined = stage.JOINED_BY.join(names)
    stage.ensemble(
        [_trained(dataset, name) for name in names],
        _LAYOUT.relevance(dataset),
        *_outputs(dataset, joined),
        captions=_LAYOUT.captions(dataset),
        **_ranking(split),
    )


@app.command()
def score(
    dataset: DatasetName,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Similarities, images x captions; of several files their mean."
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
    caption_ids: Annotated[Path | None, typer.Option(help="The same of the captions.")] = None,
    captions: Annotated[
        Path | None,
        typer.Option(help="Caption table (.parquet), or .csv: image_id,caption_id[,split,labels]."),
    ] = None,
    relevance: Annotated[
        Path | None, typer.Option(help="Table of true pairs beyond the own ones (.parquet).")
    ] = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="coco_1k, pmrp, eccv_caption, cxc, classes, pairs (no other); may be given twice.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Keep it: reports/metrics/DATASET/NAME.json."),
    ] = None,
) -> None:
    """Evaluate another model's embeddings or similarities by the data set's protocols.

    FILE is .npy, .npz, .safetensors, .h5 or .hdf5; with several arrays, FILE:KEY.
    Rows are in the caption table's order, or as the files of ids say. Without
    --as the metrics are printed and nothing is written. For captions of your own
    any DATASET will do, with --captions and the protocols you want.
    """
    from manymatch.evaluation import made
    from manymatch.evaluation import score as stage

    if captions is None:
        captions, relevance = _LAYOUT.captions(dataset), relevance or _LAYOUT.relevance(dataset)
    by = made.similarity_name(similarity)
    model_name(dataset)
    theirs = made.Made(tuple(scores or ()), images, texts, by, image_ids, caption_ids)
    metrics = stage.score(
        dataset,
        theirs,
        captions,
        relevance,
        split=split,
        protocols=protocol or [],
        name=name or stage.SETTING,
        written=stage.Places(*_outputs(dataset, model_name(name))) if name else None,
    )
    typer.echo(json.dumps(metrics, indent=2))


@app.command()
def efficiency(
    dataset: DatasetName,
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Trained models; those of params.yaml if not given."),
    ] = None,
) -> None:
    """Measure what trained models cost: reports/efficiency/DATASET.json.

    Multiply-adds of a similarity, parameters, a training step, the whole test,
    and a text query (parse, encode, search) over 10 to 100,000 images; SCAN's
    cross-attention and the papers' figures beside them. About a minute a model;
    the times are of this machine, so give it nothing else to do.
    """
    from manymatch.efficiency import measure as stage
    from manymatch.reporting import costs

    params = _params()
    names = methods.split(",") if methods else _trained_names(params, dataset)
    sources = [stage.Source(*_trained(dataset, name)) for name in names]
    written = _LAYOUT.efficiency(dataset)
    stage.measure(dataset, sources, written, params.evaluation.split, params.scene_graphs.model)
    typer.echo(costs.to_markdown(costs.read_costs(written)))


@app.command()
def report() -> None:
    """Write reports/index.html and the leaderboard from the results that are there."""
    from manymatch.reporting import report as stage

    stage.report(_LAYOUT.reports)


@app.command()
def readme() -> None:
    """Put the leaderboard into README.md, between its results markers."""
    from manymatch.reporting import leaderboard

    leaderboard.update_readme(Path("README.md"), _LAYOUT.reports / "leaderboard.md")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """Run the command line; a user's fault ends in one line and exit code 1."""
    try:
        app()
    except ManyMatchError as error:
        say(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        _interrupted()
    except SystemExit as end:
        if end.code != _INTERRUPTED:
            raise
        _interrupted()


def _interrupted() -> NoReturn:
    say("interrupted; what was finished is kept, run the same command to go on")
    sys.exit(_INTERRUPTED)
