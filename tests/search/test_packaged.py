"""The models of the package: they are small, and their cards' numbers are right."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pytest
import torch

import manymatch
from manymatch.batch.collate import ImageItem
from manymatch.datasets.base import Caption
from manymatch.datasets.flickr8k import Flickr8k
from manymatch.datasets.scenes import Scenes
from manymatch.model.places import packaged

MODELS = packaged()
DATASETS = {"flickr8k": Flickr8k, "scenes": Scenes}
Split = tuple[list[Caption], list[str], dict[str, str], list[ImageItem]]
"""The captions, the files of the pictures, how their image features are extracted, and these."""


def test_all_models_together_are_small() -> None:
    files = [file for folder in MODELS.values() for file in folder.iterdir()]
    assert len(MODELS) >= 2 and sum(file.stat().st_size for file in files) < 12e6


@pytest.fixture(scope="module")
def split_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Split]:
    """The test split of the data set that a model was trained on. Data and image features are made
    once."""

    @cache
    def made(dataset: str) -> Split:
        raw, source = tmp_path_factory.mktemp("raw"), DATASETS[dataset]()
        settings = {"train": 1, "validation": 1, "test": 300, "twins": 0.4}
        if dataset == "flickr8k":
            given = request.getfixturevalue("real_data") / dataset
            settings = {"folder": str(given), "images": str(given / "images_224.tar")}
        source.download(source.settings_model.model_validate(settings), raw)
        captions = [caption for caption in source.captions(raw) if caption.split == "test"]
        files = list(dict.fromkeys(caption.file for caption in captions))
        model = manymatch.load(next(name for name in MODELS if name.startswith(dataset)), "cpu")
        pictures = model._pictures
        return captions, files, pictures.extraction, [*pictures.items(raw / file for file in files)]

    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_card_has_its_models_numbers(name: str, split_of: Callable[[str], Split]) -> None:
    captions, files, extraction, items = split_of(name.partition("-")[0])
    model = manymatch.load(name, "cpu")
    assert model._pictures.extraction == extraction
    images = model.encode_items(items)
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
