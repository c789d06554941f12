"""The command `plan`: what one row of a paper needs. Nothing runs."""

from typing import Any

import typer

from manymatch.cli import project
from manymatch.cli.needs import needs
from manymatch.cli.options import DatasetName, PresetName
from manymatch.cli.project import LAYOUT
from manymatch.config.galleries import IMAGES, TRAINING_CAPTIONS
from manymatch.config.names import preset_path
from manymatch.config.preset import Preset
from manymatch.datasets.base import Need, caption_columns
from manymatch.methods import check_model, method_class
from manymatch.util.errors import ConfigError
from manymatch.util.parquet_file import read_table
from manymatch.util.progress import say

commands = typer.Typer()

_SLOWER = "; steps on stored features took .8 to 9 times as long where they were measured"
"""The end of the line on hours for a preset without a network of pixels (docs/published.md)."""


@commands.command()
def plan(dataset: DatasetName, preset: PresetName) -> None:
    """Say what one row of a paper needs: files that are here or missing, and the papers' numbers.

    Nothing runs, nothing is downloaded, and params.yaml need not name the preset.
    """
    from manymatch.reporting.published import published_results
    from manymatch.reporting.sections.published import PAPERS_NAME
    from manymatch.reporting.table import Cell, Column, Table
    from manymatch.reporting.terminal import show
    from manymatch.training.gpu_memory import memory_text

    settings = project.preset(dataset, preset)
    check_model(settings.method, settings.model, preset_path(LAYOUT.presets, dataset, preset))
    alone = {"datasets": [dataset], "presets": [preset], "features": [settings.features]}
    others: dict[str, Any] = {"warm_starts": {}, "indexes": {}, "ensembles": [], "experiments": {}}
    others |= {"probes": {}, "clusters": {}}
    params = project.params().model_copy(update=alone | others)
    training = settings.training
    batch = f"batches of {training.images_per_batch} images"
    say(f"{dataset}/{preset}: {settings.setting}, {training.epochs} epochs, {batch}")
    memory = memory_text(settings)
    if memory:
        say(memory)
    extraction = params.extraction.get(settings.features)  # None: imported features
    kind = (extraction and extraction.kind) or settings.features
    if method_class(settings.method).learns:
        say(_hours(dataset, settings, kind, "" if memory else _SLOWER))
    made = {
        "images": LAYOUT.raw(dataset),
        "captions": LAYOUT.captions(dataset),
        "features": LAYOUT.features(dataset, settings.features),
        "scene graphs": LAYOUT.scene_graphs(dataset),
        "shards": LAYOUT.shards(dataset, settings.features),
        "model": LAYOUT.model(dataset, preset),
        "result": LAYOUT.result(dataset, preset).full,
    }
    for what, path in made.items():
        say(f"{what}: {path}, {'here' if path.exists() else 'not made yet'}")
    try:
        missing = list(needs(params))
    except ConfigError as fault:  # such as a data set whose folder is not named yet
        missing = [Need(dataset, fault=fault)]
    for need in missing:
        say(f"missing: {need.fault}" if need.fault else f"will be downloaded: {need}")
    if not any(need.fault for need in missing):
        say("no file is missing that you must get")
    title = PAPERS_NAME.get(settings.method)
    rows = [
        [
            *(Cell(text) for text in (one.paper, one.section, one.features, one.text_encoder)),
            *(Cell(text) for text in (one.setting, one.marks.replace("_", " "))),
            *(
                Cell.number(next((v for k, v in one.values.items() if k.endswith(key)), None))
                for key in ("rsum", "i2t.r1", "t2i.r1")
            ),
        ]
        for one in published_results()
        if one.dataset == dataset and one.method.split()[0] == title
    ]
    names = ("paper", "table", "features", "texts", "setting", "marks")
    numbers = map(Column, ("rsum", "R@1, image", "R@1, text"))
    columns = [*(Column(name, numeric=False) for name in names), *numbers]
    if rows:
        show([Table(f"{title} as published", columns, rows).filled_columns()])
    lists = f"datasets: [{dataset}], presets: [{preset}] and features: [{settings.features}]"
    typer.echo(f"\ndvc repro evaluate@{dataset}-{preset}   # with {lists} in params.yaml")


def _hours(dataset: str, preset: Preset, kind: str, end: str) -> str:
    """The line on the hours of a GPU with its `end`, or on why they are not known. `kind`: of the
    features."""
    from manymatch.training.operations import GPU, PEAK, SHARE, training_operations

    try:
        counted = training_operations(preset, *_training_size(dataset, preset.features, kind))
    except ConfigError as reason:
        return f"the hours of a GPU are not known: {reason}"
    hours = f"{counted.hours:.1f}" if counted.hours >= 0.1 else "less than 0.1"
    return (
        f"the training takes an estimated {hours} hours of an {GPU} at {SHARE:.0%} of its "
        f"{PEAK / 1e12:.0f} TFLOP/s in bf16: {counted.total:.1e} operations, counted and never "
        f"run, in {counted.epochs} epochs of {counted.steps:,} steps{end}"
    )


def _training_size(
    dataset: str, features: str, kind: str
) -> tuple[int, int, tuple[int, int] | None]:
    """The images and captions of the training split, and the regions of an image with the numbers
    of each: as the shards say, else as the caption table says or as published.

    Raises:
        ConfigError: nothing here says how many captions there are.
    """
    from manymatch.features import SHAPES
    from manymatch.shards.index import INDEX, read_index

    shards, captions = LAYOUT.shards(dataset, features), LAYOUT.captions(dataset)
    if (shards / INDEX).is_file():
        index = read_index(shards)
        split = index.split("train")
        return split.images, split.captions, (index.max_regions, index.width)
    if captions.is_file():
        rows = read_table(captions, caption_columns("image_id", "split")).to_pylist()
        ids = [row["image_id"] for row in rows if row["split"] == "train"]
        return len({*ids}), len(ids), SHAPES.get(kind)
    if dataset not in TRAINING_CAPTIONS:
        raise ConfigError(
            f"the training captions of {dataset} are not counted yet. Run 'dvc repro "
            f"captions@{dataset}' first"
        )
    return IMAGES[dataset]["train"], TRAINING_CAPTIONS[dataset], SHAPES.get(kind)
