"""The models of the package: they are small, and their cards' numbers and commands are right."""

import re
import shlex

import pytest
import torch
from typer.main import get_command

import manymatch
from manymatch.cli import project
from manymatch.cli.commands import app
from manymatch.config.preset import read_preset
from manymatch.datasets.scenes import Scenes
from manymatch.methods import check_model
from manymatch.model.checkpoint import WEIGHTS_HASH
from manymatch.model.facts import facts
from manymatch.model.places import packaged
from manymatch.util.files import sha256

MODELS = packaged()


def test_all_models_are_small_and_a_card_has_the_command_that_trains_its_model(root, monkeypatch):
    files = [file for folder in MODELS.values() for file in folder.iterdir()]
    assert len(MODELS) >= 2 and sum(file.stat().st_size for file in files) < 12e6
    monkeypatch.chdir(root)
    for name in MODELS:
        check_command(name)


def check_command(name):
    folder = MODELS[name]
    card = (folder / "README.md").read_text("utf-8")
    (line,) = re.findall(r"^    manymatch (train .+)$", card, re.M)
    training, evaluation = line.split(" && manymatch ")
    commands = get_command(app).commands
    given = []
    for text in (training, evaluation):
        command, *arguments = shlex.split(text)
        given.append(commands[command].make_context(command, arguments).params)
    trained, evaluated = given
    model = trained["name"] or trained["preset"]
    assert (evaluated["dataset"], evaluated["preset"]) == (trained["dataset"], model)
    assert name == f"{trained['dataset'].removesuffix('_large')}-{model}"
    today = project.preset(trained["dataset"], trained["preset"], trained["overrides"])
    stored = read_preset(folder / "preset.json")
    whole = [
        one.model_copy(update={"model": check_model(one.method, one.model).model_dump()})
        for one in (today, stored)
    ]
    assert whole[0] == whole[1]
    weights = sha256(folder / "model.safetensors")
    assert weights in card and facts(folder)[WEIGHTS_HASH] == weights


@pytest.mark.slow
def test_a_card_has_its_models_numbers(tmp_path):
    """On `scenes`, which needs no data."""
    name = "scenes-vse_infinity"
    settings = {"train": 1, "validation": 1, "test": 300, "twins": 0.4}
    source, model = Scenes(), manymatch.load(name, "cpu")
    source.download(source.settings_model.model_validate(settings), tmp_path)
    captions = [caption for caption in source.captions(tmp_path) if caption.split == "test"]
    files = list(dict.fromkeys(caption.file for caption in captions))
    images = model.encode_images(tmp_path / file for file in files)
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
