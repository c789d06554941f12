"""Words that a model does not know are named, with word vectors and with wordpieces."""

import json

from command_line import ends
from made_indexes import made_index
from tiny_bert import SPECIAL, make_bert

from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import WordPieces


def test_unknown_words_are_named_once(tmp_path):
    pieces = WordPieces.from_folder(make_bert(tmp_path, [*SPECIAL, "a", "dog", "red", "."]))
    for vocabulary in (Vocabulary([*Vocabulary.SPECIAL, "a", "dog", "red"]), pieces):
        for text, unknown, knows in (
            ("a red dog", [], True),
            ("A red zebra, a zebra.", ["zebra"], True),
            ("zebra \u0633\u0644\u0627\u0645", ["zebra", "\u0633\u0644\u0627\u0645"], False),
            ("...!?", ["...!?"], False),
            (" \U0001f600", ["\U0001f600"], False),
        ):
            assert vocabulary.unknown(text) == unknown and vocabulary.knows(text) == knows


def test_answers_say_which_words_are_unknown(make_model, pictures, tmp_path, monkeypatch, capfd):
    index = made_index(pictures[0].parent, make_model("vsepp"), tmp_path / "a.index")
    answers = index.search_all(["two dogs", "two qwzx dogs", "qwzx", pictures[0]])
    assert [answer.unknown for answer in answers] == [[], ["qwzx"], ["qwzx"], []]
    assert [answer.understood for answer in answers] == [True, True, False, True]
    assert [len(answer.results) for answer in answers] == [5, 5, 0, 5]
    similar = index.similar(answers[0].results[0].id)
    assert not similar.unknown and similar.understood
    for query, words in (
        ("two qwzx dogs", "Not known to the model: qwzx"),
        ("qwzx", "knows no word of this query"),
    ):
        command = ["search", str(index.folder), query]
        before, said, after = ends(command, 0, monkeypatch, capfd).out.partition(words)
        assert said and ".png" not in before and (".png" in after) == (query != "qwzx")
        answer = json.loads(ends([*command, "--json"], 0, monkeypatch, capfd).out)
        assert answer["unknown"] == ["qwzx"] and answer["understood"] == (query != "qwzx")
