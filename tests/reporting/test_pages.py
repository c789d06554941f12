"""The page and the tables as a whole: complete, well-formed, escaped, self-contained, the same each
time; and every faulty input is one line that names the file."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_pages import edit, pages_of, plans_of, written_pages

from manymatch.reporting import page
from manymatch.reporting.report import report
from manymatch.reporting.sections import samples as samples_section
from manymatch.util.errors import DataError, ManyMatchError

EVIL = "<script>alert(1)</script>\"'><img src=http://evil.example/x onerror=alert(1)> & {{ 7 * 7 }}"
VOID = {"meta", "link", "br", "img", "hr", "input"}
LOADING = {"src", "href", "srcset", "poster", "action", "data", "xlink:href"}


class Document(HTMLParser):
    """Checks nesting and ids, and collects what the page would load and the scripts it has."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.ids = []
        self.targets = []
        self.loads = []
        self.tags = []
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


def samples_of(reports, preset):
    return reports / "runs" / "scenes" / preset / "samples.json"


@pytest.fixture(scope="module")
def _reported(_results, tmp_path_factory):
    """A folder of results with their pages."""
    reports = tmp_path_factory.mktemp("reported") / "reports"
    report(Path(shutil.copytree(_results, reports)), plans_of(reports))
    return reports


@pytest.fixture(scope="module")
def pages(_reported):
    return written_pages(_reported)


@pytest.fixture(scope="module")
def documents(pages):
    return {name: Document(text) for name, text in pages.items()}


def test_pages_are_well_formed_and_every_link_has_a_target(_reported, documents):
    for name, document in documents.items():
        assert len(document.ids) == len(set(document.ids))
        assert set(document.targets) <= set(document.ids)
        folder = _reported if name == "index" else _reported / "pages"
        for address in document.loads:
            path, _, anchor = address.partition("#")
            if not address.startswith("data:") and not path.endswith("machine/machine.js"):
                assert (folder / path).is_file(), address
                assert not anchor or anchor in documents[Path(path).stem].ids, address


def test_pages_load_nothing_from_elsewhere(pages):
    for text in pages.values():
        assert not any(re.match(r"\w+:(?!image/)", link) for link in Document(text).loads)
        assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", text)
        assert "default-src 'none'" in text


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


def test_captions_and_names_of_others_are_text_and_never_markup(reports, pages):
    clean = Document("".join(pages.values()))
    edit(reports / "clusters" / "scenes" / "swamp.json", _poison_class)
    edit(reports / "synthetic" / "swamp.json", lambda value: value.update(about=EVIL))
    for preset in ("vsepp", "cora"):
        edit(samples_of(reports, preset), _poison)
        provenance = reports / "provenance" / "scenes" / f"{preset}.json"
        edit(provenance, lambda value: value.update(note=EVIL, resolved={EVIL: EVIL}))
    page = "".join(pages_of(reports).values())
    poisoned = Document(page)
    assert EVIL in poisoned.text
    assert EVIL not in page
    for tag in ("script", "img", "style"):
        assert poisoned.tags.count(tag) == clean.tags.count(tag)


def _poison(samples):
    image, text = samples["images"][0], samples["captions"][0]
    image.update(image_id=EVIL, captions=[EVIL])
    image["retrieved"][0]["caption"] = EVIL
    text.update(caption_id=EVIL, caption=EVIL)
    text["retrieved"][0]["image_id"] = EVIL
    text["graph"] = {
        "objects": [EVIL, EVIL],
        "names": [EVIL, EVIL],
        "attributes": [[EVIL], []],
        "relations": [{"subject": 0, "label": EVIL, "object": 1}],
    }


def _poison_class(clusters):
    first = clusters["classes"][0]
    first["captions"][0]["caption"] = first["nouns"][0][0] = EVIL
    first["thumbnails"] = {EVIL: next(iter(first["thumbnails"].values()))}


def test_templates_escape_every_text():
    """Constants in quotes alone are marked as safe, and every attribute stands in quotes."""
    for template in (Path(page.__file__).parent / "templates").glob("*.html"):
        text = template.read_text()
        assert set(re.findall(r"(\S) *\| *safe", text)) <= {"'"}, template
        assert not re.search(r"autoescape|=\{\{", text), template


def test_a_page_of_an_earlier_result_goes(reports):
    assert "other_experiments" in pages_of(reports)
    shutil.rmtree(reports / "synthetic")
    assert "other_experiments" not in pages_of(reports)


def test_pages_are_bounded_however_many_queries_were_sampled(reports):
    def multiply(samples):
        first = samples["images"][0]
        first["retrieved"] *= 10
        samples["images"] = [{**first, "image_id": str(i)} for i in range(100)]

    edit(samples_of(reports, "cora"), multiply)
    document = Document(pages_of(reports)["scenes-queries"])
    shown = [name for name in document.ids if re.fullmatch(r"image-\d+", name)]
    assert len(shown) == samples_section.MAX_QUERIES
    assert f"of {samples_section.MAX_ANSWERS}" in document.text
    assert f"of {10 * samples_section.MAX_ANSWERS}" not in document.text


FAULTS = {
    "metrics cut off": (
        "results/scenes/cora.json",
        lambda path: path.write_text(path.read_text()[:50]),
        "Invalid JSON",
    ),
    "provenance missing": ("provenance/scenes/cora.json", Path.unlink, "missing"),
    "provenance of another result": (
        "provenance/scenes/cora.json",
        lambda path: edit(path, lambda value: value.update(preset="vsepp")),
        "belongs to 'scenes/vsepp'",
    ),
    "curve without numbers": (
        "curves/scenes/cora/plots/metrics/train/loss.tsv",
        lambda path: path.write_text("step\tloss\n0\tmuch\n"),
        "loss.tsv: expected the columns 'step' and 'loss'",
    ),
    "wrong claim": (
        "../experiments/scenes-study.yaml",
        lambda path: path.write_text("claims: {A: {better: cora, other: dives}}"),
        "claims.A: no point is called 'dives'",
    ),
    "curve that is not text": (
        "curves/scenes/cora/plots/metrics/train/loss.tsv",
        lambda path: path.write_bytes(b"\xff\xfe\x00"),
        "loss.tsv: expected the columns",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_file_is_one_line_and_leaves_earlier_outputs_whole(_reported, tmp_path, fault):
    reports = Path(shutil.copytree(_reported, tmp_path / "reports"))
    name, spoil, words = FAULTS[fault]
    path = tmp_path / Path(name).relative_to("..") if name.startswith("..") else reports / name
    path.parent.mkdir(exist_ok=True)
    spoil(path)
    with pytest.raises(ManyMatchError) as error:
        report(reports, plans_of(reports))
    message = str(error.value)
    assert str(path) in message
    assert words in message
    assert "\n" not in message
    for path in (reports / "index.html", *(reports / "pages").iterdir()):
        assert path.read_text() == (_reported / path.relative_to(reports)).read_text()
    assert len(list((reports / "pages").iterdir())) == len(list((_reported / "pages").iterdir()))


def test_no_result_at_all_says_what_to_run(tmp_path):
    with pytest.raises(DataError, match="dvc repro"):
        report(tmp_path, plans_of(tmp_path))
    assert list(tmp_path.iterdir()) == []
