"""The models of the package: they are small, and their cards' numbers are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import manymatch
from manymatch.datasets.base import Caption, Dataset
from manymatch.datasets.flickr8k import Flickr8k, Flickr8kSettings
from manymatch.datasets.scenes import Scenes, ScenesSettings
from manymatch.model.places import packaged

MODELS = packaged()


def test_all_models_together_are_small() -> None:
    files = [file for folder in MODELS.values() for file in folder.iterdir()]
    assert len(MODELS) >= 2 and sum(file.stat().st_size for file in files) < 12e6


def split(name: str, request: pytest.FixtureRequest, raw: Path) -> list[Caption]:
    """Make the data set that a model was trained on, and return the captions of its test split."""
    dataset: Dataset
    if name.startswith("flickr8k"):
        given = request.getfixturevalue("real_data") / "flickr8k"
        dataset, settings = (
            Flickr8k(),
            Flickr8kSettings.model_validate(
                {"folder": str(given), "images": str(given / "images_224.tar")}
            ),
        )
        dataset.download(settings, raw)
    else:
        dataset = Scenes()
        dataset.download(ScenesSettings(train=1, validation=1, test=300, twins=0.4), raw)
    return [caption for caption in dataset.captions(raw) if caption.split == "test"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_card_has_its_models_numbers(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    captions = split(name, request, tmp_path)
    files = list(dict.fromkeys(caption.file for caption in captions))
    model = manymatch.load(name, "cpu")
    images = model.encode_images([tmp_path / file for file in files], progress=False)
    texts = model.encode_texts([caption.caption for caption in captions])
    true = torch.tensor([[caption.file == file for caption in captions] for file in files])
    by_image, by_text = (model.score(images, texts, query=side) for side in ("image", "text"))
    measured = [
        100 * answers.gather(1, scores.topk(depth).indices).any(1).double().mean().item()
        for scores, answers in ((by_image, true), (by_text.T, true.T))
        for depth in (1, 5, 10)
    ]
    card = (MODELS[name] / "README.md").read_text("utf-8")
    written = [float(number) for number in re.findall(r"R@\d+ (\d+\.\d)", card)]
    assert written == pytest.approx(measured, abs=0.25)
