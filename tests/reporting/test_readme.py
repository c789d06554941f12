"""The tables and pictures of experiments in README.md and docs/results.md."""

import xml.etree.ElementTree as ElementTree

import pytest
from made_results import write_experiment

from manymatch.reporting.readme import update_pages
from manymatch.util.errors import DataError

PAIR = "<!-- results DATASET/EXPERIMENT -->"
BOTH = {"preset": ["vse_infinity", "dive"], "training.negatives": ["batch", "oracle"]}
PAGE = (
    "# Title\n\n<!-- results scenes/what -->\nold\n<!-- /results -->\n\nWords.\n\n"
    "![rsum](images/results/scenes/oracle.svg)\n\n"
    "<!-- results scenes/oracle -->\n<!-- /results -->\n"
)


@pytest.fixture
def reports(tmp_path):
    folder = tmp_path / "reports"
    write_experiment(folder, "what", {"preset": ["dive", "cora"]}, sets=True)
    write_experiment(folder, "oracle", BOTH)
    return folder


def written(folder, text):
    page = folder / "page.md"
    page.write_text(text)
    return page


def test_markers_get_the_tables_of_experiments_and_pictures_are_drawn(tmp_path, reports):
    page = written(tmp_path, PAGE)
    update_pages([page], reports)
    text = page.read_text()
    first, _, second = text.partition("Words.")
    assert text.startswith("# Title\n\n<!-- results scenes/what -->\n\n**what** (test: 300 images")
    assert "\n| Method | rsum | 95% interval | R@1 | mAP@R |\n" in first
    assert "Recalls and precisions are in percent" in first and "Log variance" not in first
    assert "**oracle** (test" in second and "| dive |" in second and "\nold" not in text
    update_pages([page], reports)
    assert page.read_text() == text
    (picture,) = (tmp_path / "images").rglob("*.svg")
    drawing = ElementTree.fromstring(picture.read_text())
    circles = [one for one in drawing if one.tag.endswith("circle")]
    assert picture.name == "oracle.svg" and len(circles) == 2 + 2 * 2  # legend and dots


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no marker\n", PAIR),
        ("<!-- /results -->\n<!-- results scenes/what -->\n", PAIR),
        (PAGE + "<!-- /results -->\n", PAIR),
        (PAGE.replace("s/what", "s/whet"), "'scenes/whet'.*'scenes/what'.*Run the experiment"),
        (PAGE.replace("oracle.svg", "orakel.svg"), "'scenes/orakel'.*'scenes/oracle'"),
    ],
)
def test_a_faulty_page_is_one_line_and_no_page_changes(tmp_path, reports, text, words):
    good, page = tmp_path / "good.md", written(tmp_path, text)
    good.write_text(PAGE)
    with pytest.raises(DataError, match=f"^[^\\n]*page.md: .*{words}[^\\n]*$"):
        update_pages([good, page], reports)
    assert page.read_text() == text and good.read_text() == PAGE
