"""The models of the package: they are small, their cards' numbers are right, and the demo runs."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from os import environ
from pathlib import Path

import httpx
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


@pytest.mark.slow
def test_the_demo_answers_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "manymatch", "demo", "--port", "0", "--no-browser"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**environ, "TMPDIR": str(tmp_path)}
    ) as process:
        assert process.stderr
        said = (re.search(r"http://\S+", line) for line in process.stderr)
        address = next(found[0] for found in said if found)
        with httpx.Client(base_url=address, timeout=60) as client:
            while client.get("/health").json()["status"] == "loading":
                time.sleep(0.1)
            answer = client.get("/search", params={"q": "a red ball", "k": 5}).json()
            assert len(answer["results"]) == 5
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert not list(tmp_path.glob("manymatch-demo-*"))
