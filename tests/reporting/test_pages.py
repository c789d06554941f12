"""The page and the tables as a whole: complete, well-formed, escaped, self-contained, the same each
time; and every faulty input is one line that names the file."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from complete_results import EVIL
from report_pages import edit, pages_of, plans_of, written_pages

from manymatch.reporting import page
from manymatch.reporting.report import report
from manymatch.reporting.sections import samples as samples_section
from manymatch.util.errors import DataError, ManyMatchError

VOID = {"meta", "link", "br", "img", "hr", "input"}
LOADING = {"src", "href", "srcset", "poster", "action", "data", "xlink:href"}


class Document(HTMLParser):
    """Checks nesting and ids, and collects what the page would load and the scripts it has."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.targets, self.loads, self.tags = [], [], [], [], []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self._note(tag, dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self._note(tag, dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        self.text += data

    def _note(self, tag, attributes):
        self.tags.append(tag)
        assert not [name for name in attributes if name.startswith("on")]
        if "id" in attributes:
            self.ids.append(attributes["id"] or "")
        for name in LOADING & set(attributes):
            address = attributes[name] or ""
            self.targets.append(address[1:]) if address[0] == "#" else self.loads.append(address)


@pytest.fixture(scope="module")
def pages(complete_results):
    return written_pages(complete_results)


@pytest.fixture(scope="module")
def documents(pages):
    return {name: Document(text) for name, text in pages.items()}


def test_pages_are_well_formed_and_every_link_has_a_target(complete_results, documents):
    for name, document in documents.items():
        assert len(document.ids) == len(set(document.ids))
        assert set(document.targets) <= set(document.ids)
        folder = complete_results / ("" if name == "index" else "pages")
        for address in document.loads:
            path, _, anchor = address.partition("#")
            if not address.startswith("data:") and not path.endswith("machine/machine.js"):
                assert (folder / path).is_file(), address
                assert not anchor or anchor in documents[Path(path).stem].ids, address


def test_pages_load_nothing_from_elsewhere_and_show_texts_of_others_as_text(pages, documents):
    for name, text in pages.items():
        assert not any(re.match(r"\w+:(?!image/)", link) for link in documents[name].loads)
        assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", text)
        assert "default-src 'none'" in text and EVIL not in text
        assert documents[name].tags.count("script") == 2 and "img" not in documents[name].tags
    for name in ("scenes-queries", "scenes-results", "scenes-probes", "other_experiments"):
        assert EVIL in documents[name].text


def test_only_the_script_beside_the_pages_knows_machine_and_moment(reports):
    pages = pages_of(reports)
    script = reports / "machine" / "machine.js"
    head, _, value = script.read_text().rstrip(";\n").partition(" = ")
    assert head == "window.MANYMATCH_MACHINE"
    known = json.loads(value)
    assert known["results"]["scenes/cora"]["train"]["seconds"] == 192.4
    for fact in (known["date"], "192.4", "cpu (2 threads)", "0b6663f5c0ff"):
        assert not any(fact in page for page in pages.values())
    shutil.rmtree(reports / "machine")
    assert pages_of(reports) == pages
    shutil.rmtree(reports / "synthetic")
    assert pages.keys() - pages_of(reports).keys() == {"other_experiments"}  # an earlier result's


def test_templates_escape_every_text():
    """Constants in quotes alone are marked as safe, and every attribute stands in quotes."""
    for template in (Path(page.__file__).parent / "templates").glob("*.html"):
        text = template.read_text()
        assert set(re.findall(r"(\S) *\| *safe", text)) <= {"'"}, template
        assert not re.search(r"autoescape|=\{\{", text), template


def test_pages_are_bounded_however_many_queries_were_sampled(reports):
    def multiply(samples):
        first = samples["images"][0]
        first["retrieved"] *= 10
        samples["images"] = [{**first, "image_id": str(i)} for i in range(100)]

    edit(reports / "runs/scenes/cora/samples.json", multiply)
    document = Document(pages_of(reports)["scenes-queries"])
    shown = [name for name in document.ids if re.fullmatch(r"image-\d+", name)]
    assert len(shown) == samples_section.MAX_QUERIES
    assert f"of {samples_section.MAX_ANSWERS}" in document.text
    assert f"of {10 * samples_section.MAX_ANSWERS}" not in document.text


CURVE = "reports/curves/scenes/cora/plots/metrics/train/loss.tsv"
FAULTS = [
    ("reports/results/scenes/cora.json", b"{", "JSON"),
    (CURVE, b"step\tloss\n0\tmuch\n", "expected the columns 'step' and 'loss'"),
    (CURVE, b"\xff\xfe\x00", "expected the columns"),
    ("experiments/scenes-study.yaml", b"claims: {A: {better: cora, other: dives}}", "'dives'"),
]


def test_a_faulty_file_is_one_line_and_leaves_earlier_outputs_whole(reports):
    earlier = pages_of(reports)
    for name, content, words in FAULTS:
        path = reports.parent / name
        path.parent.mkdir(exist_ok=True)
        before = path.read_bytes() if path.exists() else b""
        path.write_bytes(content)
        with pytest.raises(ManyMatchError) as error:
            report(reports, plans_of(reports))
        message = str(error.value)
        assert str(path) in message and words in message and "\n" not in message
        assert written_pages(reports) == earlier
        path.write_bytes(before)


def test_no_result_at_all_says_what_to_run(tmp_path):
    with pytest.raises(DataError, match="dvc repro"):
        report(tmp_path, plans_of(tmp_path))
    assert list(tmp_path.iterdir()) == []
