"""Columns of the tables as Python values: as pyarrow itself gives them."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa
import pytest

from manymatch.batch.scene_graph import SCHEMA, Relation, SceneGraph
from manymatch.shards.tables import _values

RELATION = {"subject": 0, "label": "on", "object": 1}
COLUMNS = {
    "objects": [["dog", "ball"], [], ["cat"], []],
    "attributes": [[["old", "brown"], []], [], [[]], [["red"]]],
    "relations": [[RELATION, {**RELATION, "label": "near"}], [], [RELATION], []],
    "caption_id": ["a", "b", None, "d"],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_pyarrows(name: str) -> None:
    array = pa.array(COLUMNS[name], SCHEMA.field(name).type)
    assert _values(array) == COLUMNS[name]
    assert _values(array.slice(1, 2)) == COLUMNS[name][1:3]
    assert _values(array.slice(4)) == []


def test_missing_lists_and_structures_stay_missing() -> None:
    lists = [[1, None], None, [], [3]]
    assert _values(pa.array(lists, pa.list_(pa.int32()))) == lists
    assert _values(pa.array(lists, pa.list_(pa.int32())).slice(1)) == lists[1:]
    structures = [{"subject": 1}, None, {"subject": None}]
    assert _values(pa.array(structures, pa.struct([("subject", pa.int8())]))) == structures


def test_a_graph_as_a_dictionary_has_all_its_parts() -> None:
    graph = SceneGraph(("dogs", "ball"), ("dog", "ball"), (("two",), ()), (Relation(0, "on", 1),))
    assert graph.to_dict() == asdict(graph)
    assert list(graph.to_dict()) == list(asdict(graph))
    assert SceneGraph.from_dict(graph.to_dict()) == graph
