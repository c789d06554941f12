"""Options and arguments that several commands have, and the check of names."""

import re
from typing import Annotated, Any

import typer

from manymatch.config.names import checked_name

_SEPARATOR = re.compile(r"[+,]")


def check_name(parameter: typer.CallbackParam, value: str | None) -> str | None:
    """Refuse a name that could lead to another folder by a `ConfigError`, as the callback of every
    name."""
    return value if value is None else checked_name(value, parameter.opts[-1])


def check_names(
    parameter: typer.CallbackParam, value: str | list[str] | None
) -> str | list[str] | None:
    """Check every name in texts such as `cora+cora-1` and `vsepp,cora`, as `check_name` does."""
    for text in [value] if isinstance(value, str) else value or []:
        for name in _SEPARATOR.split(text):
            checked_name(name, parameter.opts[-1])
    return value


def new_name(help: str) -> Any:
    """The option `--as`, with which a command writes under another name."""
    return typer.Option("--as", callback=check_name, metavar="NAME", help=help)


def trained_models(help: str) -> Any:
    """The argument for trained models, several of which may be joined."""
    return typer.Argument(callback=check_names, metavar="PRESET", help=help)


DatasetName = Annotated[
    str,
    typer.Argument(
        callback=check_name,
        help="A data set: scenes, flickr8k, flickr30k, coco, cub, youcook2, msrvtt, lsmdc, "
        "conceptual_captions, or another name under 'sources' in params.yaml.",
    ),
]
PresetName = Annotated[
    str,
    typer.Argument(
        callback=check_name, metavar="PRESET", help="A preset: presets/DATASET/PRESET.yaml."
    ),
]
FeaturesName = Annotated[
    str,
    typer.Argument(
        callback=check_name,
        help="Features of params.yaml: lite0, objects, resnet50 and so on; pixels256 for pixels.",
    ),
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
Split = Annotated[
    str | None,
    typer.Option(callback=check_name, help="train, validation or test. Default: evaluation.split."),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, or one GPU: cuda:1.")]
MovedModel = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="The folder of the model, if the model was moved."),
]
