"""Scores from files are probed as a model's own are, and stand beside them in the report."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from untrained import save_untrained

from manymatch.cli.commands import app
from manymatch.evaluation.ensemble import reranked
from manymatch.evaluation.external.score import ExternalFiles, score
from manymatch.evaluation.protocols.recall import recall
from manymatch.experiments.probes import all_probes as probe
from manymatch.experiments.probes.all_probes import probe_scores, reranking
from manymatch.experiments.probes.probed_model import ProbedModel

IDENTITY = {"dataset": "tiny", "split": "test", "preset": "theirs", "method": "external"}


@pytest.fixture(scope="module")
def model(tmp_path_factory, data):
    return save_untrained(tmp_path_factory.mktemp("models") / "cora", data, "cora")


@pytest.fixture(scope="module")
def ours(model, data):
    return ProbedModel.open(model, data.shards, "test")


@pytest.fixture
def matrix(ours, tmp_path):
    """Our model's own scores, as another program would give them."""
    scores = ours.trained.method.score(ours.embedded.images, ours.embedded.texts)
    np.save(tmp_path / "scores.npy", scores.numpy())
    return tmp_path / "scores.npy"


def probed(data, matrix, target):
    made = ExternalFiles(scores=(str(matrix),))
    scored = score("tiny", made, data.captions, protocols=["pairs"])
    probe_scores(scored.ranked, data.captions, data.graphs, target, IDENTITY)
    return json.loads(target.read_text())


def test_a_matrix_is_probed_as_the_model_that_made_it(data, model, matrix, tmp_path):
    probe.probe(model, data.shards, tmp_path / "cora.json", only=["rich_captions", "reranking"])
    own = json.loads((tmp_path / "cora.json").read_text())["studies"]
    theirs = probed(data, matrix, tmp_path / "theirs.json")
    assert theirs["method"] == "external"
    assert theirs["studies"]["rich_captions"] == own["rich_captions"]
    (table,) = theirs["studies"]["reranking"]["tables"]
    split = own["reranking"]["tables"][1]
    assert (table["title"], table["columns"]) == (split["title"], split["columns"])
    assert table["rows"] == split["rows"][:1]
    assert table["rows"][0][:2] == ["plain", None]


def test_the_re_ranked_row_is_of_equation_14_with_the_best_beta(ours):
    validation, split = reranking(ours).tables
    beta = max((rsum, beta) for beta, rsum in validation.rows)[1]
    embedded = ours.embedded
    values = recall(
        reranked(ours.trained.method.score, beta),
        embedded.images,
        embedded.texts,
        embedded.image_index,
    )
    cells = [values[way][cut] for way in ("i2t", "t2i") for cut in ("r1", "r5", "r10")]
    expected = [round(value, 2) for value in [*cells, values["rsum"]]]
    assert split.rows[1] == ["re-ranked", beta, *expected]


def test_the_command_probes_what_it_keeps_if_there_are_scene_graphs(
    root, data, matrix, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_bytes((root / "params.yaml").read_bytes())
    for folder, table in (("captions", data.captions), ("scene_graphs", data.graphs)):
        (tmp_path / "data" / folder).mkdir(parents=True)
        pq.write_table(pq.read_table(table), tmp_path / "data" / folder / "tiny.parquet")
    relevance = tmp_path / "data" / "captions" / "tiny.relevance.parquet"
    graphs = pq.read_table(data.captions).slice(0, 0).select(["image_id", "caption_id"])
    pq.write_table(graphs.replace_schema_metadata({"complete": "true"}), relevance)
    words = ["score", "tiny", "--scores", str(matrix), "--protocol", "pairs"]
    app(words, standalone_mode=False)
    assert not Path("reports").exists()
    app([*words, "--as", "theirs"], standalone_mode=False)
    record = json.loads(Path("reports/probes/tiny/theirs.json").read_text())
    assert {key: record[key] for key in IDENTITY} == IDENTITY
    assert set(record["studies"]) == {"rich_captions", "reranking"}
    Path("data/scene_graphs/tiny.parquet").unlink()
    app([*words, "--as", "theirs"], standalone_mode=False)
    assert not Path("reports/probes/tiny/theirs.json").exists()
    message = capsys.readouterr().err
    assert "tiny.parquet is missing" in message and "scene_graphs" in message
