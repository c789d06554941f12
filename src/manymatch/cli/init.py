"""The command `init`: the settings of a data set of one's own, from pictures and captions."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manymatch.cli import project
from manymatch.cli.backbone import add_extraction, read_backbone
from manymatch.cli.options import check_name
from manymatch.cli.outputs import writes
from manymatch.cli.own_presets import (
    BEST_ON_PHOTOGRAPHS,
    FEATURES,
    best_of,
    epochs,
    kept_presets,
    preset_names,
    write_preset,
)
from manymatch.cli.project import LAYOUT
from manymatch.config.params import Params
from manymatch.datasets import DATASETS, check_settings
from manymatch.datasets.base import SPLITS
from manymatch.util.errors import ConfigError
from manymatch.util.files import write_through
from manymatch.util.progress import say

if TYPE_CHECKING:
    from manymatch.datasets.own.collect import Collection

commands = typer.Typer()

_SECONDS = {"features": 0.03, "scene graphs": 0.002, "shards": 0.004, "an epoch of a model": 0.01}
"""Seconds of one core for each picture, caption, picture, and training picture."""


@commands.command()
@writes(LAYOUT.params)
def init(
    name: Annotated[str, typer.Argument(callback=check_name, help="A new name, such as birds.")],
    images: Annotated[Path, typer.Option(help="Folder of pictures, tars or Parquet tables.")],
    captions: Annotated[
        Path | None, typer.Option(help="File or folder of captions. Default: --images.")
    ] = None,
    file: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of the pictures' files.")
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column of captions; repeatable.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="table, beside, coco, karpathy or tars. Default: by content."
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Encoding of a table, such as cp1252. Default: UTF-8, or UTF-16 by its mark."
        ),
    ] = None,
    language: Annotated[str, typer.Option(help="The captions' language, such as en or de.")] = "en",
    allow: Annotated[
        float, typer.Option(help="The largest share of unusable pictures or captions.")
    ] = 0.01,
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of splits, or a list train.txt; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the splits that are not given.")] = 0,
    features: Annotated[
        str,
        typer.Option(callback=check_name, help="lite0, or a backbone of presets/backbones.yaml."),
    ] = FEATURES,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Also train three methods briefly, and say which is best on the validation split.",
        ),
    ] = False,
) -> None:
    """Check your own pictures and captions, and write their settings and presets.

    All files are read once as a check. Only --compare trains models. The source goes to
    params.yaml, and a preset of each method to presets/NAME. Unusable pictures and captions are
    listed.
    """
    from manymatch.config.edit import edited
    from manymatch.datasets.own.collect import collect
    from manymatch.datasets.own.forms import OwnSettings

    params = project.params()
    if name in DATASETS or "." in name or name == "all":
        raise ConfigError(
            f"{name}: a built-in data set has this name, or the name is 'all' or has a dot. "
            "Choose another name"
        )
    if (kind := params.sources.get(name, {}).get("kind", "own")) != "own":
        raise ConfigError(
            f"{name}: sources.{name} in params.yaml is a data set of the kind '{kind}', which init "
            "would replace. Choose another name, or remove the entry"
        )
    params.check_names_with(name, features)
    model = None if features == FEATURES else read_backbone(features)
    added = add_extraction(params, features, {"kind": "hf", **model.source}) if model else {}
    names = preset_names(LAYOUT.presets, params.presets)
    kept = kept_presets(LAYOUT.presets / name, names, features if model else None)
    given: dict[str, Any] = {
        "images": str(images),
        "captions": str(captions) if captions else None,
        "format": form,
        "file": file,
        "text": text,
        "encoding": encoding,
        "split": split,
        "seed": seed or None,
        "allow": allow if allow != OwnSettings.model_fields["allow"].default else None,
        "parser": _parser(language),
    }
    source = {"kind": "own"} | {key: value for key, value in given.items() if value is not None}
    settings = check_settings(name, source)
    assert isinstance(settings, OwnSettings)
    collection = collect(settings, None, Path("data", f"{name}.left_out.tsv"))
    source |= {"format": collection.form.format, "content": collection.content()}
    sizes = _sizes(collection)
    splits = ", ".join(f"{sizes[split]:,} {split}" for split in SPLITS)
    say(
        f"{name}: form {collection.form.format}, {sizes['pictures']:,} pictures ({splits}) with "
        f"{sizes['captions']:,} captions"
    )
    for note in collection.notes:
        say(f"{name}: {note}")
    train, train_captions = sizes["train"], sizes["train captions"]
    for preset in names:
        write_preset(LAYOUT.presets, name, preset, (train, train_captions), features, model)
    if made := [one for one in names if one not in kept]:
        say(f"presets/{name}: {', '.join(made)}")
    if kept:
        say(f"presets/{name}: kept as they are: {', '.join(kept)}")
    for preset in params.presets:
        if not (LAYOUT.presets / name / f"{preset}.yaml").exists():
            say(
                f"presets/{name}/{preset}.yaml is missing. Write the file, or remove {preset} from "
                "'presets' in params.yaml"
            )
    changes: dict[str, Any] = {f"sources.{name}": source} | added
    for key, entry in (("datasets", name), ("features", features)):
        if entry not in getattr(params, key):
            changes[key] = [*getattr(params, key), entry]
    write_through(LAYOUT.params, edited(LAYOUT.params, changes))
    say(f"{LAYOUT.params}: {', '.join(changes)}")
    first = None
    if compare:
        candidates = [one for one in BEST_ON_PHOTOGRAPHS if one in names]
        first = best_of(name, candidates, epochs(train), features)
    _say_what_next(name, params, names, collection, sizes, first)


def _parser(language: str) -> str | None:
    """Return the installed spaCy model of a language; None for English, whose model is set."""
    if language == "en":
        return None
    if not re.fullmatch("[a-z]{2,3}", language):
        raise ConfigError(f"--language {language}: not a language code. Write one such as en or de")
    import spacy

    from manymatch.scene_graphs.parser import WITHOUT

    kinds = [
        f"{language}_core_{kind}_{size}" for kind in ("news", "web") for size in ("sm", "md", "lg")
    ]
    installed = next(filter(spacy.util.is_package, kinds), None)
    if installed is None:
        say(
            f"--language {language}: no spaCy model is installed. A caption is then one object of "
            "its graph, which only CORA reads. For graphs choose a model at "
            "https://spacy.io/models, run `python -m spacy download MODEL` and this command again"
        )
    return installed or WITHOUT


def _sizes(collection: "Collection") -> Counter[str]:
    """Return the numbers of pictures and captions, of all and of each split."""
    sizes: Counter[str] = Counter()
    for picture in collection.pictures.values():
        for part in ("", f"{picture.split} "):
            sizes[f"{part}captions"] += len(picture.captions)
            sizes[part.strip() or "pictures"] += 1
    return sizes


def _say_what_next(
    name: str,
    params: Params,
    presets: Sequence[str],
    collection: "Collection",
    sizes: Counter[str],
    best: str | None,
) -> None:
    """Say how long the stages take, and the commands that train and search. Without a preset that
    a comparison found to be the `best`, it is what is best on photographs."""
    cores = os.cpu_count() or 1
    counts = (sizes["pictures"], sizes["captions"], sizes["pictures"])
    data = sum(a * b for a, b in zip(counts, _SECONDS.values(), strict=False)) / cores
    model = sizes["train"] * epochs(sizes["train"]) * _SECONDS["an epoch of a model"] / cores
    trained, others = params.presets, [one for one in presets if one not in params.presets]
    # A comparison has made features, scene graphs and shards.
    before = "" if best else f"features, scene graphs and shards take about {_time(data)}, and "
    say(
        f"{name}: {before}the training of {', '.join(trained)} takes about "
        f"{_time(model * len(trained))} on these {cores} cores"
    )
    if others:
        say(
            f"{len(others)} more presets are ready: {', '.join(others)}. Add them to 'presets' in "
            f"{LAYOUT.params} to train them"
        )
    datasets = ", ".join(dict.fromkeys((*params.datasets, name)))
    say(f"train the models of all 'presets' on {datasets}: dvc repro")

    known = [one for one in (*BEST_ON_PHOTOGRAPHS, *trained, *presets) if one in presets]
    method = best or next((preset for preset in known if preset in trained), known[0])
    why = "the best of the comparison" if best else "a good first choice for photographs"
    form, raw = collection.form, LAYOUT.raw(name) / "images"
    folder = shlex.quote(str(form.folder if collection.keeps_pictures else raw))
    if method not in trained:
        say(f"add {method} to 'presets' in {LAYOUT.params}")
    say(f"train one model and search with it ({method} is {why}):")
    say(f"  dvc repro evaluate@{name}-{method}")
    say(f"  manymatch index {folder} --model models/{name}/{method} --to data/indexes/{name}")
    say(f"  manymatch search data/indexes/{name} 'a red bird'")


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{max(1, seconds):.0f} seconds"
