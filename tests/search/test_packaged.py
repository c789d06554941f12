"""The models of the package: they are small, and their cards' numbers and commands are right."""

import re
import shlex
from functools import cache

import numpy as np
import pytest
import torch
from small_methods import train
from typer.main import get_command

import manymatch
from manymatch.batch.collate import collate, whole_item
from manymatch.batch.numbering import NumberedCaption, NumberedGraph
from manymatch.cli import project
from manymatch.cli.commands import app
from manymatch.config.preset import read_preset
from manymatch.datasets.flickr8k import Flickr8k
from manymatch.datasets.scenes import Scenes
from manymatch.features.lite import WIDTH
from manymatch.methods import check_model
from manymatch.model.checkpoint import WEIGHTS_HASH, load_model, save_model
from manymatch.model.facts import facts
from manymatch.model.places import packaged
from manymatch.util.files import sha256

MODELS = packaged()
DATASETS = {"flickr8k": Flickr8k, "scenes": Scenes}


def test_all_models_together_are_small():
    files = [file for folder in MODELS.values() for file in folder.iterdir()]
    assert len(MODELS) >= 2 and sum(file.stat().st_size for file in files) < 12e6


@pytest.mark.parametrize("name", MODELS)
def test_a_card_has_the_command_that_trains_its_model(name, root, monkeypatch):
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
    monkeypatch.chdir(root)
    today = project.preset(trained["dataset"], trained["preset"], trained["overrides"])
    stored = read_preset(folder / "preset.json")
    whole = [
        one.model_copy(update={"model": check_model(one.method, one.model).model_dump()})
        for one in (today, stored)
    ]
    assert whole[0] == whole[1]
    weights = sha256(folder / "model.safetensors")
    assert weights in card and facts(folder)[WEIGHTS_HASH] == weights


@pytest.mark.parametrize("name", MODELS)
def test_packaging_in_float16_changes_no_embedding_by_a_thousandth(
    name, make_model, pictures, extraction, tmp_path
):
    """The float32 weights of the packaged models are not kept: another training of the same
    settings is saved as the cards say."""
    preset = read_preset(MODELS[name] / "preset.json")
    method, stored, words = load_model(make_model(preset.method, settings=preset.model))
    random = np.random.default_rng(0)
    captions = [
        NumberedCaption(
            "", tuple(random.integers(3, len(words), 6).tolist()), NumberedGraph([], [], [], [])
        )
        for _ in range(4)
    ]
    features = random.random((4, 49, WIDTH), np.float32)
    train(
        method.train(),
        collate(
            [
                whole_item("", one, captions=[text])
                for one, text in zip(features, captions, strict=True)
            ]
        ),
    )
    known = {"dataset": "scenes", "extraction": extraction, "parser": "en_core_web_sm"}
    save_model(tmp_path / "trained", method.eval(), stored, words, WIDTH, **known)
    trained = manymatch.load(tmp_path / "trained", "cpu")
    trained.save(tmp_path / "packaged", half=True)
    halved = manymatch.load(tmp_path / "packaged", "cpu")
    texts = ["a red bird above a table", "two dogs", "a dog beside the red boat"]
    for whole, half in (
        [one.encode_images(pictures, progress=False) for one in (trained, halved)],
        [one.encode_texts(texts) for one in (trained, halved)],
    ):
        torch.testing.assert_close(half.vectors, whole.vectors, atol=1e-3, rtol=0)
        assert not half.vectors.equal(whole.vectors)


@pytest.fixture(scope="module")
def split_of(request, tmp_path_factory):
    """The test split of the data set that a model was trained on. Data and image features are made
    once."""

    @cache
    def made(dataset):
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
def test_a_card_has_its_models_numbers(name, split_of):
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
