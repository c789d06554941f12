"""SwAMP's model of clips: its captions, its contrastive loss, and the start from HowTo100M's."""

import math

import pytest
import torch
from made_clips import write_word2vec
from small_methods import WIDTH, encode

from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.preset import Preset, WarmStart
from manymatch.losses.triplets import triplet
from manymatch.methods import build_method, vocabulary_of
from manymatch.methods.swamp_video import GatedEmbedding, WordMaximum
from manymatch.model.howto100m import import_howto100m
from manymatch.networks.encoders.word_vectors import WordTable, read_word2vec
from manymatch.training.warm_start import find_source
from manymatch.util.errors import DataError, ManyMatchError


def test_a_caption_is_the_maximum_over_its_known_words_and_zeros():
    """As HowTo100M's code, which fills each caption with zeros to 20 words."""
    torch.manual_seed(0)
    table = WordTable(6, 3, padding_idx=0)
    table.weight.data[[1, 4]] = 0.0
    encoder = WordMaximum(table, 5)
    captions = [[2, 4, 3], [4, 1, 4, 4], [5], [2, 3, 5, 2]]
    words = torch.tensor([caption + [0] * (4 - len(caption)) for caption in captions])
    for caption, encoded in zip(captions, encoder(words), strict=True):
        filled = torch.zeros(20, 3)
        filled[: len(caption)] = table.weight[caption]
        expected = encoder.linear(filled).relu().amax(0)
        torch.testing.assert_close(encoded, expected)
        torch.testing.assert_close(encoder(torch.tensor([caption]))[0], expected)
    bias = encoder.linear.bias.relu()
    torch.testing.assert_close(encoder(words[1:2])[0], bias, msg="none is known")
    assert not torch.equal(encoder.linear(table.weight[5]).relu(), encoder(words[2:3])[0])


def naive(unit, row):
    """One vector, a number at a time."""
    weights = {name: value.tolist() for name, value in unit.state_dict().items()}
    project = zip(weights["project.weight"], weights["project.bias"], strict=True)
    y = [sum(w * x for w, x in zip(line, row, strict=True)) + b for line, b in project]
    gated = []
    for value, line, b in zip(y, weights["gate.weight"], weights["gate.bias"], strict=True):
        inner = sum(w * x for w, x in zip(line, y, strict=True)) + b
        gated.append(value / (1 + math.exp(-inner)))
    length = math.sqrt(sum(value**2 for value in gated))
    return [value / length for value in gated]


@pytest.fixture
def unit():
    torch.manual_seed(0)
    return GatedEmbedding(5, 4).double()


@pytest.mark.parametrize("count", [1, 3])
def test_values_are_those_of_the_formula(unit, count):
    vectors = torch.randn(count, 5, dtype=torch.float64)
    expected = torch.tensor([naive(unit, row) for row in vectors.tolist()], dtype=torch.float64)
    torch.testing.assert_close(unit(vectors), expected, rtol=0, atol=1e-9)
    assert unit(vectors[:0]).shape == (0, 4)


def test_gradients_are_those_of_differences(unit):
    vectors = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    inputs = (vectors, *unit.parameters())
    assert torch.autograd.gradcheck(lambda x, *_: unit(x), inputs)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_contrastive_loss_of_a_pair_is_the_mean_of_all_wrong_ones(build, make_batch, reduction):
    settings = {"weight": 0.0, "margin": 0.3, "contrastive": reduction}
    method, batch = build("swamp_video", settings), make_batch([0, 1, 2])
    images, texts = encode(method, batch)
    scores, image_index = method.score(images, texts).tolist(), batch.image_index.tolist()
    n, m = len(scores), len(image_index)
    assert m > n
    total = 0.0
    for j, image in enumerate(image_index):
        positive = scores[image][j]
        texts_of_others = [scores[image][k] for k in range(m) if image_index[k] != image]
        others = [scores[k][j] for k in range(n) if k != image]
        for rivals in (texts_of_others, others):
            total += sum(max(0.0, 0.3 + rival - positive) for rival in rivals) / len(rivals)
    result = method.loss(images, texts, batch)
    assert result.keys() == {"triplet"}
    expected = total if reduction == "sum" else total / m
    assert float(result["triplet"].detach()) == pytest.approx(expected, rel=1e-5)


def test_the_mean_of_the_contrastive_loss_is_howto100ms():
    """Its released code, whose diagonal adds the margin twice."""
    scores = torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ours = triplet(scores, torch.arange(6), 0.1, "mean")
    right = scores.diagonal()
    released = (0.1 + scores - right[:, None]).relu() + (0.1 + scores - right[None]).relu()
    torch.testing.assert_close(5 / 6 * ours + 2 * 0.1 / 6, released.mean())


