"""A trained model in use: embeddings, scores, explanations, saving, and clear errors."""

import os
import sys
import time
from collections import UserString
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import torch
from forked import forked
from PIL import Image
from scipy.optimize import linear_sum_assignment
from small_methods import CLIP_METHODS, NAMES

import manymatch
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.util.errors import CheckpointError, ConfigError, DataError, StorageError

METHODS = [name for name in NAMES if name not in CLIP_METHODS]
TEXTS = ["a red bird above a table", "two dogs", "xyzzy", "\U0001f600"]
ODD = [float("nan"), None, b"a dog", ["a dog"], 5, True, np.array("a dog"), {"a": 1}]
"""What tables of other programs have among their texts."""


@pytest.fixture(scope="module", params=METHODS)
def model(request, make_model):
    return manymatch.load(make_model(request.param), "cpu")


@pytest.fixture(scope="module")
def vsepp(make_model):
    return manymatch.load(str(make_model("vsepp")), "cpu")


def assert_equal(first, second):
    parts, others = first.parts(), second.parts()
    assert parts.keys() == others.keys()
    for name, value in parts.items():
        torch.testing.assert_close(value, others[name], atol=1e-6, rtol=1e-5)


def test_embeddings_and_scores_do_not_depend_on_the_other_items(model, pictures):
    pictures = pictures[:3]
    images, texts = model.encode_images(pictures, batch_size=2), model.encode_texts(TEXTS)
    single = [model.encode_images([path], progress=False) for path in pictures]
    assert_equal(images, Embeddings.join(single))
    assert_equal(texts, Embeddings.join([model.encode_texts([text]) for text in TEXTS]))
    for query in ("text", "image"):
        pairs = [
            [model.score(image, texts.rows(slice(j, j + 1)), query).item() for j in range(4)]
            for image in single
        ]
        scores = model.score(images, texts, query)
        torch.testing.assert_close(scores, torch.tensor(pairs), atol=1e-6, rtol=1e-5)


def test_an_explanation_adds_up(model, pictures):
    image, text = pictures[0], TEXTS[0]
    images, texts = model.encode_images([image]), model.encode_texts([text])
    explained = model.explain(image, text)
    assert explained.score == pytest.approx(model.score(images, texts).item(), abs=1e-6)

    cosines = np.array(explained.cosines)
    assert cosines.shape == (images.vectors.shape[1], texts.vectors.shape[1])
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    assert explained.matched == list(zip(rows.tolist(), columns.tolist(), strict=True))
    assert explained.words == text.split()
    assert explained.boxes is not None and len(explained.boxes) == 49
    for attention, inputs in (
        (explained.image_attention, explained.boxes),
        (explained.text_attention, explained.words),
    ):
        assert attention is None or {len(row) for row in attention} == {len(inputs)}
    if texts.entities is not None:
        assert len(explained.graph.objects) == len(explained.entity_scores)
    assert (explained.image_variance is None) == (images.log_variance is None)


def test_pictures_may_be_files_images_arrays_or_a_loader(vsepp, pictures, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    pictures = [pictures[3], tmp_path / "turned.png"]
    Image.open(pictures[0]).save(pictures[-1], exif=exif)
    expected = vsepp.encode_images(pictures)
    opened = [Image.open(path) for path in pictures]
    arrays = [np.asarray(opened[0]), np.rot90(opened[-1], -1)]
    for kind in (list(map(str, pictures)), opened, arrays, (path for path in pictures)):
        torch.testing.assert_close(vsepp.encode_images(kind).vectors, expected.vectors)
    for single in (pictures[0], str(pictures[0]), opened[0], arrays[0]):
        with pytest.raises(DataError, match="in a list"):
            vsepp.encode_images(single)
    with pytest.raises(DataError, match="in a list"):
        vsepp.encode_texts("two dogs")


def test_precision_lies_between_the_scores_of_the_validation_split(make_model, vsepp):
    curves = {"image": [[0.0], [0.5]], "text": [[0.2, 0.4], [0.1, 0.9]]}
    of = {"images": 100, "right": "own"}
    made = manymatch.load(make_model("vsepp", precision=curves, precision_of=of))
    assert made.precision([[-1.0, 0.25, 7.0]]).tolist() == [[0.1, pytest.approx(0.3), 0.9]]
    assert made.precision(0.3, query="image") == 0.5
    assert vsepp.precision(0.3) is None


def test_a_saved_model_is_the_same_and_half_of_its_bytes_give_nearly_the_same(model, tmp_path):
    model.save(tmp_path / "copy")
    model.save(tmp_path / "half", half=True)
    copy, half = (manymatch.load(tmp_path / name, "cpu") for name in ("copy", "half"))
    expected = model.encode_texts(TEXTS).vectors
    assert copy.encode_texts(TEXTS).vectors.equal(expected)
    torch.testing.assert_close(half.encode_texts(TEXTS).vectors, expected, atol=1e-3, rtol=1e-2)
    whole, halved = (one._folder / "model.safetensors" for one in (model, half))
    assert halved.stat().st_size < 0.6 * whole.stat().st_size
    assert half.identity != model.identity
    with pytest.raises(StorageError, match="exists"):
        model.save(tmp_path / "copy")
    card = (tmp_path / "copy" / "README.md").read_text()
    assert "scenes" in card and "lite0" in card and "Limits" in card


def test_a_model_is_pushed_to_the_hub_with_its_files_alone(vsepp, monkeypatch):
    calls = []

    class Hub:
        def create_repo(self, name, **options):
            calls.append((name, options))

        def upload_folder(self, **options):
            calls.append(options)
            return type("Commit", (), {"commit_url": "the address"})

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    assert vsepp.push_to_hub("me/model") == "the address"
    assert calls[0] == ("me/model", {"private": True, "exist_ok": True})
    uploaded = {path.name for path in Path(calls[1]["folder_path"]).iterdir()}
    assert uploaded == set(calls[1]["allow_patterns"])


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"backbone": "precomp"}, "others published"),
        ({"backbone": "objects"}, "boxes"),
        ({"preprocessing": "published, precomp", "weights_sha256": "unknown"}, "others"),
        ({"preprocessing": "none", "weights_sha256": "?"}, "preprocessing"),
    ],
)
def test_features_that_cannot_be_extracted_are_refused(make_model, pictures, facts, words):
    model = manymatch.load(make_model("vsepp", extraction=facts), "cpu")
    with pytest.raises((ConfigError, CheckpointError), match=words):
        model.encode_images(pictures)


