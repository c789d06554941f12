"""A made-up folder of results with everything that the report can show."""

import json
import shutil

import numpy as np
from made_probes import write_probes
from made_results import (
    tuning,
    write_clusters,
    write_costs,
    write_experiment,
    write_sketches,
    write_synthetic,
    written,
)
from made_sets import add_sets, set_metrics
from report_pages import edit

from manymatch.results.ranked import write_ranked

EVIL = "<script>alert(1)</script>\"'><img src=http://evil.example/x onerror=alert(1)> & {{ 7 * 7 }}"
"""What a caption or a name of others may be."""
METHODS = ["vsepp", "vse_infinity", "pvse", "dive", "maxmatch", "a|b"]
CLAIMS = """
over: {preset: [vsepp, vse_infinity, pvse, dive, maxmatch, "a|b", planned]}
claims:
  Sets over single vectors: {better: [pvse, dive, maxmatch], other: [vsepp, vse_infinity]}
  DivE's sets wider: {better: dive, other: maxmatch, metrics: [image_variance, caption_variance]}
  A point without a result: {better: planned, other: dive}
"""


def complete(reports):
    """Add to a folder of results what is missing."""
    _write_experiments(reports)
    _write_scenes(reports)
    _write_coco(reports)
    shutil.rmtree(reports / "runs" / "flickr8k")
    shutil.rmtree(reports / "curves" / "flickr8k" / "cora")


def judge(metrics, gain):
    """Give metrics the values of one-to-many; `gain` is that of queries with two true items."""
    for way in metrics["multi"].values():
        way["others"] = 12.25 + gain
        way["by_positives"] = {
            "least": [1, 2],
            "queries": [40, 40],
            "map_at_r": [30.0, 20.0 + gain],
        }


def _write_experiments(reports):
    rsums = {"dive": [310.0, 312.0, 305.0], "pvse": [300.0, 90.0, 280.0]}
    path = write_experiment(reports, "scenes-study", {"preset": METHODS}, rsums=rsums)

    def change(experiment):
        for point in experiment["points"]:
            sets = point["label"] in ("dive", "maxmatch")
            for run in point["runs"]:
                judge(run["metrics"], gain=sets * (1.5 + run["seed"]))
                run["hits"] = _hits(run["seed"])
                if sets:
                    made = set_metrics(4, alive=point["label"] == "dive")
                    shares = {"together": 70.0, "together_by_chance": 60.5}
                    made["meanings"] = shares | {"apart": 50.0, "apart_by_chance": 45.0}
                    run["metrics"]["sets"] = made
                if point["label"] == "maxmatch":  # other judged pairs make other groups
                    for way in run["metrics"]["multi"].values():
                        way["by_positives"]["queries"] = [40, 39]

    edit(path, change)
    (reports.parent / "experiments").mkdir(exist_ok=True)
    (reports.parent / "experiments" / "scenes-study.yaml").write_text(CLAIMS)
    write_experiment(reports, "layers", {"attribute_layers": [1, 2], "object_layers": [1, 2, 3]})
    write_experiment(reports, "named", {"a|b": ["x", None]}, keys=[], seeds=1)
    # The page of a data set is not that of another one with a similar name.
    write_experiment(reports, "alone", {"alpha": [10, 2, 5]}, dataset="scenes-experiments")
    write_sketches(reports)
    collapsed = {"contrastive": [86.0, 2.25, 85.0], "SwAMP": [90.0, 91.0, 89.0]}
    write_synthetic(reports, "collapsed", collapsed)
    write_synthetic(reports, "a", {"x": [1.0], "y": [2.0]}, published={}, baseline=None)


def _hits(seed):
    i2t = "".join(str((n + seed) % 4) for n in range(300))
    return {"i2t": i2t, "t2i": " ".join([f"{seed % 4}1023"] * 300)}


def _write_scenes(reports):
    pictures = _answers_with_labels(reports / "runs/scenes/cora/samples.json")
    add_sets(reports, "scenes", "cora", 4, alive=True)
    add_sets(reports, "scenes", "vsepp", 2, alive=False)
    edit(reports / "results/scenes/vsepp.json", lambda metrics: metrics["sets"].pop("texts"))
    attention = {"image_maps": [], "caption_maps": []}
    edit(reports / "runs/scenes/vsepp/sets.json", lambda sets: sets.update(attention))
    for preset, gain in (("vsepp", 0.0), ("cora", 1.5)):
        path = reports / "results/scenes" / f"{preset}.json"
        edit(path, lambda metrics, gain=gain: judge(metrics, gain))
    _write_run_files(reports)
    path = write_costs(reports, git_revision="0123456789abcdef")
    edit(path, lambda costs: costs["rows"][4]["step"].update(peak_gpu_memory_mb=5120.4))
    write_probes(reports, "scenes", "cora", pictures)
    edit(write_probes(reports, "scenes", "vsepp", pictures, entities=False), _add_own_probe)
    outdated = write_probes(reports, "scenes", "cora+rerank", pictures)
    edit(outdated, lambda probes: probes.update(checkpoint_sha256="8"))
    write_clusters(reports, "scenes", "vsepp", {}, checkpoint_sha256="9")
    for preset, rsums in {"vsepp": [50.0, 60.0, -55.0, 54.0], "dive": [50.0, None, 70.0]}.items():
        written(reports / "tuning" / "scenes" / f"{preset}.json", tuning(rsums, preset))
    edit(reports / "clusters/scenes/swamp.json", _spoil_class)
    edit(reports / "synthetic/swamp.json", lambda value: value.update(about=EVIL))
    spoiled = {"note": EVIL, "resolved": {EVIL: EVIL}}
    edit(reports / "provenance/scenes/cora.json", lambda value: value.update(spoiled))
    record = json.loads((reports / "provenance/scenes/cora.json").read_text())
    members = [{**record, "preset": "cora"}, {**record, "preset": "cora-1", "seed": 1}]
    together = {"seed": "0+1", "members": members}
    for preset, change in {
        "cora+cora-1": together,
        "vsepp+cora": together,  # no baseline
        "cora+rerank": {"rerank_beta": 0.65},
        "cora+cora-1+rerank": {**together, "rerank_beta": 0.6},
    }.items():
        shutil.copy(reports / "results/scenes/cora.json", reports / f"results/scenes/{preset}.json")
        write_provenance(reports, record | change | {"preset": preset})


