"""The first page says what the numbers say; old results are marked; settings stand beside the
paper's."""

import json

import pytest
from made_results import write_costs, write_experiment
from report_pages import edit, pages_of, plans_of, section_of, written_pages

from manymatch.reporting.report import report
from manymatch.util.errors import ManyMatchError

FAR = {"vsepp": [200.0, 201.0, 202.0], "cora": [300.0, 301.0, 302.0], "dive": [199.0, 202.0, 203.0]}
CLOSE = {**FAR, "vsepp": [295.0, 309.0, 297.0]}
DECIDED = "The lead is decided against"


FOUND = [
    (FAR, 3, "301.0 ± 1.0: +99.7 (95% interval 96.8 to 102.5) against dive"),
    (CLOSE, 3, f"{DECIDED} 1 of the others, not against vsepp."),
    (FAR, 1, "300.0: +100.0 (no interval) against vsepp. Each method was trained once"),
    ({"cora": FAR["cora"]}, 3, "with an rsum of 301.0 ± 1.0."),
]


def test_the_lead_is_decided_only_where_the_numbers_decide(reports):
    for rsums, seeds, words in FOUND:
        over = {"preset": list(rsums)}
        write_experiment(reports, "scenes-study", over, seeds=seeds, rsums=rsums)
        page = pages_of(reports)["index"]
        section = section_of(page, "scenes-found")
        assert words in section
        assert ("has the highest rsum" in section) == (len(rsums) > 1)
        assert ("is the only method in" in section) == (len(rsums) == 1)
        assert (f"{DECIDED} 2 of the others." in section) == (rsums == FAR and seeds == 3)
    alone = section_of(page, "flickr8k-found")  # which has no experiment
    rsum = json.loads((reports / "results/flickr8k/cora.json").read_text())["rsum"]
    assert f" has an rsum of {rsum:.1f}, the highest of 2 models" in alone
    assert "the order is not decided" in alone


def test_a_cost_of_another_model_is_marked(reports):
    path = write_costs(reports)
    own = json.loads((reports / "provenance/scenes/cora.json").read_text())["checkpoint_sha256"]
    edit(path, lambda costs: [row.update(checkpoint_sha256=own) for row in costs["rows"]])
    assert "earlier model" not in pages_of(reports)["scenes-efficiency"]
    edit(path, lambda costs: costs["rows"][0].update(checkpoint_sha256="8"))
    assert pages_of(reports)["scenes-efficiency"].count("of an earlier model") == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.write_bytes("# für mich\n".encode("latin-1")), "not UTF-8"),
        (lambda path: path.symlink_to("/nowhere"), "a link to a file that is missing"),
        (lambda path: path.mkdir(), "a folder"),
        (lambda path: path.write_text("method: [\n"), "mine.yaml:"),
    ],
)
def test_a_preset_that_cannot_be_read_is_one_line(reports, tmp_path, make, words):
    path = tmp_path / "presets" / "coco" / "mine.yaml"
    path.parent.mkdir(parents=True)
    make(path)
    with pytest.raises(ManyMatchError, match=words) as caught:
        report(reports, plans_of(reports), tmp_path / "presets")
    assert str(path) in str(caught.value)


def test_settings_stand_beside_those_of_the_published_preset(reports, tmp_path):
    resolved = {"method": "cora", "model": {"size": 256}, "training": {"epochs": 8}}
    change = {"resolved": resolved, "defaults": {"size": 1024, "heads": 16}}
    edit(reports / "provenance/scenes/cora.json", lambda value: value.update(change))
    presets = tmp_path / "presets"
    (presets / "coco").mkdir(parents=True)
    text = "method: cora\nfeatures: butd\nsetting: reproduced\nmodel: {heads: 8}\n"
    (presets / "coco" / "cora_butd.yaml").write_text(text)
    (presets / "coco" / "cora_small.yaml").write_text("method: cora\nfeatures: lite0\n")
    report(reports, plans_of(reports), presets)
    page = written_pages(reports)["scenes-methods"]
    rows = {"model.size": ("256", "1024"), "model.heads": ("16", "8")}
    for key, (here, paper) in rows.items():
        row = page.partition(f">{key}</th>")[2].partition("</tr>")[0]
        assert f">{here}</td>" in row and f">{paper}</td>" in row
    assert "(presets/coco/cora_butd.yaml)" in page and "cora_small" not in page
