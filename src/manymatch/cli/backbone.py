"""The command `backbone`: a preset of a method with a backbone of today, fine-tuned or frozen."""

import re
from typing import Annotated, Any

import typer
from pydantic import Field, field_validator

from manymatch.cli import project
from manymatch.cli.options import DatasetName, check_name
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.config.names import preset_path
from manymatch.config.params import Extraction, Params
from manymatch.config.preset import Preset, read_preset
from manymatch.config.strict import Strict, parse, read_yaml, validate
from manymatch.datasets import DATASETS
from manymatch.methods import check_model, method_class
from manymatch.util.errors import ConfigError, nearest
from manymatch.util.files import write_text, write_through
from manymatch.util.progress import say

commands = typer.Typer()

BACKBONES = LAYOUT.presets / "backbones.yaml"
HEADER = re.compile(r"\A(?:#.*\n)+")
"""The comment at the start of a preset."""
_PIXELS, _TEXTS = r"(^|\.)backbone\.", r"\.(hf|bert)\.network\."
"""The parameters of the network of pictures, and of the text model, of every method. CORA's
prefixes are new: they learn at the full rate."""
_ENCODERS = ("hf", "bert")
_SOURCE = ("kind", "model", "size", "geometry", "output", "grid", "layer")
"""The keys of an extraction that say what is extracted."""


class Backbone(Strict):
    """A backbone of `presets/backbones.yaml`, where the keys are described."""

    model: Annotated[str, Field(min_length=1)]
    size: int | None = None
    geometry: str | None = None
    image: dict[str, Any] = Field(default_factory=dict)
    text: dict[str, Any]
    image_rate: dict[str, Any]
    text_rate: dict[str, Any]
    training: dict[str, Any]

    @field_validator("text")
    @classmethod
    def _has_encoder(cls, text: dict[str, Any]) -> dict[str, Any]:
        kind = text.get("encoder")
        if kind not in _ENCODERS or not isinstance(text.get(kind), dict):
            raise ValueError(
                "expected 'encoder' (hf or bert) and the encoder's settings under the same name, "
                "as in {encoder: hf, hf: {model: NAME}}"
            )
        return text

    @property
    def source(self) -> dict[str, Any]:
        """The keys that name the model and its pixels."""
        keys = {"model": self.model, "size": self.size, "geometry": self.geometry}
        return {key: value for key, value in keys.items() if value is not None}

    def fine_tuned(self, preset: Preset, features: str) -> dict[str, Any]:
        """What changes in a preset whose images are read by the backbone, from the pixels of the
        extraction `features`: dotted keys and values. The method is not `pretrained`."""
        network = self.source | self.image
        changes: dict[str, Any] = {"features": features, "setting": "small-scale"}
        if "image" in _fields(preset):
            image = preset.model.get("image", {})
            kept = {key: value for key, value in image.items() if key not in ("cnn", "backbone")}
            changes["model.image"] = kept | {"backbone": network}
        else:
            if "cnn" in preset.model:
                changes["model.cnn"] = None
            changes["model.backbone"] = network
        texts = self.texts(preset)
        rates = [{"match": _PIXELS, **self.image_rate}]
        if texts:
            rates.append({"match": _TEXTS, **self.text_rate})
        if preset.augmentation.region_drop:
            changes["augmentation.region_drop"] = 0.0
        training = self.training | {"parameter_groups": rates}
        return changes | texts | {f"training.{key}": value for key, value in training.items()}

    def texts(self, preset: Preset, narrow: bool = False) -> dict[str, Any]:
        """What changes in a preset whose captions are read by the backbone's text model; nothing
        where a method has no text model (VSE++). With `narrow`, few parameters of the text model
        learn, by LoRA or prefixes."""
        kind = self.text["encoder"]
        few = {"tuning": "prefix"} if kind == "bert" else {"train": "lora"}
        if "text" in _fields(preset):
            settings = self.text[kind] | (few if narrow else {})
            return {"model.text": self.text | {kind: settings}}
        if "concept_encoder" not in _fields(preset):
            return {}
        # CORA tunes prefixes of a BERT in any case.
        settings = self.text[kind] | (few if narrow or kind == "bert" else {})
        return {"model.concept_encoder": kind, f"model.{kind}": settings}


