"""The caption table, its checks, the vocabulary and the judged pairs."""

import pyarrow.parquet as pq
import pytest
from full_disk import error_on_full_disk

from manymatch.batch.caption_text import MAX_CHARACTERS
from manymatch.batch.vocabulary import Vocabulary
from manymatch.datasets import DATASETS, captions
from manymatch.datasets.base import CAPTIONS, Caption, Relevance
from manymatch.datasets.captions import write_captions
from manymatch.util.errors import DataError


class Made:
    """A dataset with the given rows and pairs."""

    def __init__(self, rows, extra=None):
        self.rows, self.extra = rows, extra

    def captions(self, raw):
        return iter(self.rows)

    def relevance(self, raw):
        return self.extra

    def metadata(self, raw):
        return {}


def row(image="a", number=0, split="train", text="a cat sits", **other):
    values = {"file": f"images/{image}.jpg", "labels": ()} | other
    return Caption(image, f"{image}#{number}", split, text, **values)


VALIDATION = row("b", 0, "validation", "a bird")
GOOD = [
    row("a", 0),
    row("a", 1, text="cats", labels=(3, 1)),
    VALIDATION,
    row("c", 0, "test", "un caf\u00e9 \u2014 noir"),
    row("d", 0, "test", "b' is a letter"),
]


def test_without_its_files_the_stage_before_is_named(tmp_path):
    outputs = [tmp_path / output for output in ("table", "words", "pairs")]
    for name in DATASETS:
        with pytest.raises(DataError, match=r"no such folder.*manymatch download"):
            write_captions(name, tmp_path / "raw", *outputs, minimum_count=1)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Return a function that runs the stage on rows and writes `table`, `words` and `pairs`."""
    raw = tmp_path / "raw"
    (raw / "images").mkdir(parents=True)
    for name in "abcd":
        (raw / "images" / f"{name}.jpg").write_bytes(b"x")

    def run(rows, extra=None, minimum_count=1):
        monkeypatch.setattr(captions, "dataset", lambda name: Made(rows, extra))
        outputs = [tmp_path / name for name in ("table", "words", "pairs")]
        write_captions("made", raw, *outputs, minimum_count=minimum_count)

    return run


def test_the_table_holds_the_rows(stage, tmp_path):
    stage(GOOD)
    table = pq.read_table(tmp_path / "table")
    assert table.schema.equals(CAPTIONS)
    assert table["caption_id"].to_pylist() == ["a#0", "a#1", "b#0", "c#0", "d#0"]
    assert table.to_pylist()[1] == {
        "image_id": "a",
        "caption_id": "a#1",
        "split": "train",
        "caption": "cats",
        "file": "images/a.jpg",
        "labels": [3, 1],
    }


def test_the_vocabulary_comes_from_training_alone_without_rare_words(stage, tmp_path):
    stage(GOOD)
    assert Vocabulary.load(tmp_path / "words").words[3:] == ("a", "cat", "cats", "sits")
    rows = [row("a", 0, text="cat cat dog"), row("a", 1, text="dog bird"), VALIDATION]
    stage(rows, minimum_count=2)
    assert Vocabulary.load(tmp_path / "words").words[3:] == ("cat", "dog")


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("extra", "pairs", "complete"),
    [
        (None, [], b"false"),
        (Relevance([], complete=True), [], b"true"),
        (Relevance(iter([("c", "d#0"), ("d", "c#0")]), complete=False), ["d#0", "c#0"], b"false"),
    ],
)
def test_judged_pairs(stage, tmp_path, extra, pairs, complete):
    stage(GOOD, extra)
    table = pq.read_table(tmp_path / "pairs")
    assert table["caption_id"].to_pylist() == pairs
    assert table.schema.metadata[b"complete"] == complete


PAIRS = {
    ("z", "d#0"): "no image 'z' in the caption table",
    ("c", "z#0"): "no caption 'z#0' in the caption table",
    ("c", "c#0"): "an own caption of image 'c'",
    ("c", "b#0"): "not in the same split",
}
TEXTS = {
    "": "empty caption",
    " \t\u3000 ": "empty caption",
    'b"a dog\'s ball"': "printed instead of decoded",
    "a\x00dog": "character U+0000 in a caption",
    "a \x1b[31mdog": "character U+001B in a caption",
    "caf\ufffd": "character U+FFFD in a caption",
    "half \ud800": "character U+D800 in a caption",
    "long " * MAX_CHARACTERS: "a caption of 10,000 characters (at most 2,000)",
}
TWO_SPLITS = "image 'a' is in split test and in split train"
ROWS = [
    ([row("a", 0), row("a", 0)], "a second caption 'a#0'"),
    ([row("a", 0), row("a", 1, "test")], TWO_SPLITS),
    ([row("a", 0), row("b"), row("a", 1)], "captions of image 'a' are not consecutive"),
    ([row("a", 0), row("a", 1, file="images/b.jpg")], "image 'a' has two files"),
    ([row("z")], "caption 'z#0' has no image: images/z.jpg does not exist"),
    ([row("a", split="val")], "unknown split 'val' (known: train, validation, test)"),
    ([row("a", file="../raw/images/a.jpg")], "leaves the data set's folder"),
    ([row("a b", file="images/a.jpg")], "image_id 'a b' is not one word"),
    ([row("a\x07", file="images/a.jpg")], "is not one word"),
    ([], "made: no captions of training images"),
    ([row("a"), row("c", split="test")], "made: no captions of validation images"),
]
REFUSED = [
    *((rows, None, "", words) for rows, words in ROWS),
    *(
        ([row("a", text=text, where="x.txt:17")], None, "x.txt:17: ", w)
        for text, w in TEXTS.items()
    ),
    *((GOOD, pair, "made: judged pairs: ", words) for pair, words in PAIRS.items()),
]


@pytest.mark.parametrize(("rows", "pair", "start", "words"), REFUSED)
def test_a_fault_is_one_line_and_the_earlier_outputs_stay(
    stage, tmp_path, rows, pair, start, words
):
    stage(GOOD)
    before = files_of(tmp_path)
    with pytest.raises(DataError) as caught:
        stage(rows, pair and Relevance([pair], complete=False))
    line = str(caught.value)
    assert line.startswith(start) and words in line and "\n" not in line and len(line) < 250
    assert files_of(tmp_path) == before and len(before) == 6  # with their seals


def test_an_image_that_is_a_link_out_of_the_folder_is_refused(stage, tmp_path):
    (tmp_path / "secret.jpg").write_bytes(b"x")
    (tmp_path / "raw" / "images" / "z.jpg").symlink_to(tmp_path / "secret.jpg")
    with pytest.raises(DataError, match="a link out of"):
        stage([row("z")])


def test_a_full_disk_is_one_line_and_leaves_earlier_outputs(stage, tmp_path):
    stage(GOOD)
    before = files_of(tmp_path)
    rows = [row("a", number, text=f"caption number {number * 7919}") for number in range(8000)]
    line = error_on_full_disk(lambda: stage(rows), room=20_000)
    assert line.startswith("StorageError: ") and "no space left while writing" in line
    assert "\n" not in line and files_of(tmp_path) == before
