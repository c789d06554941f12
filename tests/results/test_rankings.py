"""Ranks from run files."""

import pytest

from manymatch.results.runs import read_positive_ranks
from manymatch.util.errors import DataError

RUN = """\
a#0 Q0 b 1 0.9 t
a#0 Q0 a 2 0.8 t
a#0 Q0 c 3 0.8 t
b#0 Q0 b 1 0.9 t
b#0 Q0 a 2 0.8 t
b#0 Q0 c 3 0.7 t
c#0 Q0 b 1 0.9 t
c#0 Q0 a 2 0.8 t
c#0 Q0 d 3 0.7 t
"""


def test_the_first_positive_counts_and_ties_count_against_it(tmp_path):
    path = tmp_path / "t2i.trec"
    path.write_text(RUN)
    ranks = read_positive_ranks(path)
    assert ranks is not None
    assert (ranks.depth, ranks.ranks) == (3, {"a#0": 3, "b#0": 1, "c#0": None})
    assert [round(ranks.recall(k), 1) for k in (1, 2, 3)] == [33.3, 33.3, 66.7]
    path.write_text("a Q0 b#0 1 0.9 t\na Q0 a#1 2 0.8 t\na Q0 a#0 3 0.8 t\n")
    ranks = read_positive_ranks(path)
    assert ranks is not None and ranks.ranks == {"a": 2}  # the tie is another positive
    path.write_text("a%20b%25#0 Q0 a%20b%25 1 0.9 t\n")
    ranks = read_positive_ranks(path)
    assert ranks is not None and ranks.ranks == {"a b%#0": 1}


def test_a_missing_run_file_is_none_and_a_faulty_one_is_one_line(tmp_path):
    path = tmp_path / "t2i.trec"
    assert read_positive_ranks(path) is None
    faults = ("a#0 Q0 b first 0.9 t\n", "a#0 Q0 b 1\n", "a#0 Q0 b  0.9 t\n")
    words = ("expected lines 'QUERY", "expected lines 'QUERY", "a line has no rank")
    for text, word in zip(faults, words, strict=True):
        path.write_text(text)
        with pytest.raises(DataError, match=rf"t2i\.trec: {word}") as error:
            read_positive_ranks(path)
        assert "\n" not in str(error.value)