def _fields(preset: Preset) -> dict[str, Any]:
    return method_class(preset.method).Settings.model_fields


def read_backbone(name: str) -> Backbone:
    """The backbone `name` of `presets/backbones.yaml`.

    Raises:
        ConfigError: there is no such backbone, or a key is wrong.
    """
    if name not in (known := read_yaml(BACKBONES)):
        raise ConfigError(f"{BACKBONES}: no backbone '{name}'{nearest(name, known)}")
    if "." in name:  # the name becomes part of dotted keys
        raise ConfigError(f"{BACKBONES}: '{name}' has a dot. Rename the backbone, as with a hyphen")
    return validate(Backbone, known[name], f"{BACKBONES}: {name}")


def add_extraction(params: Params, name: str, extraction: dict[str, Any]) -> dict[str, Any]:
    """What changes in params.yaml for the features `name`.

    Raises:
        ConfigError: another extraction has the name.
    """
    changes: dict[str, Any] = {}
    if (stated := params.extraction.get(name)) is None:
        changes[f"extraction.{name}"] = extraction
    else:
        wanted = validate(Extraction, extraction, f"{BACKBONES}: {name}")
        differing = [key for key in _SOURCE if getattr(stated, key) != getattr(wanted, key)]
        if differing:
            key = differing[0]
            raise ConfigError(
                f"{LAYOUT.params}: extraction.{name}.{key} is {getattr(stated, key)}, but the "
                f"backbone needs {getattr(wanted, key)}. Rename that extraction or the backbone"
            )
    if name not in params.features:
        changes["features"] = [*params.features, name]
    return changes


@commands.command()
@writes(LAYOUT.params)
def backbone(
    dataset: DatasetName,
    preset: Annotated[
        str,
        typer.Argument(metavar="[DATASET/]PRESET", help="The preset to start from, of any method."),
    ],
    name: Annotated[
        str,
        typer.Argument(
            callback=check_name, metavar="BACKBONE", help="A backbone of presets/backbones.yaml."
        ),
    ],
) -> None:
    """Write a preset whose images and captions are read by a fine-tuned backbone.

    The preset is presets/DATASET/METHOD_BACKBONE.yaml; the pixels go to extraction and features of
    params.yaml. A preset of another data set may be the start: coco/msrm_resnet152_bigru.
    """
    from manymatch.config.edit import edited

    params, network = project.params(), read_backbone(name)
    known = {*DATASETS, *params.sources}
    if dataset not in known:
        raise ConfigError(f"no data set '{dataset}'{nearest(dataset, known)}")
    folder, _, stem = preset.rpartition("/")
    source = preset_path(LAYOUT.presets, folder or dataset, stem)
    start = read_preset(source)
    features = f"pixels-{name}"
    added = add_extraction(params, features, {"kind": "pixels", **network.source})
    changes = network.fine_tuned(start, features)
    target = LAYOUT.presets / dataset / f"{start.method}_{name}.yaml"
    if target.exists():
        raise ConfigError(f"{target}: exists already. Remove the file, or change it by hand")
    header = (
        f"# {start.method} with the backbone {name} on {dataset}. Not yet run.\n"
        f"#\n#   dvc repro evaluate@{dataset}-{target.stem}\n#\n"
        f"# The command works if 'presets' in params.yaml lists {target.stem}.\n"
        f"# Made by `manymatch backbone` from {source}.\n"
        f"# What papers say about the fine-tuning, and what is a choice: {BACKBONES}.\n"
    )
    text = HEADER.sub("", edited(source, changes))
    written = validate(Preset, parse(text), str(target))
    check_model(written.method, written.model)  # a method may read no pixels
    write_text(target, header + text)
    write_through(LAYOUT.params, edited(LAYOUT.params, added))
    say(f"{target}: written. {LAYOUT.params}: {', '.join(added) or 'unchanged'}")
