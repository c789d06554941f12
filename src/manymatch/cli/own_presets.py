"""The presets of a data set of one's own, which `init` adapts from those of photographs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from manymatch.cli.backbone import HEADER, Backbone
from manymatch.config.preset import Preset, read_preset
from manymatch.methods import METHODS
from manymatch.util.errors import ConfigError
from manymatch.util.files import write_text

TEMPLATES = "flickr8k"
"""The data set of photographs whose presets are adapted: 6,000 training pictures."""
BEST_ON_PHOTOGRAPHS = ("vsepp", "pcme", "dive", "vse_infinity", "pvse", "maxmatch")
"""The methods in the order of their rsum on Flickr8k (docs/results.md, flickr8k-study)."""
_SEEN = 96_000
"""Pictures that training sees, counted once an epoch, in Flickr8k's presets."""
_EPOCHS = 30
"""The maximum number of epochs of a small data set."""
_LARGE = 500_000
"""The maximum for `_SEEN` of a large data set, unless three epochs are more."""
_FEW_BATCHES = 50
"""Batches of an epoch below which a batch has 32 images."""
_FEW_CAPTIONS = 4_000
"""Training captions below which the vectors are half as long."""
FEATURES = "lite0"


def preset_names(presets: Path, wanted: Iterable[str]) -> list[str]:
    """Return the methods with a preset to adapt, then the presets among `wanted` with one.

    Raises:
        ConfigError: there are no presets to adapt.
    """
    known = {path.stem for path in (presets / TEMPLATES).glob("*.yaml")}
    if not known:
        raise ConfigError(f"{presets / TEMPLATES}: no presets to adapt. Restore them from git")
    return [name for name in dict.fromkeys((*METHODS, *wanted)) if name in known]


def kept_presets(folder: Path, names: Iterable[str], features: str | None) -> list[str]:
    """Return the presets of a data set that are there already, which `write_preset` keeps.

    Raises:
        ConfigError: a preset reads other features than the backbone's `features`.
    """
    kept = [name for name in names if (folder / f"{name}.yaml").exists()]
    for path in (folder / f"{name}.yaml" for name in kept if features):
        if (stated := read_preset(path).features) != features:
            raise ConfigError(
                f"{path}: reads the features '{stated}', and init changes no preset. Remove or move"
                f" the presets of other features than '{features}', or leave --features out"
            )
    return kept


def epochs(pictures: int) -> int:
    """Return the number of epochs for a number of training pictures."""
    if pictures * 10 > _LARGE:
        return max(3, _LARGE // pictures)
    return min(_EPOCHS, max(10, _SEEN // max(1, pictures)))


def write_preset(
    presets: Path,
    dataset: str,
    name: str,
    sizes: tuple[int, int],
    features: str = FEATURES,
    backbone: Backbone | None = None,
) -> Preset:
    """Write `presets/DATASET/NAME.yaml`, fitted to the numbers of training pictures and captions.

    An existing preset is kept. With a `backbone` the preset reads its `features`, and its text
    model if the method has one.
    """
    pictures, captions = sizes
    from manymatch.config.edit import edited

    source, target = presets / TEMPLATES / f"{name}.yaml", presets / dataset / f"{name}.yaml"
    if not target.exists():
        # A small validation split would end a training by chance.
        changes: dict[str, object] = {
            "training.epochs": epochs(pictures),
            "training.patience": None,
        }
        preset = read_preset(source)
        model = preset.model
        if pictures < _FEW_BATCHES * preset.training.images_per_batch:
            changes["training.images_per_batch"] = 32
        if captions < _FEW_CAPTIONS and "size" in model:
            changes["model.size"] = model["size"] // 2
        if "n_classes" in model:
            changes["model.n_classes"] = min(model["n_classes"], max(10, pictures // 6))
        if backbone:
            changes |= {"features": features} | backbone.texts(preset, narrow=True)
        header = (
            f"# {name} on {dataset}: {pictures:,} training pictures with {captions:,} captions.\n"
            f"#\n#   dvc repro evaluate@{dataset}-{name}\n#\n"
            f"# The command works if 'presets' in params.yaml lists {name}.\n"
            f"# Made by `manymatch init` from presets/{TEMPLATES}/{name}.yaml, which says what "
            f"differs from the paper.\n# Changed: {', '.join(changes)}.\n"
        )
        write_text(target, HEADER.sub(header, edited(source, changes)))
    return read_preset(target)
