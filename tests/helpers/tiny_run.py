"""Trainings of the tiny method on the tiny data, here or (`python tiny_run.py`) in a process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import tiny_method  # noqa: F401  registers the method
from tiny_data import TinyData

from manymatch.config.preset import Preset, read_preset
from manymatch.training.train import train


def preset(model: dict[str, Any] | None = None, **training: Any) -> Preset:
    """Four epochs of six steps, with everything on that could spoil a resumed run."""
    settings = {
        "epochs": 4,
        "images_per_batch": 8,
        "captions_per_image": 2,
        "optimizer": {"lr": 0.02},
        "weight_average": 0.9,
        **training,
    }
    return Preset.model_validate(
        {
            "method": "tiny",
            "features": "grid",
            "model": model or {},
            "augmentation": {"word_drop": 0.2, "region_drop": 0.2},
            "training": settings,
        }
    )


class Run:
    """One training in a folder of its own."""

    def __init__(self, folder: Path, data: TinyData) -> None:
        self.folder, self.data = folder, data
        self.model, self.curves, self.checkpoints = (
            folder / name for name in ("model", "curves", "checkpoints")
        )

    def train(self, preset: Preset, models: Path = Path("models")) -> None:
        data = self.data
        places = (self.model, self.curves, self.checkpoints)
        train(preset, data.shards, data.vocabulary, *places, models)

    def outputs(self) -> dict[str, bytes]:
        """Every file of the model and of the curves."""
        paths = [path for root in (self.model, self.curves) for path in root.rglob("*")]
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(paths)
            if path.is_file()
        }


if __name__ == "__main__":
    Run(Path(sys.argv[1]), TinyData(Path(sys.argv[2]))).train(read_preset(Path(sys.argv[3])))
