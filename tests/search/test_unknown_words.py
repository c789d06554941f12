"""Words that a model does not know are named, with word vectors and with wordpieces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import ends
from made_indexes import made_index
from tiny_bert import SPECIAL, make_bert

from manymatch import Index
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary, WordPieces


@pytest.fixture(params=["words", "wordpieces"])
def vocabulary(request: pytest.FixtureRequest, tmp_path: Path) -> AnyVocabulary:
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
def test_unknown_words_are_named_once(
    text: str, unknown: list[str], knows: bool, vocabulary: AnyVocabulary
) -> None:
    assert vocabulary.unknown(text) == unknown
    assert vocabulary.knows(text) == knows


def test_a_text_without_words_is_unknown_as_a_whole(vocabulary: AnyVocabulary) -> None:
    for text in ("...!?", " \U0001f600"):
        assert vocabulary.unknown(text) == [text.strip()] and not vocabulary.knows(text)


@pytest.fixture(scope="module")
def index(
    make_model: Callable[..., Path], pictures: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Index:
    target = tmp_path_factory.mktemp("unknown") / "a.index"
    return made_index(pictures[0].parent, make_model("vsepp"), target)


def test_an_answer_says_which_words_are_unknown(index: Index, pictures: list[Path]) -> None:
    queries = ["two dogs", "two qwzx dogs", "qwzx", pictures[0]]
    answers = index.search_all(queries)
    assert [answer.unknown for answer in answers] == [[], ["qwzx"], ["qwzx"], []]
    assert [answer.understood for answer in answers] == [True, True, False, True]
    assert [len(answer.results) for answer in answers] == [5, 5, 0, 5]
    similar = index.similar(answers[0].results[0].id)
    assert not similar.unknown and similar.understood


def test_the_command_says_so_before_the_results(
    index: Index, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
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
