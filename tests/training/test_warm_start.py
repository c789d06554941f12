"""A start from another run's model: complete, strict, by word, and resumed to the same bytes."""

import json
import shutil

import pytest
import torch
from killing import kill_during
from tiny_data import TinyData
from tiny_run import Run, preset

from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.preset import WarmStart
from manymatch.methods import build_method
from manymatch.model.checkpoint import load_model, save_model
from manymatch.training.warm_start import find_source
from manymatch.util.errors import CheckpointError, ConfigError

STEP = "manymatch.training.loop.Losses.forward"
WORDS = Vocabulary([*Vocabulary.SPECIAL, "dog", "cat", "red"])
OTHERS = Vocabulary([*Vocabulary.SPECIAL, "red", "boat", "dog", "blue"])


def build(vocabulary, seed=0, name="tiny", **model):
    torch.manual_seed(seed)
    return build_method(name, model, vocabulary=vocabulary, feature_width=24)


def starting(model="scenes/tiny", **settings):
    warm = WarmStart(model=model, **settings)
    return preset().model_copy(update={"warm_start": warm})


@pytest.fixture
def models(tmp_path):
    """A folder with the model `scenes/tiny`, which knows `WORDS`."""
    source = build(WORDS)
    source.register_buffer("steps", torch.tensor(7))
    save_model(tmp_path / "models" / "scenes" / "tiny", source, preset(), WORDS, 24)
    return tmp_path / "models"


def load(models, method, vocabulary=OTHERS, **settings):
    source = find_source(starting(**settings), models)
    source.load(method, vocabulary)
    return method


def test_everything_is_carried_over_and_words_by_word(models):
    source, fresh = build(WORDS), build(OTHERS, seed=1)
    result = load(models, build(OTHERS, seed=1)).state_dict()
    for name in ("image.weight", "image.bias", "temperature"):
        assert torch.equal(result[name], source.state_dict()[name])
    assert result["steps"] == 7
    theirs, ours = source.words.weight, result["words.weight"]
    for row, word in enumerate(OTHERS.words):
        known = word in WORDS.words
        expected = theirs[WORDS.words.index(word)] if known else fresh.words.weight[row]
        assert torch.equal(ours[row], expected), word


def test_named_parts_start_fresh_or_stay_behind(models):
    fresh = build(OTHERS, seed=1)
    settings = {"fresh": ("^image", "steps"), "unused": ("^image", "steps")}
    result = load(models, build(OTHERS, seed=1), **settings)
    assert torch.equal(result.image.weight, fresh.image.weight)
    assert result.steps == 0
    assert torch.equal(result.temperature, build(WORDS).temperature)


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ({"size": 8}, {}, r"another shape of 'image.bias \(16,\) for \(8,\)', 'image.weight "),
        ({}, {"rename": {"image": "picture"}}, "no counterpart .*'image.bias', 'image.weight'$"),
        ({}, {"rename": {"imag": "image"}}, "no parameter in the source for .*rename 'imag'$"),
        ({}, {"rename": {"image.bias": "image.weight"}}, "several parameters of the same new name"),
        ({}, {"fresh": ("^image",)}, "no counterpart .*'image.bias', 'image.weight'$"),
        ({}, {"unused": ("^image", "temp")}, "no value .*'image.bias', 'image.weight', 'temp"),
        ({}, {"fresh": ("nowhere",)}, "no parameter for warm_start.fresh 'nowhere'$"),
        ({}, {"unused": ("nowhere",)}, "no parameter for warm_start.unused 'nowhere'$"),
        ({}, {"model": "coco/tiny"}, "no trained model .*Run 'manymatch train coco tiny' first"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(models, model, settings, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        load(models, build(OTHERS, **model), **settings)
    assert "\n" not in str(caught.value)


CONTRASTIVE = {"size": 16, "word_size": 16, "objective": "info_nce"}
INTO_TINY = {
    "rename": {"image.encode.1": "image", "text.read.words": "words"},
    "fresh": ("temperature", "steps"),
    "unused": (r"^text\.read\.gru",),
}


@pytest.fixture(scope="module")
def contrastive(tmp_path_factory, tiny):
    """A folder with the model `tiny/vsepp`, trained with InfoNCE."""
    models = tmp_path_factory.mktemp("models")
    run = Run(tmp_path_factory.mktemp("contrastive"), tiny)
    run.train(preset(CONTRASTIVE, epochs=6).model_copy(update={"method": "vsepp"}))
    (models / "tiny").mkdir()
    run.model.rename(models / "tiny" / "vsepp")
    return models


@pytest.fixture
def elsewhere(tmp_path, tiny):
    """The same images as a dataset of its own, in which words have other numbers."""
    data = TinyData(tmp_path / "elsewhere")
    shutil.copytree(tiny.folder, data.folder)
    words = Vocabulary.load(tiny.vocabulary).words
    Vocabulary([*words[:3], *reversed(words[3:]), "unheard"]).save(data.vocabulary)
    return data


def first_loss(run):
    lines = (run.curves / "plots" / "metrics" / "train" / "texts.tsv").read_text().splitlines()
    return float(lines[1].split("\t")[1])


def test_another_method_on_another_dataset(contrastive, elsewhere, tmp_path):
    cold, warm = Run(tmp_path / "cold", elsewhere), Run(tmp_path / "warm", elsewhere)
    run_preset = starting("tiny/vsepp", **INTO_TINY)
    cold.train(preset())
    warm.train(run_preset, contrastive)
    assert first_loss(warm) < first_loss(cold)
    facts = json.loads((warm.model / "model.json").read_text())
    source = find_source(run_preset, contrastive)
    assert source is not None and facts["warm_start_sha256"] == source.sha256
    assert load_model(warm.model)[1] == run_preset


def test_a_killed_run_with_a_warm_start_ends_in_the_same_bytes(contrastive, new_run):
    run_preset = starting("tiny/vsepp", **INTO_TINY)
    whole, killed = new_run("whole"), new_run("killed")
    whole.train(run_preset, contrastive)
    kill_during(lambda: killed.train(run_preset, contrastive), STEP, 15)
    killed.train(run_preset, contrastive)
    assert killed.outputs() == whole.outputs()


def test_another_source_starts_anew(contrastive, new_run, capsys):
    run_preset, run = starting("tiny/vsepp", **INTO_TINY), new_run("run")
    kill_during(lambda: run.train(run_preset, contrastive), STEP, 15)  # the third epoch
    method, trained_by, vocabulary = load_model(contrastive / "tiny" / "vsepp")
    other = run.folder / "models" / "tiny" / "vsepp"
    with torch.no_grad():
        next(method.parameters()).mul_(0.5)
    save_model(other, method, trained_by, vocabulary, 24)
    run.train(run_preset, run.folder / "models")
    assert "training starts anew: it was made with another start" in capsys.readouterr().err


def test_a_model_is_not_its_own_start(contrastive, new_run):
    run = new_run("run")
    method, trained_by, vocabulary = load_model(contrastive / "tiny" / "vsepp")
    save_model(run.model, method, trained_by, vocabulary, 24)
    with pytest.raises(ConfigError, match=r"model would be the start and the result.*--as NAME"):
        run.train(starting(f"{run.folder.name}/{run.model.name}"), run.folder.parent)