def _add_own_probe(record):
    table = {"title": "Own", "columns": ["What", "How much"], "rows": [["this", 77.25]]}
    own = {"title": "My probe", "about": "Mine.", "tables": [table], "samples": [{"a": 1}]}
    record["studies"]["rich_captions"].update(about="Another.")
    record["studies"].update(mine=own)


def _answers_with_labels(path):
    """Let three answers say in how many labels they differ, and take a picture and a graph away.

    Returns:
        Some pictures of the samples.
    """
    samples = json.loads(path.read_text())
    for query, zetas in ((samples["images"][0], (0, 1, None)), (samples["captions"][0], (3,))):
        for answer, zeta in zip(query["retrieved"], zetas, strict=False):
            answer["zeta"] = zeta
    pictures = [query["thumbnail"] for query in samples["images"][:3]]
    samples["images"][1]["thumbnail"] = samples["captions"][1]["graph"] = None
    image, text = samples["images"][2], samples["captions"][2]
    image.update(image_id=EVIL, captions=[EVIL])
    text.update(caption_id=EVIL, caption=EVIL)
    image["retrieved"][0]["caption"] = text["retrieved"][0]["image_id"] = EVIL
    edges = [{"subject": 0, "label": EVIL, "object": 1}]
    names = {"objects": [EVIL] * 2, "names": [EVIL] * 2}
    text["graph"] = {**names, "attributes": [[EVIL], []], "relations": edges}
    path.write_text(json.dumps({kind: queries[:3] for kind, queries in samples.items()}))
    edit(path.parents[1] / "vsepp" / "samples.json", _keep_few)
    return pictures


def _spoil_class(clusters):
    first = clusters["classes"][0]
    first["captions"][0]["caption"] = first["nouns"][0][0] = EVIL
    first["thumbnails"] = {EVIL: next(iter(first["thumbnails"].values()))}


def _keep_few(samples):
    samples.update(images=samples["images"][1:4], captions=samples["captions"][:3])


def _write_run_files(reports):
    """The table of captions: ten queries, whose ranks fit the metrics of vsepp, not of cora."""
    ids, ranks = [f"{query:06d}#0" for query in range(10)], np.array([1] * 5 + [2, 4, 5, 9, 20])
    items, scores = np.zeros((10, 20)), np.zeros((10, 20), np.float32)
    for preset in ("vsepp", "cora"):
        path = reports / "runs/scenes" / preset / "t2i.parquet"
        write_ranked(path, ids, ranks, items, scores, None)
    values = {"r1": 50.0, "r5": 80.0, "r10": 90.0}
    edit(reports / "results/scenes/vsepp.json", lambda metrics: metrics["t2i"].update(values))


def _write_coco(reports):
    """Results of all protocols, of pairs, on few images, and of another program."""
    record = json.loads((reports / "provenance/scenes/cora.json").read_text())
    record |= {"dataset": "coco", "images": 5000, "captions": 25_010}
    values = recalls(50.0)
    every = values | {"coco_1k": recalls(70.0), "pmrp": {"1k": _pmrp(41.25, 42.0)}}
    every |= {"cxc": {way: {"r1": 60.0} for way in ("i2t", "t2i")}}
    for preset, metrics, change in (
        ("cora", every, {"setting": "reproduced"}),
        ("dive", values | {"sets": set_metrics(4, alive=True)}, {"method": "dive"}),
        ("a_b & 100%", values, {"method": "dive", "images": 5}),
        ("theirs", values, {"method": "external", "setting": "external"}),
    ):
        written(reports / "results/coco" / f"{preset}.json", metrics)
        write_provenance(reports, record | change | {"preset": preset})


def recalls(best):
    """`i2t`, `t2i` and `rsum` with this R@1 in both directions."""
    way = {"r1": best, "r5": 80.0, "r10": 90.0, "medr": 1.0, "meanr": 3.0}
    return {"i2t": way, "t2i": way, "rsum": 2 * best + 340}


def _pmrp(i2t, t2i):
    """The means over zeta, and values of zeta 0, 1, 2 around them."""
    alone = {f"zeta{z}": {"i2t": i2t + z - 1, "t2i": t2i + 10 * (z - 1)} for z in range(3)}
    return {"i2t": i2t, "t2i": t2i} | alone


def write_provenance(reports, record):
    """The provenance of a result."""
    return written(reports / "provenance" / record["dataset"] / f"{record['preset']}.json", record)
