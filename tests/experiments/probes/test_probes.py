"""Probes of small untrained models on a few made-up images, against loops over what they say."""

import json

import pytest
import torch
from untrained import save_untrained

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.scene_graph import SceneGraph
from manymatch.experiments.probes import all_probes as probe
from manymatch.experiments.probes.all_probes import rich_captions
from manymatch.experiments.probes.entity_retrieval import (
    EntityVocabulary,
    entity_retrieval,
    true_pairs,
)
from manymatch.experiments.probes.parse_errors import parse_errors
from manymatch.experiments.probes.probed_model import ProbedModel
from manymatch.util.errors import ConfigError

WITHOUT_ENTITIES = ["entity_retrieval", "rich_captions"]


@pytest.fixture(scope="module")
def models(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("models")
    return {name: save_untrained(folder / name, data, name) for name in ("cora", "vsepp")}


@pytest.fixture(scope="module")
def probed(models, data):
    return ProbedModel.open(models["cora"], data.shards, "test")


def run(model, data, target, *only):
    probe.probe(model, data.shards, target, only=only)
    return json.loads(target.read_text())


def test_all_probes_of_one_model_and_one_keeps_the_others(models, data, tmp_path):
    target = tmp_path / "probes" / "tiny" / "cora.json"
    result = run(models["cora"], data, target)
    assert (result["preset"], result["method"], result["split"]) == ("cora", "cora", "test")
    assert set(result["studies"]) == set(probe.PROBES)
    for findings in result["studies"].values():
        assert set(findings) == {"title", "about", "tables", "samples"}
        for table in findings["tables"]:
            assert {len(row) for row in table["rows"]} == {len(table["columns"])}
    assert run(models["cora"], data, target, "entity_retrieval") == result
    for content in (target.read_text(), "{"):  # of another model, and a faulty one
        target.write_text(content)
        one = run(models["vsepp"], data, target, "rich_captions")
        assert list(one["studies"]) == ["rich_captions"]


def test_what_a_method_does_not_allow_is_left_out(models, data, tmp_path, capsys):
    result = run(models["vsepp"], data, tmp_path / "vsepp.json")
    assert sorted(result["studies"]) == WITHOUT_ENTITIES
    assert "no entities: parse_errors, reranking" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="probe 'parse_errors' needs the entities"):
        run(models["vsepp"], data, tmp_path / "vsepp.json", "parse_errors")
    with pytest.raises(ConfigError, match="'rich_caption' does not exist; did you mean 'rich_capt"):
        run(models["cora"], data, tmp_path / "x.json", "rich_caption")


def test_captions_are_embedded_as_the_split_is_and_no_error_changes_nothing(probed):
    assert [caption.id for caption in probed.captions] == probed.embedded.caption_ids
    again = probed.embed(probed.captions)
    torch.testing.assert_close(again.vectors, probed.embedded.texts.vectors)
    torch.testing.assert_close(again.entities, probed.embedded.texts.entities)
    assert torch.equal(again.entity_caption, probed.embedded.texts.entity_caption)
    table = parse_errors(probed).tables[0]
    assert {row[1] for row in table.rows} == {round(probed.rsum(again), 2)}
    assert table.columns == ["Error", "none", "10%", "20%", "30%"]


def test_rich_captions_are_those_with_most_parts(probed, monkeypatch):
    monkeypatch.setattr("manymatch.experiments.probes.all_probes.COUNT", 5)
    sizes = [
        sum(map(len, caption.graph.attributes)) + len(caption.graph.relations)
        for caption in probed.captions
    ]
    order = sorted(range(len(sizes)), key=lambda row: (-sizes[row], row))[:5]
    method, result = probed.trained.method, probed.embedded
    scores = method.score(result.images, result.texts)
    ranks = []
    for row in order:
        own = scores[result.image_index[row], row]
        ranks.append(1 + sum(float(other) > float(own) for other in scores[:, row]))
    (table,) = rich_captions(probed).tables
    recalls = [round(100 * sum(rank <= cut for rank in ranks) / 5, 2) for cut in (1, 5, 10)]
    assert table.rows[0][:5] == ["the 5 richest", sum(sizes[row] for row in order) / 5, *recalls]
    assert table.rows[1][0] == "all"


def caption(number, *objects):
    surface, names, attributes = zip(*objects, strict=True)
    return CaptionEntry(str(number), "", SceneGraph(surface, names, attributes, ()))


CAPTIONS = [
    caption(0, ("dogs", "dog", ("brown", "two")), ("cat", "cat", ())),
    caption(1, ("dog", "dog", ("brown",))),
    caption(2, ("dogs", "dog", ()), ("cat", "cat", ("big",))),
    caption(3, ("dogs", "dog", ("two", "brown")), ("dog", "dog", ())),
    caption(4, ("dogs", "dog", ("two", "brown")), ("dog", "dog", ())),
]
INDEX = torch.tensor([0, 0, 1, 2, 2])


def test_entities_are_distinct_and_true_where_they_are_said_with_no_fewer_attributes():
    vocabulary = EntityVocabulary.of(entry.graph for entry in CAPTIONS)
    texts = [entry.text for entry in vocabulary.captions]
    assert texts == ["cat", "big cat", "dog", "brown dog", "two brown dogs"]  # as said most often
    assert vocabulary.captions[4].graph == SceneGraph(("dogs",), ("dog",), (("two", "brown"),), ())
    expected = {
        (image, row)
        for image, entry in zip(INDEX.tolist(), CAPTIONS, strict=True)
        for name, attributes in zip(entry.graph.names, entry.graph.attributes, strict=True)
        for row, (other, fewer) in enumerate(vocabulary.entities)
        if other == name and set(fewer) <= set(attributes)
    }
    result = true_pairs(vocabulary, CAPTIONS, INDEX).tolist()
    assert result == sorted(map(list, expected))
    assert [0, 3] in result and [1, 3] not in result


def test_entities_are_ranked_for_each_image(probed):
    probe = entity_retrieval(probed)
    vocabulary = EntityVocabulary.of(entry.graph for entry in probed.captions)
    pairs = {
        tuple(pair)
        for pair in true_pairs(vocabulary, probed.captions, probed.embedded.image_index).tolist()
    }
    entities = probed.embed(vocabulary.captions).entities
    scores = probed.embedded.images.vectors[:, 0] @ entities.T
    hits, precisions = {1: [], 5: [], 10: []}, []
    for image, row in enumerate(scores.tolist()):
        order = sorted(range(len(row)), key=lambda entity: -row[entity])
        true = [(image, entity) in pairs for entity in order]
        for cut, hit in hits.items():
            hit.append(any(true[:cut]))
        precisions.append(sum(true[: sum(true)]) / sum(true))
    (table,) = probe.tables
    row = table.rows[0]
    assert row[0] == len(vocabulary.captions)
    assert row[1] == round(len(pairs) / len(scores), 2)
    expected = [100 * sum(hit) / len(hit) for hit in hits.values()]
    assert row[2:5] == [round(value, 2) for value in expected]
    assert row[6] == round(100 * sum(precisions) / len(precisions), 2)
    scores = [entity.score for entity in probe.samples[0].entities]
    assert scores == sorted(scores, reverse=True)
