"""Any text model of transformers: what it gives is what transformers gives; padding, other texts
and a trained model's folder change nothing; only what should learn learns; a fault is one line."""

import shutil
from itertools import accumulate, pairwise

import hub_models
import pytest
import torch
import transformers
from hub_models import edit
from hub_texts import FAMILIES, TEXTS, TOWERS, built

from manymatch.batch.collate import pad_words
from manymatch.batch.numbering import Numbering
from manymatch.batch.wordpieces import load_vocabulary
from manymatch.networks.backbones.learning import layer_stack, parameter_depths
from manymatch.networks.encoders.hub_text import HubTextEncoder, HubTextSettings, TextTower


def numbers(vocabulary, texts=TEXTS):
    words, lengths = pad_words([Numbering(vocabulary).words(text) for text in texts])
    return words, torch.arange(words.shape[1]) < lengths[:, None]


def by_transformers(folder, family):
    """The whole model, and its input for `TEXTS`, by transformers alone."""
    words = transformers.AutoTokenizer.from_pretrained(folder)
    encoder = family in ("t5", "mt5")
    kind = transformers.AutoModelForTextEncoding if encoder else transformers.AutoModel
    model = kind.from_pretrained(folder).eval()
    texts, padding = TEXTS, True
    if family == "siglip":  # of a fixed length, in lower case, without a mask
        texts, padding = [text.lower() for text in TEXTS], "max_length"
        words.model_input_names = ["input_ids"]
    given = words(texts, padding=padding, truncation=True, return_tensors="pt")
    return model, {key: given[key] for key in ("input_ids", "attention_mask") if key in given}


@pytest.mark.parametrize("family", [*FAMILIES, *TOWERS])
def test_states_and_vectors_are_those_of_transformers(family, folders):
    folder = folders(family)
    encoder = built(folder)
    settings = HubTextSettings(model=str(folder))
    words, mask = numbers(settings.vocabulary())
    model, given = by_transformers(folder, family)
    states, real = encoder(words, mask)
    with torch.no_grad():
        expected = getattr(model, "text_model", model)(**given).last_hidden_state
    expected = expected[:, : states.shape[1]] * real[:, :, None]
    torch.testing.assert_close(states, expected, atol=1e-6, rtol=0)
    assert encoder.width == states.shape[2] and not states.requires_grad
    assert torch.equal(states, encoder.train()(words, mask).states), "frozen: no dropout"
    for row in range(len(TEXTS)):
        alone = encoder(
            words[row : row + 1, : mask[row].sum()], mask[row : row + 1, : mask[row].sum()]
        )
        torch.testing.assert_close(alone.states[0], states[row, : alone.states.shape[1]])
    if family in TOWERS:
        tower = TextTower(settings.vocabulary()).eval()
        vectors = tower(words, mask).states[:, 0]
        with torch.no_grad():
            features = model.get_text_features(**given).pooler_output
        torch.testing.assert_close(vectors, features, atol=1e-6, rtol=0)
        assert tower.width == vectors.shape[1] and not any(
            "vision" in n for n in tower.state_dict()
        )


def test_texts_may_be_filled_on_the_left(folders, tmp_path):
    """As by transformers' tokeniser of SigLIP 2; the padding is read."""
    folder = shutil.copytree(folders("siglip"), tmp_path / "left")
    edit("tokenizer_config.json", padding_side="left")(folder)
    encoder, tower = built(folder), TextTower(HubTextSettings(model=str(folder)).vocabulary())
    words, mask = numbers(HubTextSettings(model=str(folder)).vocabulary())
    model, given = by_transformers(folder, "siglip")
    assert given["input_ids"][1, 0] == encoder.special.pad
    with torch.no_grad():
        output = model.get_text_features(**given)
    states, real = encoder(words, mask)
    for row, count in zip(
        zip(states, output.last_hidden_state, strict=True), real.sum(1), strict=True
    ):
        torch.testing.assert_close(row[0][:count], row[1][-count:], atol=1e-6, rtol=0)
    vectors = tower.eval()(words, mask).states[:, 0]
    torch.testing.assert_close(vectors, output.pooler_output, atol=1e-6, rtol=0)


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_pictures_of_the_same_model_are_projected(family, folders):
    folder = folders(family)
    backbone = hub_models.built(folder, output="projected")
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        pixels = hub_models.pixel_values(hub_models.CROP)
        expected = model.get_image_features(pixels).pooler_output
    found = torch.from_numpy(hub_models.extracted(backbone))[:, 0]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert backbone.dtype == "float32"


