"""The report in a real browser: silent, offline, and fit for wide and narrow screens."""

import shutil
import subprocess

import pytest
from chromium import MARKS, listened, started
from report_pages import paths_of

from manymatch.reporting.report import offline_page

pytestmark = MARKS


class Page:
    """A tab of a headless Chromium, with what its console says and which addresses it asks for."""

    def __init__(self, tab):
        self._tab = tab
        self.complaints, self.requests = listened(tab)

    def open(self, path, width=1400):
        self.requests.clear()
        self.resize(width)
        self._tab.goto(path.as_uri())

    def resize(self, width):
        self._tab.set_viewport_size({"width": width, "height": 900})

    def value(self, expression):
        return self._tab.evaluate(expression)


@pytest.fixture(scope="module")
def page():
    with started() as browser:
        yield Page(browser.new_page())


@pytest.fixture(scope="module")
def complete(complete_results, tmp_path_factory):
    """A report with every section."""
    reports = tmp_path_factory.mktemp("browser") / "reports"
    shutil.copytree(complete_results.parent, reports.parent, dirs_exist_ok=True)
    return reports


def test_every_page_opens_silently_offline_and_fits(page, complete):
    paths = paths_of(complete)
    assert len(paths) > 8
    for path in paths:
        page.open(path)
        assert page.value("document.documentElement.scrollHeight") <= 8000, path
        for width in (1400, 400):
            page.resize(width)
            assert page.value("document.documentElement.scrollWidth") <= width
        assert page.complaints == []
        requests = [url for url in page.requests if not url.startswith("data:")]
        assert requests == [path.as_uri(), (complete / "machine" / "machine.js").as_uri()]
        made = page.value("document.getElementById('made').textContent")
        assert made.startswith("Made on 20")


def test_the_leaderboard_fits_and_is_sorted_by_a_click(page, complete):
    page.open(complete / "pages" / "flickr8k-results.html")
    board = "document.querySelector('#leaderboard .scroll')"
    assert page.value(f"{board}.scrollWidth <= {board}.clientWidth")
    names = f"[...{board}.querySelectorAll('tbody th')].map(head => head.textContent.trim())"
    assert page.value(names) == ["cora", "vsepp"]
    for order in (["cora", "vsepp"], ["vsepp", "cora"]):  # descending, then ascending
        page.value(f"{board}.querySelector('thead button').click()")
        assert page.value(names) == order


def test_a_wide_table_scrolls_beside_its_first_column(page, complete):
    page.open(complete / "pages" / "scenes-results.html", 400)
    board = "document.querySelector('#leaderboard .scroll')"
    assert page.value(f"{board}.scrollWidth > {board}.clientWidth + 100")
    left = f"{board}.querySelector('tbody th').getBoundingClientRect().left"
    before = page.value(left)
    assert page.value(f"({board}.scrollLeft = 500, {left})") == before
    assert page.value(f"{board}.querySelector('tbody td').getBoundingClientRect().left") < before
    marks = "getComputedStyle(document.querySelector('#leaderboard button'), '::after').content"
    assert "↕" in page.value(marks)
    used = page.value("document.querySelector('[data-machine=scenes]').textContent")
    assert "cora: train (3 min 12 s, 1,235 MiB, cpu (2 threads), here, 2026-01-02" in used


OVERLAPS = """
[...document.querySelectorAll('.drawing')].flatMap(drawing => {
  drawing.closest('.query').hidden = false;
  const boxes = [...drawing.querySelectorAll('text')].map(t => [t.textContent, t.getBBox()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
    .filter(([, q]) => p.x < q.x + q.width && q.x < p.x + p.width
                    && p.y < q.y + q.height && q.y < p.y + p.height)
    .map(([b]) => a + ' / ' + b));
})
"""


def test_one_query_shows_and_the_next_is_chosen_and_no_texts_of_a_graph_meet(page, complete):
    page.open(complete / "pages" / "scenes-queries.html")
    assert page.value("document.querySelectorAll('.drawing .relation').length") > 3
    shown = "[...document.querySelectorAll('#image-queries .query:not([hidden])')].map(e => e.id)"
    assert page.value(shown) == ["image-1"]
    page.value("document.querySelector('#image-queries [data-step=\"1\"]').click()")
    assert page.value(shown) == ["image-2"]
    page.value("document.querySelectorAll('#image-queries .picker a')[2].click()")
    assert page.value(shown) == ["image-3"]
    assert page.value("location.hash") == "#image-3"
    assert page.value(OVERLAPS) == []


@pytest.mark.usefixtures("warm_path")
def test_the_charts_of_dvc_are_drawn_without_a_network(page, complete, root, tmp_path):
    pytest.importorskip("js_lib_vega_embed")
    project = complete.parent
    drawn_by = "{template: curves, x: step, x_label: epoch}"
    (project / "dvc.yaml").write_text(f"plots: [reports/plots: {drawn_by}]")
    for words in ("init -q --no-scm", "config plots.html_template plots.html"):
        subprocess.run(["dvc", *words.split()], cwd=project, check=True)
    shutil.copytree(root / ".dvc" / "plots", project / ".dvc" / "plots")
    (project / ".dvc" / "plots.html").write_text(offline_page(), encoding="utf-8")
    subprocess.run(["dvc", "plots", "show"], cwd=project, check=True)
    page.open(project / "dvc_plots" / "index.html")
    values = [path.relative_to(complete) for path in (complete / "plots").rglob("*.tsv")]
    assert page.value("document.querySelectorAll('canvas').length") == len(values) > 5
    drawn = "[...document.querySelectorAll('canvas')].every(c => c.width > 100)"
    assert page.value(drawn) and page.complaints == []
    assert {address.partition(":")[0] for address in page.requests} <= {"file", "data", "blob"}
