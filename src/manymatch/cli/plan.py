"""The command `plan`: what one row of a paper needs."""

from __future__ import annotations

from typing import Any

import typer

from manymatch.cli import project
from manymatch.cli.check import needs
from manymatch.cli.options import DatasetName, PresetName
from manymatch.cli.project import LAYOUT
from manymatch.util.progress import say

commands = typer.Typer()


@commands.command()
def plan(dataset: DatasetName, preset: PresetName) -> None:
    """Say what one row of a paper needs: files that are here or missing, and the papers' numbers.

    Nothing runs, nothing is downloaded, and params.yaml need not name the preset.
    """
    from manymatch.reporting.published import published_results
    from manymatch.reporting.sections.published import PAPERS_NAME
    from manymatch.reporting.table import Cell, Column, Table
    from manymatch.reporting.terminal import show

    settings = project.preset(dataset, preset)
    alone = {"datasets": [dataset], "presets": [preset], "features": [settings.features]}
    others: dict[str, Any] = {"warm_starts": {}, "indexes": {}, "ensembles": [], "experiments": {}}
    params = project.params().model_copy(update=alone | others)
    training = settings.training
    batch = f"batches of {training.images_per_batch} images"
    say(f"{dataset}/{preset}: {settings.setting}, {training.epochs} epochs, {batch}")
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
    missing = list(needs(params))
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
    typer.echo(f"\ndvc repro evaluate@{dataset}-{preset}   # with both names in params.yaml")