@pytest.mark.parametrize("family", ["qwen3", "clip", "t5"])
def test_a_trained_model_needs_no_folder(family, folders, tmp_path):
    folder = shutil.copytree(folders(family), tmp_path / "model")
    encoder, vocabulary = built(folder, "lora"), HubTextSettings(model=str(folder)).vocabulary()
    vocabulary.save(tmp_path / "vocabulary.json")
    words, mask = numbers(vocabulary)
    states = encoder(words, mask).states
    shutil.rmtree(folder)
    pieces = load_vocabulary(tmp_path / "vocabulary.json")
    assert pieces.pretrained is None
    assert [pieces.encode(text) for text in TEXTS] == [vocabulary.encode(text) for text in TEXTS]
    settings = HubTextSettings(model="no/such/folder", train="lora")
    again = HubTextEncoder(settings, pieces).eval()
    again.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(again(words, mask).states, states)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "clip", "t5"])
def test_words_are_whole_in_every_tokeniser(family, folders):
    """Each tokeniser has the same words, in scripts with and without spaces."""
    vocabulary = HubTextSettings(model=str(folders(family))).vocabulary()
    text, words = " An x-ray  naïve zebras!", ["an", "x", "-", "ray", "naïve", "zebras", "!"]
    if family == "clip":  # which has few letters at the end of words
        text, words = " A  bird sleeps, red!", ["a", "bird", "sleeps", ",", "red", "!"]
    ids, sizes = vocabulary.encode_words(text)
    assert ids == vocabulary.encode(text) and len(sizes) == len(words)
    for (start, stop), word in zip(pairwise(accumulate(sizes, initial=0)), words, strict=True):
        shown = vocabulary._tokenizer.decode(ids[start:stop], skip_special_tokens=False)
        known = vocabulary.special.unknown not in ids[start:stop]
        spelt = shown.replace("##", "").replace("</w>", "").replace(" ", "").lower()
        assert not known or spelt in (word, word.replace("ï", "i")), (family, ids[start:stop])
    _, sizes = vocabulary.encode_words("鳥が")
    assert len(sizes) == 2 or family not in ("bert", "roberta")  # the others know no such signs


@pytest.mark.parametrize("named", ["SiglipTokenizer", None])
def test_siglip_1_reads_captions_without_punctuation(named, folders, tmp_path):
    folder = shutil.copytree(folders("siglip"), tmp_path / "first")
    edit("tokenizer_config.json", tokenizer_class=named)(folder)
    pieces, lower = (
        HubTextSettings(model=str(f)).vocabulary() for f in (folder, folders("siglip"))
    )
    assert (pieces.special.cleaning, lower.special.cleaning) == ("plain", "lower")
    assert pieces.special.model_dump(exclude={"cleaning"}) == lower.special.model_dump(
        exclude={"cleaning"}
    )
    expected = lower.encode("a big red dog runs and a cat sleeps beside the boat")
    assert pieces.encode(TEXTS[0]) == expected != lower.encode(TEXTS[0])


def test_cut_captions_are_known(folders):
    vocabulary = HubTextSettings(model=str(folders("roberta"))).vocabulary()
    long = "dog " * 40
    assert [vocabulary.is_cut(text) for text in ("a dog", long, "é" * 40)] == [False, True, True]
    assert len(vocabulary.encode(long)) == 30 - 2 and len(vocabulary.encode_words(long)[0]) == 28


def learning(encoder):
    """The names of the parameters that get a gradient, which are those that ask for one."""
    words, mask = torch.tensor([[7, 8, 9]]), torch.ones(1, 3, dtype=torch.bool)
    encoder.train()(words, mask).states.square().sum().backward()
    names = {name for name, value in encoder.named_parameters() if value.grad is not None}
    assert names == {name for name, value in encoder.named_parameters() if value.requires_grad}
    return names


@pytest.mark.parametrize("family", ["roberta", "siglip", "t5"])
def test_only_what_should_learn_learns(family, folders):
    folder = folders(family)
    everything = {name for name, _ in built(folder).named_parameters() if ".head." not in name}
    assert learning(built(folder, "all")) == everything
    last = learning(built(folder, "last 1"))
    assert last < everything and len(last) > 3
    assert all(".2." in name or "norm" in name for name in last)
    encoder = built(folder, "lora")
    words, mask = numbers(HubTextSettings(model=str(folder)).vocabulary())
    torch.testing.assert_close(encoder(words, mask).states, built(folder)(words, mask).states)
    lora = learning(encoder)
    assert lora and all(name.endswith(("lora_a", "lora_b")) for name in lora)


@pytest.mark.parametrize("family", ["mpnet", "deberta-v2"])
def test_relative_positions_are_as_deep_as_embeddings(family, folders):
    tower = built(folders(family)).tower
    depths = parameter_depths(tower)
    (name,) = (
        name for name, _ in tower.named_parameters() if "rel" in name and "layer" not in name
    )
    assert depths[tower.get_parameter(name)] == len(layer_stack(tower)) + 1
