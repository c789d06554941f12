"""CUB's class-level retrieval against naive loops, and the labels that it reads."""

import re
import statistics

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_scores import consecutive_index, distinct, precision_at_r, ranked, ranked_split

from manymatch.datasets.base import CAPTIONS
from manymatch.evaluation.protocols import suite
from manymatch.evaluation.protocols.class_matches import classes
from manymatch.evaluation.protocols.ranked_split import DoesNotApply
from manymatch.evaluation.protocols.relevance import Labels, read_labels
from manymatch.util.errors import ConfigError, DataError

OF_IMAGES = [(1,), (7,), (2,), (1,), (8,), (7,), (2,), (2,)]
SEEN = frozenset({1, 2, 3})


def _naive(table, members):
    texts = [2 * image + k for image in members for k in (0, 1)]
    numbers = {way: {"r_precision": [], "r1": []} for way in ("i2t", "t2i")}
    queries = {
        "i2t": [(image, [table[image, text].item() for text in texts]) for image in members],
        "t2i": [(text // 2, [table[image, text].item() for image in members]) for text in texts],
    }
    items = {"i2t": [text // 2 for text in texts], "t2i": members}
    for way, asked in queries.items():
        for image, scores in asked:
            right = [OF_IMAGES[item] == OF_IMAGES[image] for item in items[way]]
            numbers[way]["r_precision"].append(precision_at_r(scores, right))
            numbers[way]["r1"].append(ranked(scores, right)[0])
    return {
        way: {name: 100 * statistics.fmean(entry) for name, entry in values.items()}
        for way, values in numbers.items()
    }


@pytest.mark.parametrize("ties", [1, 16])
@pytest.mark.parametrize("other", [False, True])
def test_both_settings_equal_a_naive_loop(ties, other):
    """Captions may rank by another score."""
    index = consecutive_index(8, 2)
    for seed in range(4):
        table, back = (distinct(8, 16, seed + step) // ties for step in (0, int(other)))
        values = classes(ranked_split(table, index, Labels(OF_IMAGES, SEEN), back=back))
        for setting, selected in (("all_classes", [0, 2, 3, 6, 7]), ("zero_shot", [1, 4, 5])):
            for way, scores in (("i2t", table), ("t2i", back)):
                assert values[setting][way] == pytest.approx(_naive(scores, selected)[way])
    unseen = Labels(OF_IMAGES, frozenset({99}))  # then one setting has no images
    assert list(classes(ranked_split(table, index, unseen))) == ["zero_shot"]


@pytest.mark.parametrize(
    "labels, reason",
    [
        (None, "one class label"),
        (Labels([(1,), (1, 2)], SEEN), "one class label"),
        (Labels([(1,), ()], SEEN), "one class label"),
        (Labels([(1,), (2,)]), "training image"),
    ],
)
def test_what_lacks_classes_is_told(labels, reason):
    with pytest.raises(DoesNotApply, match=reason):
        classes(ranked_split(distinct(2, 4, 0), consecutive_index(2, 2), labels))


def _table(path):
    rows = [
        ("a", "a0", "train", "x", "a.jpg", [3]),
        ("b", "b0", "test", "x", "b.jpg", [3]),
        ("b", "b1", "test", "x", "b.jpg", [3]),
        ("c", "c0", "test", "x", "c.jpg", []),
        ("d", "d0", "validation", "x", "d.jpg", [4, 5]),
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(columns, schema=CAPTIONS), path)
    return path


def test_labels_come_from_the_caption_table(tmp_path):
    table = _table(tmp_path / "t.parquet")
    labels = read_labels(table, ["d"])
    assert labels.image_labels == [(4, 5)] and labels.seen == {3}
    labels = read_labels(table, ["b", "c"])
    assert labels.image_labels == [(3,), ()]
    assert labels.seen == {3, 4, 5}  # what chose the model is not unseen
    with pytest.raises(DataError, match=r"no image 'z'.*stage 'captions'"):
        read_labels(table, ["b", "z"])


def test_a_data_set_gets_its_protocols_and_is_told_what_is_left_out(capsys, tmp_path):
    of = ranked_split(distinct(8, 16, 0), consecutive_index(8, 2), Labels(OF_IMAGES, SEEN))
    assert list(suite.dataset_metrics("cub", of)) == ["classes"]
    assert list(suite.dataset_metrics("coco", of)) == ["pmrp"]
    left_out = re.findall(r"left out (\w+)", capsys.readouterr().err)
    assert left_out == ["coco_1k", "eccv_caption", "cxc"]
    assert suite.dataset_metrics("scenes", of) == {}
    table = _table(tmp_path / "t.parquet")
    assert suite.labels_for("scenes", table, ["b"]) is None
    assert suite.labels_for("cub", None, ["b"]) is None
    assert suite.labels_for("cub", table, ["b"]) == Labels([(3,)], frozenset({3, 4, 5}))

    with pytest.raises(ConfigError, match="no protocol 'pmpr'; did you mean 'pmrp'"):
        suite.protocol_metrics(["pmpr"], of)
