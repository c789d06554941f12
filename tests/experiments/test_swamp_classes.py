"""Clusters of a small untrained SwAMP on a few made-up images, against loops over what they say."""

import base64
import json
from collections import Counter

import pytest
import torch
from untrained import save_untrained

from manymatch.experiments.probes.probed_model import ProbedModel
from manymatch.experiments.swamp_classes import PICTURES, SHOWN, describe_classes, words_of
from manymatch.scene_graphs.parser import load_model
from manymatch.util.errors import ConfigError

PARSER = "en_core_web_sm"
N_CLASSES = 5


@pytest.fixture(scope="module")
def model(tmp_path_factory, data):
    settings = {"n_classes": N_CLASSES, "queue": 8}
    return save_untrained(tmp_path_factory.mktemp("models") / "swamp", data, "swamp", settings)


@pytest.fixture(scope="module")
def written(model, data, tmp_path_factory):
    target = tmp_path_factory.mktemp("reports") / "swamp.json"
    describe_classes(model, data.shards, target, split="test", parser=PARSER)
    return json.loads(target.read_text())


@pytest.fixture(scope="module")
def probed(model, data):
    return ProbedModel.open(model, data.shards, "test")


def likeliest(probed, vectors):
    """The class whose prototype is nearest, sample by sample."""
    prototypes = probed.trained.method.labels.prototypes.detach()
    cosines = [
        [float(torch.cosine_similarity(vector[0], prototype, dim=0)) for prototype in prototypes]
        for vector in vectors
    ]
    return [max(range(N_CLASSES), key=row.__getitem__) for row in cosines]


def test_every_sample_is_in_the_class_of_the_nearest_prototype(written, probed):
    embedded = probed.embedded
    captions = likeliest(probed, embedded.texts.vectors)
    images = likeliest(probed, embedded.images.vectors)
    members = {item["number"]: item for item in written["classes"]}
    assert set(members) == {*captions, *images}
    for number, item in members.items():
        own = [row for row, of in enumerate(captions) if of == number]
        assert [c["caption_id"] for c in item["captions"]] == [
            embedded.caption_ids[row] for row in own
        ]
        assert [c["caption"] for c in item["captions"]] == [
            probed.captions[row].text for row in own
        ]
        assert item["images"] == [
            name for name, of in zip(embedded.image_ids, images, strict=True) if of == number
        ]
    assert written["used"] == {"captions": len(set(captions)), "images": len(set(images))}
    sizes = [len(item["captions"]) for item in written["classes"]]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) > 1
    about = [written[key] for key in ("preset", "method", "split", "n_classes")]
    assert about == ["swamp", "swamp", "test", N_CLASSES]
    same = [of == images[index] for of, index in zip(captions, embedded.image_index, strict=True)]
    assert written["agreement"] == pytest.approx(100 * sum(same) / len(same), abs=0.01)


def test_keywords_are_lemmas_told_apart_by_kind_and_counted_by_caption(written):
    model = load_model(PARSER)
    words = words_of(model, ["Two dogs are chasing a dog\nthrough the  parks.", "red"])
    assert (words[0].nouns, words[0].verbs, words[1].verbs) == (["dog", "park"], ["chase"], [])
    item = written["classes"][0]
    message = words_of(model, [caption["caption"] for caption in item["captions"]])
    counts = Counter(noun for words in message for noun in set(words.nouns))
    assert dict(map(tuple, item["nouns"])).items() <= counts.items()
    assert item["nouns"][0][1] == max(counts.values())


def test_the_largest_classes_have_pictures(written, probed):
    rows = range(len(probed.embedded.image_ids))
    stored = {image.image_id: image.thumbnail for image in probed.images(rows)}
    shown = {}
    for item in written["classes"][:SHOWN]:
        assert list(item["thumbnails"]) == item["images"][:PICTURES]
        shown |= item["thumbnails"]
    decoded = {name: text and base64.b64decode(text) for name, text in shown.items()}
    assert decoded == {name: stored[name] for name in shown}
    assert any(decoded.values())


@pytest.mark.parametrize(("name", "settings"), [("vsepp", {}), ("swamp", {"weight": 0.0})])
def test_a_model_without_classes_is_told_so(name, settings, data, tmp_path):
    model = save_untrained(tmp_path / name, data, name, settings)
    with pytest.raises(ConfigError, match="has no classes"):
        describe_classes(model, data.shards, tmp_path / "x.json", split="test", parser=PARSER)
    assert not (tmp_path / "x.json").exists()
