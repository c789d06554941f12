import unicodedata

import pytest

from manymatch.batch.vocabulary import Vocabulary, tokenize
from manymatch.util.errors import DataError
from manymatch.util.files import write_json


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A man's T-shirt .", ["a", "man", "'s", "t-shirt"]),
        ("The dog 's ball", ["the", "dog", "'s", "ball"]),
        ("They don't , can't !", ["they", "do", "n't", "ca", "n't"]),
        ("boys' merry-go-round", ["boys", "merry-go-round"]),
        ("at 5 o'clock", ["at", "5", "o'clock"]),
        ("1,000 people, 2.5 miles", ["1,000", "people", "2.5", "miles"]),
        ("rock 'n' roll - loud", ["rock", "n", "roll", "loud"]),
        ("Mark ' Mom ' Finley", ["mark", "mom", "finley"]),
        ("Cafe\u0301 CAF\u00c9", ["café", "café"]),
        ("man\u2019s \ufb01sh", ["man", "'s", "fish"]),
        ("they're I'm he'll", ["they", "'re", "i", "'m", "he", "'ll"]),
        ("<pad><unk> <mask>", ["pad", "unk", "mask"]),
        (" .,!?\" ' - _ ", []),
        ("", []),
    ],
)
def test_tokenize(text, words):
    assert tokenize(text) == words


def test_order_is_by_count_then_alphabet_whatever_the_order_of_captions():
    captions = ["b a", "a c b", "z a"]
    expected = ("<pad>", "<unk>", "<mask>", "a", "b", "c", "z")
    assert Vocabulary.from_captions(captions).words == expected
    assert Vocabulary.from_captions(reversed(captions)).words == expected


def test_words_of_other_captions_come_behind_and_are_not_drawn():
    assert Vocabulary.from_captions(["a a b", "b c"], minimum_count=2).words[3:] == ("a", "b")
    vocabulary = Vocabulary.from_captions(["a b"])
    extended = vocabulary.extended(["d b", "c d"])
    assert extended.words == (*vocabulary.words, "c", "d")
    assert extended.ids(["a", "d", "e"]) == [3, 6, Vocabulary.UNK]
    assert list(extended.ordinary) == list(vocabulary.ordinary) == [3, 4]


@pytest.mark.parametrize(
    "content",
    [
        None,
        '{"words": ["<pad>", "<unk>", "<mask>", "dog"]',
        "[" * 100_000,
        {"words": 3},
        {"words": ["a"]},
        {"words": ["<pad>", "<unk>", "<mask>", "a", "a"]},
        {"words": ["<pad>", "<unk>", "<mask>", 1]},
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "v.json"
    if isinstance(content, str):
        path.write_text(content)
    elif content is not None:
        write_json(path, content)
    with pytest.raises(DataError) as caught:
        Vocabulary.load(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("एक कुत्ता दौड़ता है", ["एक", "कुत्ता", "दौड़ता", "है"]),
        ("一只狗 with 3 dogs", ["一", "只", "狗", "with", "3", "dogs"]),
        ("ห้า", ["ห้", "า"]),
        ("abc犬d'été, man\u2019s", ["abc", "犬", "d'été", "man", "'s"]),
        ("어린 소년이", ["어린", "소년이"]),
    ],
)
def test_other_scripts_give_words_or_letters(text, words):
    assert tokenize(text) == [unicodedata.normalize("NFKC", word) for word in words]