@pytest.mark.parametrize("facts", [{"extraction": {}}, {"parser": None}])
def test_a_model_of_an_older_version_is_refused(make_model, facts):
    with pytest.raises(CheckpointError, match=r"model\.json"):
        manymatch.load(make_model("cora", **facts), "cpu")


def test_other_faults_are_errors_of_one_line(vsepp, pictures, tmp_path, monkeypatch):
    (tmp_path / "text.jpg").write_text("no picture")
    too_long = "word " * 20_000
    parts = Embeddings(torch.ones(1, 1, 4), log_variance="x")
    texts, load, opened = vsepp.encode_texts, manymatch.load, manymatch.Index.open
    numbers = [None, 5, b"a"]
    faults = {
        DataError: [
            *((texts, [odd]) for odd in ([], ["a dog", " "], [too_long], *numbers, "a")),
            *((texts, [odd]) for odd in ({"a": 1}, {"a"}, torch.ones(2))),
            *((texts, [["a dog", odd]]) for odd in ODD),
            *((vsepp.explain, [pictures[0], odd]) for odd in ODD),
            *((vsepp.encode_images, [odd]) for odd in ([], None, [np.zeros((4, 4), np.float32)])),
            *((vsepp.encode_images, [[tmp_path / f"{name}.jpg"]]) for name in ("text", "missing")),
            *((vsepp.encode_images, [[odd]]) for odd in (*numbers, [1], UserString("a.png"))),
            (vsepp.encode_images, [[np.zeros((0, 9, 3), np.uint8)]]),
            *((vsepp.precision, [odd]) for odd in (None, "x", [None], [[1], [1, 2]])),
            *((vsepp.score, [odd, odd]) for odd in (None, parts)),
            *((encode, [["a"]]) for encode in (vsepp.encode_items, vsepp.encode_captions)),
        ],
        ConfigError: [
            *((texts, [["a"], size]) for size in (0, -1, None, "9")),
            *((call, [odd]) for call in (vsepp.save, load, opened) for odd in numbers),
            *((load, [tmp_path, device]) for device in (None, "cuda:99")),
            *((opened, [tmp_path, *model]) for model in ((5,), (None, "x"))),
            (partial(load, regions=(1, 2, 3)), [tmp_path]),
            (manymatch.methods.method_class, [None]),
        ],
        CheckpointError: [(vsepp.push_to_hub, ["no name"]), (load, [tmp_path, "cpu"])],
        StorageError: [(load, ["a" * 5_000])],
    }
    for error, calls in faults.items():
        for call, arguments in calls:
            with pytest.raises(error) as raised:
                call(*arguments)
            assert "\n" not in str(raised.value)
    with pytest.raises(DataError, match=r"text 1: \w+ instead of a text"):
        vsepp.encode_texts(text for text in ("a dog", None))

    def offline(*_, **__):
        raise OSError("offline")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(CheckpointError, match="offline"):
        manymatch.load("nobody/nothing")


def test_two_threads_load_models_of_two_methods(make_model):
    """The package of the losses imports its own modules, and each method imports one of them."""
    folders = [make_model("vsepp"), make_model("maxmatch")]
    imported = Event()

    class Slow:
        def find_spec(self, name, *_):
            if name == "manymatch.losses.contrastive":  # the package's first module
                imported.set()
                time.sleep(1)  # the other thread asks for a later one meanwhile

    def load(number):
        if number:
            imported.wait(5)
        manymatch.load(folders[number], "cpu")

    def work():
        for name in [name for name in sys.modules if name.startswith("manymatch.losses")]:
            del sys.modules[name]
        for name in ("maxmatch", "vsepp", "shared.matching"):
            del sys.modules[f"manymatch.methods.{name}"]
        sys.meta_path.insert(0, Slow())
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(load, range(2)))

    assert os.waitpid(forked(work), 0)[1] == 0
