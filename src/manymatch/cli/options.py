"""Options and arguments that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

DatasetName = Annotated[
    str,
    typer.Argument(
        help="A dataset: scenes, flickr8k, flickr30k, coco, cub, youcook2, msrvtt, lsmdc, "
        "conceptual_captions."
    ),
]
PresetName = Annotated[
    str, typer.Argument(metavar="PRESET", help="A preset: presets/DATASET/PRESET.yaml.")
]
FeaturesName = Annotated[
    str, typer.Argument(help="A backbone: lite0, objects, resnet50 ...; pixels256 for none.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override the preset, e.g. --set training.epochs=2."
    ),
]
PartName = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="K/N",
        help="Make only part K of N in data/parts; the stage joins all parts.",
    ),
]
Split = Annotated[str | None, typer.Option(help="train, validation or test.")]
