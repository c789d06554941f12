"""Faulty values of every kind of file: one line with the file, the key and the remedy."""

import json
import math

import pytest
from made_probes import write_probes
from made_results import tuning, write_clusters, write_costs, write_experiment, written
from made_sets import shown_sets

from manymatch.results.costs import Costs
from manymatch.results.experiments import Experiment
from manymatch.results.probes import Clusters, Probes
from manymatch.results.retrieval import Samples
from manymatch.results.sets import SetDetails
from manymatch.results.tuning import Tuning
from manymatch.util.errors import DataError

JPEG = "/9j/AA=="
GRAPH = {"objects": ["dog"], "names": ["dog"], "attributes": [[]], "relations": []}
IMAGE = {"image_id": "0", "thumbnail": JPEG, "score": 0.5, "mark": "own"}
CAPTION = {"caption_id": "0#0", "caption": "A red dog.", "score": 0.5, "mark": "true"}
SAMPLES = {
    "images": [{"image_id": "0", "thumbnail": JPEG, "captions": [], "retrieved": [CAPTION] * 3}],
    "captions": [CAPTION | {"graph": GRAPH, "retrieved": [IMAGE] * 3}],
}


def write_run(reports, name, value):
    return written(reports / "runs" / "scenes" / "cora" / f"{name}.json", value)


WRITERS = {
    Experiment: lambda reports: write_experiment(reports, "what", {"a": [1, 2]}),
    Clusters: lambda reports: write_clusters(reports, "scenes", "swamp", {"1": JPEG}),
    Costs: write_costs,
    Samples: lambda reports: write_run(reports, "samples", SAMPLES),
    SetDetails: lambda reports: write_run(reports, "sets", shown_sets(SAMPLES, 4, True)),
    Probes: lambda reports: write_probes(reports, "scenes", "cora", [JPEG]),
    Tuning: lambda reports: written(reports / "tuning/scenes/vsepp.json", tuning([1.0, None])),
}
RUN = ("points", 0, "runs", 0, "metrics")
GROUPS = {"least": [1, 2], "queries": [3, 4], "map_at_r": [50.0]}
FAULTS = [
    (Experiment, ("name",), "that", "belongs to 'scenes/that'"),
    (Experiment, RUN, {}, "points.0.runs.0.metrics.rsum: Field req"),
    (Experiment, (*RUN, "rsum"), math.nan, "finite number"),
    (Experiment, ("points", 0, "settings"), {"b": 1}, "a=1: the setting 'a' is missing"),
    (Experiment, ("points", 0, "label"), "a=2", "two points have the same label"),
    (Experiment, ("points", 0, "runs", 0, "seed"), 1, "a=1: two runs have the same seed"),
    (Experiment, ("points", 0, "runs", 0, "hits"), {"i2t": "3", "t2i": "33"}, "of all queries"),
    (Experiment, (*RUN, "multi", "i2t", "by_positives"), GROUPS, "map_at_r differ in length"),
    (Clusters, ("classes", 0, "thumbnails", "1"), "javascript:alert(1)", "not a base64 JPEG"),
    (Costs, ("rows", 0, "step", "seconds"), -1, "rows.0.step.seconds"),
    (Samples, ("images", 0, "thumbnail"), '"><script>', "images.0.thumbnail: not a"),
    (Samples, ("captions", 0, "graph", "attributes"), [], "0.graph: attributes or relations"),
    (SetDetails, ("pairs", "cosine"), [[1.0]], "differ in shape"),
    (SetDetails, ("image_maps", 0, "grid"), 6, "49 weights for 36 regions"),
    (SetDetails, ("image_maps", 0, "passes", 0, 0), [1.0], "passes.0: expected rows of equal"),
    (SetDetails, ("caption_maps", 0, "words"), ["dog"], "weights for 1 words"),
    (SetDetails, ("projection", "texts", "places", 0, 0), [0, 1001], "texts.places.0.0.1"),
    (SetDetails, ("nearest", "captions", 0, "elements", 0, 0, "element"), 0, "elements.0.0.elem"),
    (Probes, ("studies", "rich_captions", "tables", 0, "rows", 0), [], "table 'Text to image'"),
    (Probes, ("studies", "entity_retrieval", "samples", 0, "thumbnail"), "x", "base64 JPEG"),
    (Probes, ("studies", "parse_errors", "samples", 0, "after", "attributes"), [], "0.after"),
    (Tuning, ("trials", 0, "state"), "pruned", "no trial is complete"),
    (Tuning, ("trials", 0, "rsum"), None, "a complete trial has no rsum"),
]


@pytest.mark.parametrize(("kind", "location", "value", "words"), FAULTS)
def test_a_fault_is_one_line(kind, location, value, words, tmp_path):
    path = WRITERS[kind](tmp_path)
    kind.read(path)
    content = part = json.loads(path.read_text())
    *outer, last = location
    for key in outer:
        part = part[key]
    part[last] = value
    path.write_text(json.dumps(content))
    with pytest.raises(DataError) as error:
        kind.read_all(tmp_path)
    message = str(error.value)
    assert message.startswith(f"{path}: ") and words in message and "\n" not in message
    assert "Run 'manymatch " in message
