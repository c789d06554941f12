"""Judgments of people: what counts as true, what an evaluation reads, how annotators agree."""

import pytest
import torch

from manymatch.evaluation.protocols.relevance import read_judgments
from manymatch.evaluation.votes import agreements, majority, read_votes, record

A, B, C = ("i0", "c1"), ("i1", "c0"), ("i0", "c2")


def votes(**answers):
    """Votes of annotators from texts such as "yn-", one sign for each pair."""
    meaning = {"y": True, "n": False, "-": None}
    return {
        name: {pair: meaning[sign] for pair, sign in zip((A, B, C), text, strict=True)}
        for name, text in answers.items()
    }


def test_a_pair_is_what_most_annotators_say():
    assert majority(votes(ann="yn-", bob="yy-", eve="nn-")) == {A: True, B: False}
    assert majority(votes(ann="y--", bob="n-y")) == {C: True}


@pytest.mark.parametrize(
    ("one", "other", "pairs", "kappa"),
    [
        ("yny", "yny", 3, 1.0),
        ("yn-", "ny-", 2, -1.0),
        ("yyy", "yyy", 3, None),
        ("yyn", "yny", 3, -0.5),
    ],
)
def test_kappa(one, other, pairs, kappa):
    (found,) = agreements(votes(ann=one, bob=other))
    assert found.pairs == pairs and found.kappa == (
        kappa if kappa is None else pytest.approx(kappa)
    )


def test_a_record_is_read_again_and_replaces_the_former_vote(tmp_path):
    path = tmp_path / "x.csv"
    odd = ('i,"0"', " c 1 ")
    for pair, answer in ((odd, True), (B, False), (odd, None)):
        record(path, pair, answer, "ann")
    read = read_votes(path)
    assert read == {"ann": {odd: None, B: False}}


def test_columns_of_the_user_are_kept(tmp_path):
    path = tmp_path / "x.csv"
    header = "image_id,Comment,caption_id, Relevant,annotator,comment"
    path.write_text(f"{header}\ni0, See 5,c1,true,ann,\n")
    for pair in (A, B):
        record(path, pair, False, "ann")
    lines = [line.split(",") for line in path.read_text().splitlines()]
    assert [line[:3] + line[5:] for line in lines] == [
        ["image_id", "caption_id", "relevant", "Comment", "comment"],
        [*A, "false", " See 5", ""],
        [*B, "false", "", ""],
    ]


def test_a_link_of_the_user_stays(tmp_path):
    """Several people may share the file."""
    path, shared = tmp_path / "x.csv", tmp_path / "shared.csv"
    shared.write_text("image_id,caption_id\ni1,c0\n")
    path.symlink_to(shared)
    record(path, A, True, "ann")
    assert path.is_symlink() and read_votes(shared) == {"": {B: True}, "ann": {A: True}}


def test_people_decide_against_the_table_and_not_about_annotated_pairs(tmp_path):
    ids, path = ["i0", "i1"], tmp_path / "x.csv"
    path.write_text("image_id,caption_id,relevant\ni0,c1,true\ni0,c2,false\n")
    said = {A: False, C: True, ("i0", "c0"): False, ("i9", "c0"): True}
    judged = read_judgments(path, ids, ["c0", "c1", "c2"], torch.tensor([0, 1, 1]), said)
    assert judged.extra.tolist() == [[0, 2]] and judged.judged_false.tolist() == [[0, 1]]
