"""word2vec's binary files are read word by word, and a fault in one is one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from made_clips import write_word2vec

from manymatch.batch.vocabulary import Vocabulary
from manymatch.networks.encoders.word_vectors import fixed_embedding, read_word2vec
from manymatch.util.errors import ConfigError

WORDS = ("the", "dög", "New_York", "cat")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "words.bin"
    write_word2vec(path, WORDS, 3)
    return path


def test_known_words_have_their_vectors_others_none(file: Path) -> None:
    known = read_word2vec(file, WORDS, 3)
    assert known.keys() == set(WORDS)
    vocabulary = Vocabulary([*Vocabulary.SPECIAL, "cat", "wolf", "dög"])
    table = fixed_embedding(vocabulary, 3, str(file)).weight
    assert not table.requires_grad
    torch.testing.assert_close(table[3], torch.from_numpy(known["cat"]))
    torch.testing.assert_close(table[5], torch.from_numpy(known["dög"]))
    assert (table[[0, 1, 2, 4]] == 0).all()


def test_a_file_without_line_breaks_is_the_same(file: Path, tmp_path: Path) -> None:
    head, *rest = file.read_bytes().split(b"\n", 1)
    body, plain, step = rest[0], b"", 3 * 4
    at = 0
    while at < len(body):
        end = body.index(b" ", at) + 1 + step
        plain += body[at:end]
        at = end + 1
    other = tmp_path / "plain.bin"
    other.write_bytes(head + b"\n" + plain)
    result, expected = read_word2vec(other, WORDS, 3), read_word2vec(file, WORDS, 3)
    assert all((result[word] == expected[word]).all() for word in WORDS)


def test_a_trained_models_words_need_no_file() -> None:
    words = Vocabulary([*Vocabulary.SPECIAL, "cat"], trained=True)
    assert (fixed_embedding(words, 3, None).weight == 0).all()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda data: b"", "."),
        (lambda data: b"what is this\n" + data, "does not begin with two numbers"),
        (lambda data: data[:-9], "word 4 of 4: truncated"),
        (lambda data: data.replace(b"4 3\n", b"99999999999999 3\n"), "word 5 of 999"),
        (lambda data: data.replace(b"4 3\n", b"4 5\n"), "5 numbers for a word, but word_size is 3"),
        (lambda data: data[:8] + b"\xff" * 12 + data[20:], "word 1: numbers are not finite"),
        (lambda data: b"9 3\n" + b"x" * 10_000, "word 1 of 9: truncated"),
    ],
    ids=["empty", "text", "cut", "count", "size", "nan", "no space"],
)
def test_a_damaged_file_is_one_line(file: Path, spoil, reason: str) -> None:
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(ConfigError, match=reason) as fault:
        read_word2vec(file, WORDS, 3)
    assert str(file) in str(fault.value) and "\n" not in str(fault.value)


@pytest.mark.parametrize("name", [None, "nowhere.bin"])
def test_no_file_is_one_line(name: str | None) -> None:
    with pytest.raises(ConfigError, match=r"word2vec|word vectors cannot be read"):
        fixed_embedding(Vocabulary(Vocabulary.SPECIAL), 3, name)
