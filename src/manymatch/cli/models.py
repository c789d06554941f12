"""Training models, ranking with them, and the models that come with the package."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from manymatch.cli import project
from manymatch.cli.options import (
    Browser,
    DatasetName,
    Overrides,
    Port,
    PresetName,
    Split,
    new_name,
    trained_models,
)
from manymatch.cli.outputs import result_files, show_result, writes
from manymatch.cli.project import LAYOUT
from manymatch.config.names import preset_path
from manymatch.methods import check_model, entry_point
from manymatch.util.parts import Parts

commands = typer.Typer()

_DEMO_PICTURES = 300
"""Drawn pictures."""


def _model(dataset: str, preset: str, name: str | None) -> list[Path]:
    trained = name or preset
    return [LAYOUT.model(dataset, trained), LAYOUT.curves(dataset, trained) / "plots" / "metrics"]


def _reranked_result(dataset: str, preset: str) -> list[Path]:
    from manymatch.evaluation.ensemble import SUFFIX

    return result_files(dataset, preset + SUFFIX)


def _joined_result(dataset: str, presets: list[str]) -> list[Path]:
    from manymatch.evaluation.ensemble import JOINED_BY

    return result_files(dataset, JOINED_BY.join(presets))


@commands.command()
@writes(_model)
def train(
    dataset: DatasetName,
    preset: PresetName,
    overrides: Overrides = None,
    name: Annotated[str | None, new_name("Call the model NAME: --set seed=1 --as cora-1.")] = None,
) -> None:
    """Train one preset: models/DATASET/PRESET. A run that was killed continues where it stopped."""
    settings = project.preset(dataset, preset, overrides)
    path = preset_path(LAYOUT.presets, dataset, preset)
    entry_point(settings.method, f"{path}: ")  # an unknown method is told before torch is loaded
    from manymatch.training.run_context import relaunch

    relaunch()
    check_model(settings.method, settings.model, path)
    from manymatch.training import train as stage

    model, relevance = name or preset, LAYOUT.relevance(dataset)
    stage.train(
        settings,
        LAYOUT.shards(dataset, settings.features),
        LAYOUT.vocabulary(dataset),
        LAYOUT.model(dataset, model),
        LAYOUT.curves(dataset, model),
        LAYOUT.checkpoints(dataset, model),
        usage=LAYOUT.machine(dataset, model),
        relevance=relevance if relevance.is_file() else None,
    )


@commands.command("import-howto100m")
@writes(LAYOUT.model("howto100m", "released"))
def import_howto100m(
    file: Annotated[Path, typer.Argument(help="howto100m_pt_model.pth, as published.")],
) -> None:
    """Import HowTo100M's published model, for presets that start from it:
    models/howto100m/released."""
    from manymatch.model.howto100m import import_howto100m as stage

    stage(file, LAYOUT.model("howto100m", "released"))


@commands.command()
@writes(result_files)
def evaluate(dataset: DatasetName, preset: PresetName, split: Split = None) -> None:
    """Rank the test split with a trained model: reports/results, run files, sample queries."""
    from manymatch.evaluation import evaluate as stage

    stage.evaluate(
        *project.trained(dataset, preset),
        LAYOUT.result(dataset, preset),
        project.evaluation_options(dataset, split),
        project.params().evaluation.elements,
    )
    show_result(dataset, preset)


@commands.command()
@writes(_reranked_result)
def rerank(
    dataset: DatasetName,
    preset: Annotated[
        str, trained_models("A trained CORA, or several as an ensemble: cora+cora-1.")
    ],
    split: Split = None,
) -> None:
    """Evaluate a trained CORA re-ranked by entities: reports/results/DATASET/PRESET+rerank.json.

    An ensemble averages the members' scores of captions and of entities before it re-ranks.
    """
    from manymatch.evaluation import ensemble as stage

    stage.rerank(
        [project.trained(dataset, name) for name in preset.split(stage.JOINED_BY)],
        LAYOUT.result(dataset, preset + stage.SUFFIX),
        project.evaluation_options(dataset, split),
    )
    show_result(dataset, preset + stage.SUFFIX)


@commands.command()
@writes(_joined_result)
def ensemble(
    dataset: DatasetName,
    presets: Annotated[list[str], trained_models("Trained models: cora cora-1, or cora+cora-1.")],
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
        LAYOUT.result(dataset, joined),
        project.evaluation_options(dataset, split),
    )
    show_result(dataset, joined)


@commands.command()
def demo(
    pictures: Annotated[
        Path | None,
        typer.Argument(help="A folder of pictures of yours. Without a folder: drawn pictures."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A model of 'manymatch models', or a folder. Without the option: scenes-"
            "vse_infinity for drawn pictures, flickr8k-vsepp for photographs.",
        ),
    ] = None,
    port: Port = 8000,
    browser: Browser = True,
) -> None:
    """Search pictures in the browser, without a network, with a model of the package.

    The index is temporary. 'manymatch index' and 'manymatch serve' keep one.
    """
    from manymatch.model.model import load
    from manymatch.search.index.build import build
    from manymatch.search.index.sources import source_of
    from manymatch.search.service.server import check_ready as check
    from manymatch.search.service.server import serve as run

    check("127.0.0.1", port)  # before pictures are embedded
    model = model or ("flickr8k-vsepp" if pictures else "scenes-vse_infinity")
    loaded = load(model)
    with TemporaryDirectory(prefix="manymatch-demo-") as name:
        if pictures is None:
            from manymatch.datasets.scenes import Scenes, ScenesSettings

            # Pictures of another seed than those of the training.
            settings = ScenesSettings(seed=1, train=_DEMO_PICTURES, validation=1, test=0)
            Scenes().download(settings, Path(name, "drawn"))
            pictures = Path(name, "drawn", "images")
        index = Path(name, "pictures")
        parts = Parts(Path(f"{index}.parts"))
        build(source_of(pictures), loaded, index, model, parts=parts)
        run([index], "127.0.0.1", port, show=browser)
