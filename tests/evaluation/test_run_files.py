"""Run files: their lines, and what other tools compute from them."""

from urllib.parse import unquote

import pytest
import torch
from made_scores import consecutive_index, distinct, ranked_split

from manymatch.evaluation.protocols.recall import ranks_of_relevant
from manymatch.evaluation.ranking.metrics import multi_match_metrics, recall_metrics
from manymatch.evaluation.ranking.ranks import Direction
from manymatch.evaluation.split_results import run_id, write_run


def test_lines_tell_all_scores_apart(tmp_path):
    direction = Direction(torch.tensor([1]), torch.tensor([[2, 0]]), torch.tensor([[0.5, 1 / 3]]))
    path = tmp_path / "i2t.trec"
    write_run(path, direction, ["my image.jpg"], ["a", "b", "c"], "cora")
    assert path.read_text() == (
        "my%20image.jpg Q0 c 1 0.5 cora\nmy%20image.jpg Q0 a 2 0.333333343 cora\n"
    )
    scores = torch.tensor([[1 + 2**-40, 1.0]], dtype=torch.float64)
    direction = Direction(torch.tensor([1]), torch.tensor([[0, 1]]), scores)
    write_run(tmp_path / "i2t.trec", direction, ["q"], ["a", "b"], "tag")
    lines = (tmp_path / "i2t.trec").read_text().splitlines()
    assert [float(line.split()[4]) for line in lines] == scores[0].tolist()


@pytest.mark.parametrize("name", ["a b", "50%", "tab\tnew\nline", "narrow\u202fspace", "é日本"])
def test_ids_are_one_field_and_come_back(name):
    assert len(run_id(name).split()) == 1
    assert unquote(run_id(name)) == name


def test_ir_measures_finds_the_same_numbers(tmp_path):
    ir_measures = pytest.importorskip("ir_measures")
    table, index = distinct(8, 24, 0), consecutive_index(8, 3)
    ranking = ranked_split(table, index, depth=24).ranking
    queries, items = [f"i {row}" for row in range(8)], [f"c {row}" for row in range(24)]
    write_run(tmp_path / "i2t.trec", ranking.i2t, queries, items, "random")

    run = list(ir_measures.read_trec_run(str(tmp_path / "i2t.trec")))
    relevant = index == torch.arange(8)[:, None]
    truth = [
        ir_measures.Qrel(run_id(queries[row]), run_id(items[column]), 1)
        for row, column in relevant.nonzero().tolist()
    ]
    success = {cut: ir_measures.Success @ cut for cut in (1, 5, 10)}
    theirs = ir_measures.calc_aggregate([*success.values(), ir_measures.Rprec], truth, run)
    recalls = recall_metrics(ranking.i2t.ranks)
    multi = multi_match_metrics([ranks_of_relevant(table, relevant)])
    for cut, measure in success.items():
        assert recalls[f"r{cut}"] == pytest.approx(100 * theirs[measure])
    assert multi["r_precision"] == pytest.approx(100 * theirs[ir_measures.Rprec])
