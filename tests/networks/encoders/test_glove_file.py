"""GloVe's text files are read line by line, and a fault in one is one line."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
import torch

from manymatch.batch.vocabulary import Vocabulary
from manymatch.networks.encoders.word_vectors import read_glove, word_embedding
from manymatch.util.errors import ConfigError

LINES = [
    "the 0.1 -0.2 3e-1",
    "dog 1 2 3",
    ". . . 7 7 7",
    "d\u00f6g 4 5 6",
    "dog 9 9 9",
    "the dog 8 8 8",
    "at name@domain.com 8 8 8",
    "name\u00a0dog 8 8 8",
    "dog\u0085 8 8 8",
    "Dog 8 8 8",
]
"""The last five are of the kinds that the file of 840 billion words has: words that hold spaces,
other white space or line ends, and words with capitals."""


def write(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def table(path: str, *words: str, size: int = 3) -> torch.Tensor:
    vocabulary = Vocabulary([*Vocabulary.SPECIAL, *words])
    return word_embedding("glove", vocabulary, size, path).weight.detach()


def test_each_word_gets_its_first_line(tmp_path: Path) -> None:
    result = table(write(tmp_path / "g.txt", *LINES), "dog", "d\u00f6g", "cat", "the", "at")
    expected = torch.tensor([[1.0, 2, 3], [4, 5, 6], [0.1, -0.2, 0.3]])
    torch.testing.assert_close(result[[3, 4, 6]], expected)
    assert (result[0] == 0).all()
    assert result[5].norm() > 0 and result[7].norm() > 0
    assert not (result == 8).any()


def test_the_file_is_streamed_in_bounded_memory(tmp_path: Path) -> None:
    """20,000 lines of 300 numbers; only the vectors that are asked for are kept."""
    numbers = " ".join(["0.12345"] * 300)
    file = tmp_path / "g.txt"
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(f"word{n} {numbers}\n" for n in range(20_000))
    tracemalloc.start()
    result = read_glove(file, ["word5", "word19999", "cat"], 300)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.keys() == {"word5", "word19999"}
    assert peak < 1_000_000 < file.stat().st_size / 40


def test_a_trained_model_needs_no_file() -> None:
    vocabulary = Vocabulary([*Vocabulary.SPECIAL, "dog"], trained=True)
    assert word_embedding("glove", vocabulary, 7, "no such file").weight.shape == (4, 7)
    assert word_embedding("glove", vocabulary, 7).weight.shape == (4, 50)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["the 1 2"], "2 numbers for a word, but word_size is 3"),
        (["400000 3", *LINES], "1 numbers for a word"),
        (["the 1 2 3", "dog 1 2 x"], ":2: not a word and 3 numbers"),
        (["the 1 2 3", "dog 1 2 inf"], ":2: not a word and 3 numbers"),
        (["the 1 2 3", "dog 1"], ":2: not a word and 3 numbers"),
    ],
)
def test_a_fault_is_one_line_that_says_where(tmp_path: Path, lines: list, message: str) -> None:
    path = write(tmp_path / "g.txt", *lines)
    with pytest.raises(ConfigError, match=message) as caught:
        table(path, "dog")
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.txt: word vectors cannot be read: No such"):
        table(str(tmp_path / "none.txt"), "dog")
