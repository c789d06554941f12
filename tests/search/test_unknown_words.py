"""Words that a model does not know are named, with word vectors and with wordpieces."""

import json

import pytest
from command_line import ends
from made_indexes import made_index
from tiny_bert import SPECIAL, make_bert

from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import WordPieces


@pytest.fixture(params=["words", "wordpieces"])
def vocabulary(request, tmp_path):
    if request.param == "words":
        return Vocabulary([*Vocabulary.SPECIAL, "a", "dog", "red"])
    return WordPieces.from_folder(make_bert(tmp_path, [*SPECIAL, "a", "dog", "red", "."]))


@pytest.mark.parametrize(
    ("text", "unknown", "knows"),
    [
        ("a red dog", [], True),
        ("A red zebra, a zebra.", ["zebra"], True),
        ("zebra \u0633\u0644\u0627\u0645", ["zebra", "\u0633\u0644\u0627\u0645"], False),
    ],
)
def test_unknown_words_are_named_once(text, unknown, knows, vocabulary):
    assert vocabulary.unknown(text) == unknown
    assert vocabulary.knows(text) == knows


def test_a_text_without_words_is_unknown_as_a_whole(vocabulary):
    for text in ("...!?", " \U0001f600"):
        assert vocabulary.unknown(text) == [text.strip()] and not vocabulary.knows(text)


@pytest.fixture(scope="module")
def index(make_model, pictures, tmp_path_factory):
    target = tmp_path_factory.mktemp("unknown") / "a.index"
    return made_index(pictures[0].parent, make_model("vsepp"), target)


def test_an_answer_says_which_words_are_unknown(index, pictures):
    queries = ["two dogs", "two qwzx dogs", "qwzx", pictures[0]]
    answers = index.search_all(queries)
    assert [answer.unknown for answer in answers] == [[], ["qwzx"], ["qwzx"], []]
    assert [answer.understood for answer in answers] == [True, True, False, True]
    assert [len(answer.results) for answer in answers] == [5, 5, 0, 5]
    similar = index.similar(answers[0].results[0].id)
    assert not similar.unknown and similar.understood


def test_the_command_says_so_before_the_results(index, monkeypatch, capfd):
    for query, words in (
        ("two qwzx dogs", "Not known to the model: qwzx"),
        ("qwzx", "knows no word of this query"),
    ):
        command = ["search", str(index.folder), query]
        printed = ends(command, 0, monkeypatch, capfd).out
        found = ".png" in printed
        assert words in printed and found == (query != "qwzx")
        assert not found or printed.index(words) < printed.index(".png")
        answer = json.loads(ends([*command, "--json"], 0, monkeypatch, capfd).out)
        assert answer["unknown"] == ["qwzx"] and answer["understood"] == (query != "qwzx")
