"""Sections: one more in a copy of the package, and what the golden pages do not show."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from complete_results import judge
from made_probes import write_probes
from made_results import write_clusters, write_costs, write_experiment, write_synthetic
from made_sets import add_sets, set_metrics
from report_pages import edit, pages_of, plans_of, section_of, texts_of

from manymatch.reporting.attention_drawing import look
from manymatch.reporting.report import read
from manymatch.reporting.sections import costs, experiments, leaderboard, over_seeds
from manymatch.reporting.sections.ranks import recall_curve
from manymatch.reporting.sections.sets import partners, plane
from manymatch.results.all_results import AllResults
from manymatch.results.clusters import Clusters
from manymatch.results.costs import Costs
from manymatch.results.experiments import Experiment
from manymatch.results.over_seeds import SyntheticExperiment
from manymatch.results.probes import Probes
from manymatch.results.runs import read_runs
from manymatch.results.sets import ElementPairs, ImageMap, Projection, SetMetrics

RESULT = '''"""Sizes of models."""

from typing import ClassVar

from manymatch.results.base import Result


class Sizes(Result):
    path: ClassVar[str] = "sizes/{dataset}.json"
    remedy: ClassVar[str] = "Measure {dataset} again."

    dataset: str
    sizes: dict[str, int]
'''
SECTION = '''"""The section on sizes."""

from manymatch.reporting.blocks import Note, View
from manymatch.reporting.section import Section
from manymatch.results.all_results import AllResults
from manymatch.results.sizes import Sizes


def section(results: AllResults) -> View | None:
    texts = [f"{name}: {size} parameters" for one in results.current(Sizes)
             for name, size in one.sizes.items()]
    return View("Sizes", "Sizes", [Note(text) for text in texts]) if texts else None


SECTIONS = [Section("Names", "sizes", 300, section, (Sizes,))]
'''


def test_a_kind_of_result_and_its_section_are_two_new_files(reports, root):
    package = reports.parent / "src" / "manymatch"
    shutil.copytree(root / "src" / "manymatch", package)
    (package / "results" / "sizes.py").write_text(RESULT)
    (package / "reporting" / "sections" / "sizes.py").write_text(SECTION)
    (reports / "sizes").mkdir()
    (reports / "sizes" / "own.json").write_text('{"dataset": "own", "sizes": {"cora": 7}}')
    program = (
        "import sys; from pathlib import Path; from manymatch.reporting.report import report; "
        "report(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", program, str(reports), str(plans_of(reports))]
    subprocess.run(command, env=environment, check=True)
    page = (reports / "pages" / "own-names.html").read_text()
    assert '<p class="note">cora: 7 parameters</p>' in page
    assert 'href="pages/own-names.html"' in (reports / "index.html").read_text()


def test_results_on_another_gallery_have_a_table_of_their_own(reports):
    run, second = read_runs(reports)[:2]
    other = replace(second, provenance=second.provenance.model_copy(update={"images": 5}))
    assert [len(table.rows) for table in leaderboard.tables([run, other, run])] == [2, 1]
    first, last = leaderboard.to_latex([run, other]).split("\n\n")
    assert first.startswith("% flickr8k: test: 300 images, 1,500 captions\n")
    assert last.startswith("% flickr8k: test: 5 images, 1,500 captions\n")


def test_names_are_escaped_in_latex_and_markdown(reports):
    run = read_runs(reports)[0]
    named = replace(run, provenance=run.provenance.model_copy(update={"preset": "a_b & 100%"}))
    assert r"a\_b \& 100\% & small-scale & " in leaderboard.to_latex([named])
    over = {"similarity.name": ["mil", "a|b"], "weight": [0.0, None]}
    text = experiments.to_markdown(Experiment.read(write_experiment(reports, "what", over)))
    lines = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 6 and len({line.count("|") for line in lines}) == 1


def test_an_ensemble_is_no_baseline(reports):
    results, origins = reports / "results/scenes", reports / "provenance/scenes"
    for preset, gain in (("vse_infinity", 0.0), ("vse_infinity+dive", 4.0), ("dive", 1.5)):
        for folder in (results, origins):
            shutil.copy(folder / "cora.json", folder / f"{preset}.json")
        edit(origins / f"{preset}.json", lambda origin, name=preset: origin.update(preset=name))
        edit(results / f"{preset}.json", lambda metrics, gain=gain: judge(metrics, gain))
    edit(results / "dive.json", lambda metrics: metrics.update(sets=set_metrics(4, alive=True)))
    edit(results / "vse_infinity+dive.json", lambda metrics: metrics.update(rsum=500.0))
    ambiguity = section_of(pages_of(reports)["scenes-one-to-many"], "ambiguity")
    assert "gain over vse_infinity<" in ambiguity and "+dive" not in ambiguity


def test_gains_are_over_the_same_queries(reports):
    path = write_experiment(reports, "scenes-study", {"preset": ["vse_infinity", "dive"]})

    def change(experiment):
        for point in experiment["points"]:
            for run in point["runs"]:
                judge(run["metrics"], gain=1.0)
                if point["label"] == "dive":
                    run["metrics"]["sets"] = set_metrics(4, alive=True)
                    for way in run["metrics"]["multi"].values():
                        way["by_positives"]["queries"] = [40, 39]

    edit(path, change)
    ambiguity = section_of(pages_of(reports)["scenes-one-to-many"], "ambiguity")
    assert "from 1 true items on (40 queries)" in ambiguity and "from 2 true" not in ambiguity


@pytest.mark.parametrize(("recalls", "last"), [((50, 80, 90), "R@3"), ((40, 70, 80), "R@10")])
def test_a_run_file_is_drawn_if_it_agrees_with_the_metrics(reports, recalls, last):
    ranks = [1] * 5 + [2, 4, 5, 9, 20]
    lines = [
        f"{query:06d}#0 Q0 {query if rank == own else 900 + rank:06d} {rank} {1 - rank / 100} t"
        for query, own in enumerate(ranks)
        for rank in range(1, 31)
    ]
    (reports / "runs/scenes/vsepp/t2i.trec").write_text("\n".join(lines) + "\n")
    values = dict(zip(("r1", "r5", "r10"), recalls, strict=True))
    path = reports / "results/scenes/vsepp.json"
    edit(path, lambda metrics: metrics["t2i"].update(values))
    view = recall_curve(AllResults([run for run in read_runs(reports) if run.dataset == "scenes"]))
    assert view is not None
    _, t2i = view.blocks[0].blocks
    lines_by_name = {line.name: line for line in t2i.lines}
    assert lines_by_name["vsepp"].summary.startswith(last)
    assert lines_by_name["cora"].summary.startswith("R@10")


def test_costs_have_the_columns_that_a_row_needs(tmp_path):
    value = json.loads(write_costs(tmp_path).read_text())
    value["rows"][4]["step"]["peak_gpu_memory_mb"] = 5120.4
    rows = [row for row in value["rows"] if row["method"] != "vse_infinity"]
    table = costs.table(Costs.model_validate(value | {"rows": rows}))
    heads = [column.heading for column in table.columns]
    dive = next(row for row in texts_of(table) if row[0] == "dive")
    cells = dict(zip(heads, dive, strict=True))
    assert (cells["GPU memory (MiB)"], cells["Multiply-adds (relative to VSE∞)"]) == ("5,120", "-")


@pytest.fixture
def probed(reports):
    """Probes of both models of `scenes`; one has no entities."""
    samples = json.loads((reports / "runs/scenes/cora/samples.json").read_text())
    pictures = [query["thumbnail"] for query in samples["images"][:3]]
    write_probes(reports, "scenes", "cora", pictures)
    write_probes(reports, "scenes", "vsepp", pictures, entities=False)
    return reports


def test_probes_and_classes_of_another_model_are_named_and_left_out(probed):
    write_clusters(probed, "scenes", "vsepp", {"1": "/9j/AA=="}, checkpoint_sha256="9")
    edit(probed / "probes/scenes/cora.json", lambda value: value.update(checkpoint_sha256="8"))
    page = pages_of(probed)["scenes-probes"]
    said = "these models were trained anew since then"
    assert f"{said}: cora. Run &#39;manymatch probe scenes cora&#39; again" in page
    assert f"{said}: vsepp. Run &#39;manymatch clusters scenes vsepp&#39; again" in page
    assert "13.13" not in page and "16.13" in page  # CORA's number, and that of VSE++
    results = read(probed, plans_of(probed))
    for kind, preset in ((Probes, "cora"), (Clusters, "vsepp")):
        assert [result.preset for result in results.outdated(kind)] == [preset]
        assert preset not in [result.preset for result in results.current(kind)]


def test_a_probe_of_ones_own_shows_its_tables(probed):
    table = {"title": "Own", "columns": ["What", "How much"], "rows": [["this", 77.25]]}
    own = {"title": "My probe", "about": "Mine.", "tables": [table], "samples": [{"a": 1}]}

    def change(value):
        value["studies"]["rich_captions"].update(about="Another.")
        value["studies"].update(mine=own)

    edit(probed / "probes/scenes/cora.json", change)
    page = pages_of(probed)["scenes-probes"]
    for words in ("My probe", "77.25", "cora: Another.", "vsepp: The 100 captions"):
        assert words in page


def test_sets_may_lack_a_modality_attention_or_all_details(reports):
    add_sets(reports, "scenes", "cora", 4, alive=True)
    add_sets(reports, "scenes", "vsepp", 2, alive=False)
    path = reports / "results/scenes/vsepp.json"
    edit(path, lambda metrics: metrics["sets"].pop("texts"))
    for preset in ("cora", "vsepp"):
        details = reports / "runs/scenes" / preset / "sets.json"
        edit(details, lambda sets: sets.update(image_maps=[], caption_maps=[]))
    page = pages_of(reports)["scenes-sets"]
    assert "-7.12" in page and 'class="look"' not in page and "Words read by" not in page
    assert '<ol class="texts" aria-label="Element 4"' in page
    shutil.rmtree(reports / "runs")
    page = pages_of(reports)["scenes-sets"]
    assert "details of these sets are not on this machine" in page and 'id="elements"' not in page


def test_the_mean_without_a_collapsed_seed_stands_beside_the_mean(tmp_path):
    r1 = {"contrastive": [86.0, 2.25, 85.0], "SwAMP": [90.0, 91.0, 89.0]}
    path = write_synthetic(tmp_path, "made", r1)
    table = over_seeds.synthetic_table(SyntheticExperiment.read(path))
    rows = {name: cells for name, *cells in texts_of(table)}
    assert "85.50 ± 0.71 (2 of 3 seeds)" in rows["contrastive"]
    assert not any("of 3 seeds" in cell for cell in rows["SwAMP"])


def test_partners_are_the_most_similar_elements_of_the_other_side():
    """MaxMatch, section 4.4."""
    pairs = ElementPairs(share=[[0.5, 0.0], [0.5, 0.0]], cosine=[[0.1, 0.9], [0.8, 0.2]])
    sides = {side: set_metrics(2, alive=True)[side] for side in ("images", "texts")}
    sides["texts"] = sides["texts"] | {"rsum_of": {"1": 10.0, "2": 20.0}}
    metrics = SetMetrics.model_validate({"gallery": 300, "rsum": 260.0, **sides})
    assert [*partners(pairs, metrics)] == [(1, 2, 237.5, 20.0), (2, 1, 234.5, 10.0)]


def _map(**parts):
    made = {"image_id": "a", "size": (4, 4), "grid": 2, "boxes": None, "weights": [[0.25] * 4]}
    made["passes"] = []
    return ImageMap.model_validate(made | parts)


def test_veil_is_on_what_is_not_looked_at():
    drawing = look(_map(size=(4, 2)), [0.0, 0.0, 0.5, 0.25], 0)
    assert drawing.frame == (0, 25, 100, 50)
    assert drawing.veils == [(0.34, "M1 1h1v1h-1z"), (0.84, "M0 0h2v1h-2z")]
    assert drawing.label == "Element 1: most, 50%, at row 2, column 1 of 2"


def test_boxes_are_drawn_strongest_last_and_weak_ones_not_at_all():
    boxes, weights = (
        [(0.0, 0.0, 0.5, 1.0), (0.5, 0.5, 1.0, 1.0), (0.0, 0.0, 0.1, 0.1)],
        [0.6, 0.39, 0.01],
    )
    drawing = look(_map(grid=None, boxes=boxes, weights=[weights]), weights, 0)
    assert [outline.strength for outline in drawing.outlines] == [0.65, 1.0]
    first = drawing.outlines[-1]
    assert (first.x, first.y, first.width, first.height) == (0, 0, 50, 100)
    assert drawing.label.endswith("60%, at region 1 of 3")


def test_points_of_one_element_are_one_path_and_images_lie_on_top():
    places = {
        "images": {"vectors": 9, "places": [[(0, 1000), (500, 0)], [(10, 20), (30, 40)]]},
        "texts": {"vectors": 4, "places": [[(7, 8)]]},
    }
    drawn = plane("p", Projection.model_validate(places))
    assert [(cloud.modality, cloud.element, cloud.path) for cloud in drawn.clouds] == [
        ("texts", 0, "M7 992h0"),
        ("images", 0, "M0 0h0M10 980h0"),
        ("images", 1, "M500 1000h0M30 960h0"),
    ]
    assert drawn.summary == "4 of 9 vectors of images and 1 of 4 vectors of texts"
