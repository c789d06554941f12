"""Protocols as tasks of mteb, and models as its models: the numbers are those of `score`."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from dataset_stages import Stages
from PIL import Image

import manymatch
from manymatch.config.layout import Layout
from manymatch.datasets.base import CAPTIONS, RELEVANCE
from manymatch.evaluation.external.score import ExternalFiles, score
from manymatch.evaluation.protocols.ranked_split import DoesNotApply
from manymatch.util.errors import ConfigError, DataError

mteb = pytest.importorskip("mteb")
if mteb:
    from manymatch.evaluation.external.mteb import MtebModel, tasks


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    """A checkout with a few made-up scenes."""
    layout = Layout(tmp_path_factory.mktemp("mteb"))
    stages = Stages("scenes", layout.root)
    sizes = {"train": 2, "validation": 2, "test": 12}
    stages({"seed": 3, "image_size": 64, "twins": 0.4, **sizes})
    layout.captions("scenes").parent.mkdir(parents=True)
    layout.raw("scenes").parent.mkdir(parents=True)
    stages.raw.rename(layout.raw("scenes"))
    (layout.root / "table").rename(layout.captions("scenes"))
    (layout.root / "pairs").rename(layout.relevance("scenes"))
    return layout


def _scored(layout, scores):
    files = ExternalFiles(scores=(str(scores),))
    return score("scenes", files, layout.captions("scenes"), layout.relevance("scenes")).values


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flickr8k-vsepp", "flickr8k-dive"])
def test_a_model_of_vectors_or_sets_has_the_numbers_of_score(layout, tmp_path, name):
    model = manymatch.load(name, "cpu")
    made = tasks("scenes", root=layout.root)
    results = mteb.evaluate(MtebModel(model), made, cache=None, prediction_folder=tmp_path)
    rows = pq.read_table(layout.captions("scenes")).to_pylist()
    rows = [row for row in rows if row["split"] == "test"]
    files = list(dict.fromkeys(layout.raw("scenes") / row["file"] for row in rows))
    images = model.encode_images(files, progress=False)
    texts = model.encode_texts([row["caption"] for row in rows])
    np.save(tmp_path / "scores.npy", model.score(images, texts).numpy())
    wanted = _scored(layout, tmp_path / "scores.npy")
    found = {result.task_name: result.scores["test"][0] for result in results.task_results}
    assert [*found] == [f"scenes-{name}-{way}" for name in ("pairs", "multi") for way in WAYS]
    for way in WAYS:
        pairs, multi = found[f"scenes-pairs-{way}"], found[f"scenes-multi-{way}"]
        for cut in (1, 5, 10):
            assert wanted[way][f"r{cut}"] == round(100 * pairs[f"r{cut}"], 2)
            assert wanted[way][f"r{cut}"] == round(100 * pairs[f"hit_rate_at_{cut}"], 2)
        assert wanted["multi"][way]["r1"] == round(100 * multi["hit_rate_at_1"], 2)
        for key in ("map_at_r", "r_precision", "r1"):
            assert wanted["multi"][way][key] == round(100 * multi[key], 2)
        assert _scored(layout, tmp_path / f"scenes-pairs-{way}_predictions.json") == wanted


WAYS = ("i2t", "t2i")


def test_ties_are_pessimistic_and_beyond_what_mteb_keeps_nothing_is_right(layout):
    (task, _) = tasks("scenes", ["pairs"], root=layout.root)
    task.load_data()
    right = task.dataset["default"]["test"]["relevant_docs"]
    items = task.dataset["default"]["test"]["corpus"]["id"][:]
    constant = {query: dict.fromkeys(items, 0.5) for query in right}
    assert task.task_specific_scores({}, right, constant)["r10"] == 0
    first = {query: dict.fromkeys(own, 0.5) for query, own in right.items()}
    assert task.task_specific_scores({}, right, first)["map_at_r"] == 1
    task._whole = False  # as for galleries of which mteb keeps the best 1,000
    assert task.task_specific_scores({}, right, first)["r1"] == 0


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    """COCO's test split by its ids, with one picture for all images."""
    package = pytest.importorskip("eccv_caption").Metrics()
    layout = Layout(tmp_path_factory.mktemp("coco"))
    layout.captions("coco").parent.mkdir(parents=True)
    layout.raw("coco").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(layout.raw("coco") / "a.png")
    rows = [
        (f"COCO_val2014_{images[0]:012d}", str(caption), "test", "a dog", "a.png", [])
        for caption, images in package.coco_gts["t2i"].items()
    ]
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=CAPTIONS)
    pq.write_table(table, layout.captions("coco"))
    pq.write_table(RELEVANCE.empty_table(), layout.relevance("coco"))
    return layout, package


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:failed to import")
def test_coco_s_tasks_have_the_package_s_numbers(coco):
    layout, package = coco
    made = {task.metadata.name: task for task in tasks("coco", root=layout.root)}
    names = ("pairs", "eccv_caption", "cxc")
    assert [*made] == [f"coco-{name}-{way}" for name in names for way in WAYS]
    generator = torch.Generator().manual_seed(0)
    for name, way in (("eccv_caption", "i2t"), ("eccv_caption", "t2i"), ("cxc", "i2t")):
        task = made[f"coco-{name}-{way}"]
        task.load_data()
        right = task.dataset["default"]["test"]["relevant_docs"]
        items = task.dataset["default"]["test"]["corpus"]["id"][:]
        results, ranked = {}, {}
        for query, own in right.items():
            wrong = torch.randint(len(items), (60,), generator=generator).tolist()
            best = list(dict.fromkeys([*own, *(items[row] for row in wrong)]))
            best = [best[row] for row in torch.randperm(len(best), generator=generator).tolist()]
            # The last item of a cut list counts as one that may tie with an item beyond the cut.
            results[query] = {item: -rank for rank, item in enumerate([*best, "last"])}
            ranked[int(query[-12:])] = [int(item[-12:]) for item in best]
        values = task.task_specific_scores({}, right, results)
        if name == "cxc":
            theirs = {
                cut: package.cxc_recalls({way: ranked}, way, K=cut)[way] for cut in (1, 5, 10)
            }
            assert values == values | {f"r{cut}": pytest.approx(x) for cut, x in theirs.items()}
        else:
            theirs = package.eccv_metrics({way: ranked}, way)
            keys = {"map_at_r": "map_at_r", "r_precision": "rprecision", "r1": "r1"}
            for key, other in keys.items():
                assert values[key] == pytest.approx(theirs[f"eccv_{other}"][way])


def test_what_a_data_set_lacks_is_one_line(layout, tmp_path):
    with pytest.raises(ConfigError, match="'multy'; did you mean 'multi'"):
        tasks("scenes", ["multy"], root=layout.root)
    with pytest.raises(DoesNotApply, match="of the 5,000 judged"):
        tasks("scenes", ["cxc"], root=layout.root)
    with pytest.raises(DataError, match="captions"):
        tasks("scenes", root=tmp_path)
