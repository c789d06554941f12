"""A BERT's wordpieces work in place of words, and are loaded from a model's folder."""

import json
import pickle
from itertools import accumulate
from random import Random

import pytest
from tiny_bert import SPECIAL, make_bert

from manymatch.batch.numbering import CaptionEntry, Numbering
from manymatch.batch.pieces import Pieces, Special
from manymatch.batch.scene_graph import SceneGraph
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import WordPieces, load_vocabulary
from manymatch.config.preset import Augmentation
from manymatch.shards.prepare import CaptionAugmenter
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.files import write_json


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def pieces(folder):
    return WordPieces.from_folder(folder)


def spelt(pieces, text):
    return [pieces.words[number] for number in pieces.encode(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two  dogs", ["two", "dog", "##s"]),
        ("a t-dog's boat.", ["a", "t", "-", "dog", "'", "s", "boat", "[UNK]"]),
        ("d\u00f6g", ["dog"]),
        ("[SEP]", ["[UNK]"] * 3),
        ("  ", []),
    ],
)
def test_text_becomes_the_berts_pieces(pieces, text, expected):
    assert spelt(pieces, text) == expected


def test_random_words_are_never_special(pieces):
    assert [pieces.words[number] for number in pieces.ordinary] == list(
        pieces.words[len(SPECIAL) :]
    )
    numbered = Numbering(pieces).caption(
        CaptionEntry("c", "a red dog beside two cats", SceneGraph(("dog",), ("dog",), ((),), ()))
    )
    augment = CaptionAugmenter(Augmentation(word_drop=0.9), pieces)
    words = {word for seed in range(300) for word in augment(numbered, Random(seed)).words}
    assert len(words - set(numbered.words)) > 20
    assert {pieces.words[word] for word in words} & set(SPECIAL) == {"[MASK]"}


def test_whole_words_are_known_by_places_in_the_text(pieces):
    """In ASCII texts exactly the pieces with ## continue a word."""
    for text in ("Two  dogs", "a t-dog's boats.", "##s [SEP] dogg_ing", " bigs"):
        ids, sizes = pieces.encode_words(text)
        assert ids == pieces.encode(text) and sum(sizes) == len(ids)
        starts = [*accumulate(sizes, initial=0)][:-1]
        spelt_ids = spelt(pieces, text)
        assert starts == [n for n, piece in enumerate(spelt_ids) if not piece.startswith("##")]
    copy = pickle.loads(pickle.dumps(pieces))  # as worker processes get them
    assert (copy.special, copy.pretrained) == (pieces.special, pieces.pretrained)
    assert copy.encode("[MASK] dogs") == pieces.encode("[MASK] dogs")


def test_there_and_back(pieces, tmp_path):
    path = tmp_path / "vocabulary.json"
    pieces.save(path)
    result = load_vocabulary(path)
    assert isinstance(result, WordPieces)
    assert (result.words, result.network, result.pretrained) == (pieces.words, pieces.network, None)
    assert result.encode("two Dogs") == pieces.encode("two Dogs")
    Vocabulary([*Vocabulary.SPECIAL, "dog"]).save(path)
    words = load_vocabulary(path)
    assert isinstance(words, Vocabulary) and (words.words[3:], words.trained) == (("dog",), True)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", "{", "config.json: not valid JSON"),
        ("config.json", '{"model_type": "roberta"}', "'roberta', not a BERT"),
        ("config.json", '{"model_type": "bert", "max_position_embeddings": ""}', "cannot be used"),
        ("vocab.txt", "[PAD]\n[UNK]\ndog\n", r"\[CLS\] is missing"),
        ("vocab.txt", None, "No such file"),
        ("tokenizer.json", "{}", "not a tokeniser"),
    ],
)
def test_an_unusable_folder_is_one_line(tmp_path, file, content, message):
    folder = make_bert(tmp_path)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        WordPieces.from_folder(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [{"wordpieces": {}}, {"wordpieces": {}, "network": {}}, {"wordpieces": 1, "network": 2}],
)
def test_a_damaged_file_is_one_line(tmp_path, value):
    path = tmp_path / "vocabulary.json"
    write_json(path, value)
    with pytest.raises(DataError, match="cannot be read as wordpieces") as caught:
        load_vocabulary(path)
    assert "\n" not in str(caught.value)


BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
UNIGRAM = {"type": "Unigram", "unk_id": None, "vocab": [["a", -1.0], ["b", -2.0]]}
DOUBLED = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
SLOW = {"Regex": "(a+)+$"}


def strange(model, **parts):
    """The pieces of a stranger's tokeniser."""
    return Pieces(json.dumps({"model": model, "added_tokens": [], **parts}), {}, None, Special())


def test_a_tokeniser_with_dropout_gives_the_same_pieces_each_time():
    pieces = strange(BPE | {"dropout": 0.5})
    assert {tuple(pieces.encode("abab")) for _ in range(30)} == {(2, 2)}


@pytest.mark.parametrize(
    ("model", "parts", "words"),
    [
        (BPE, {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "charsmap"),
        (UNIGRAM, {}, "cannot read every text"),
        (BPE, {"normalizer": {"type": "Sequence", "normalizers": [DOUBLED] * 20}}, "64 times"),
        (BPE, {"decoder": {"type": "Sequence", "decoders": [DOUBLED] * 20}}, "64 times"),
    ],
)
def test_a_tokeniser_that_fails_is_one_line(model, parts, words):
    with pytest.raises(ValueError, match=words) as caught:
        strange(model, **parts)
    assert "\n" not in str(caught.value)


def test_a_text_on_which_a_tokeniser_fails_is_one_line():
    split = {"type": "Split", "pattern": SLOW, "behavior": "Isolated", "invert": False}
    with pytest.raises(DataError, match=r"cannot read the text 'aaa.*retry-limit"):
        strange(BPE, pre_tokenizer=split).encode("a" * 40 + "b")