def test_words_outside_the_training_captions_keep_vectors_that_are_not_learned(tmp_path):
    file, words = tmp_path / "words.bin", Vocabulary.from_captions(["a dog"])
    write_word2vec(file, ["dog", "wolf"], WORD_SIZE)
    settings = {"size": SIZE, "word_size": WORD_SIZE, "word2vec_file": str(file)}
    known = vocabulary_of("swamp_video", settings, words, ["a wolf", "a wug"])
    method = build_method("swamp_video", settings, vocabulary=known, feature_width=WIDTH).eval()
    wolf, wug = (method.text.words.weight[row] for row in known.ids(["wolf", "wug"]))
    assert (wolf == torch.from_numpy(read_word2vec(file, ["wolf"], WORD_SIZE)["wolf"])).all()
    assert not wug.any()
    learned = settings | {"word_vectors": "learned"}
    assert vocabulary_of("swamp_video", learned, words, ["a wolf"]).words == words.words


SIZE, WORD_SIZE = 6, 4


def released():
    """Parameters as HowTo100M's model has them."""
    generator = torch.Generator().manual_seed(1)
    inputs = {
        "text_pooling.fc": WORD_SIZE,
        "GU_text.fc": SIZE,
        "GU_text.cg.fc": SIZE,
        "GU_video.fc": WIDTH,
        "GU_video.cg.fc": SIZE,
    }
    state = {}
    for name, width in inputs.items():
        state[f"{name}.weight"] = torch.randn(SIZE, width, generator=generator)
        state[f"{name}.bias"] = torch.randn(SIZE, generator=generator)
    for unit in ("GU_text", "GU_video"):
        for part in ("weight", "bias", "running_mean", "running_var"):
            state[f"{unit}.cg.batch_norm.{part}"] = torch.ones(SIZE)
        state[f"{unit}.cg.batch_norm.num_batches_tracked"] = torch.tensor(0)
    return state


@pytest.mark.parametrize("weight", [0.0, 0.25])
def test_training_starts_from_howto100m(tmp_path, weight):
    torch.save(released(), tmp_path / "model.pth", _use_new_zipfile_serialization=False)
    import_howto100m(tmp_path / "model.pth", tmp_path / "howto100m" / "released")
    model = {
        "size": SIZE,
        "word_vectors": "learned",
        "word_size": WORD_SIZE,
        "weight": weight,
        "n_classes": 4,
        "queue": 8,
    }
    fresh = ("^labels[.]",) if weight else ()
    start = WarmStart(model="howto100m/released", fresh=fresh)
    preset = Preset(method="swamp_video", features="howto100m", model=model, warm_start=start)
    words = Vocabulary([*Vocabulary.SPECIAL, "cut", "egg"])
    method = build_method("swamp_video", model, vocabulary=words, feature_width=WIDTH)
    before = method.text.words.weight[3:].clone()
    find_source(preset, tmp_path).load(method, words)
    given = released()
    assert torch.equal(method.text.linear.weight, given["text_pooling.fc.weight"])
    assert torch.equal(method.image_unit.project.bias, given["GU_video.fc.bias"])
    assert torch.equal(method.text_unit.gate.weight, given["GU_text.cg.fc.weight"])
    assert torch.equal(method.text.words.weight[3:], before)


def lacking(name):
    return {key: value for key, value in released().items() if not key.startswith(name)}


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (lacking("GU_text.fc"), "no 'text_unit.project'"),
        (lacking("text_pooling.fc.b"), "no 'text.linear'"),
        (released() | {"other.weight": torch.ones(2)}, "'other.weight' is no parameter"),
        (released() | {"GU_text.fc.bias": torch.ones(3)}, "does not fit"),
        (released() | {"GU_text.fc.bias": "text"}, "is no parameter"),
        ([1, 2], "not the parameters"),
    ],
    ids=["missing", "bias", "unknown", "shape", "kind", "list"],
)
def test_another_model_is_refused(tmp_path, state, reason):
    torch.save(state, tmp_path / "model.pth")
    with pytest.raises(ManyMatchError, match=reason):
        import_howto100m(tmp_path / "model.pth", tmp_path / "released")
    assert not (tmp_path / "released").exists()


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "model.pth").write_bytes(b"<html>")
    with pytest.raises(DataError, match="not a file of torch") as fault:
        import_howto100m(tmp_path / "model.pth", tmp_path / "released")
    assert "weights_only" not in str(fault.value) and "\n" not in str(fault.value)
