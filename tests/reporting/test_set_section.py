"""The section on sets: what it shows, what it leaves out, and how its drawings come about."""

from __future__ import annotations

import json
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

import pytest
from made_sets import add_sets
from report_pages import edit, pages_of

from manymatch.reporting.attention_drawing import look
from manymatch.reporting.sections.sets import partners, plane
from manymatch.results.sets import ElementPairs, ImageMap, Projection, SetMetrics


@pytest.fixture
def with_sets(reports: Path) -> Path:
    return _add_sets(reports)


def _add_sets(reports: Path) -> Path:
    """Give both methods of `scenes` sets: four elements that share the work; two, one of which
    wins all."""
    add_sets(reports, "scenes", "cora", 4, alive=True)
    add_sets(reports, "scenes", "vsepp", 2, alive=False)
    return reports


@pytest.fixture(scope="module")
def page(_results: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of unchanged sets."""
    reports = Path(shutil.copytree(_results, tmp_path_factory.mktemp("sets") / "reports"))
    return page_of(_add_sets(reports))


def page_of(reports: Path) -> str:
    return pages_of(reports)["scenes-sets"]


def test_page_shows_the_sets_of_all_methods(page: str) -> None:
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert {"sets", "elements", "look-1", "read-1"} <= set(ids)
    for words in ("-7.12", "3.7 of 4", "1.0 of 2", "97%", "251.2", "Mean cosine"):
        assert words in page
    assert page.count('<span class="badge collapsed">') == 2  # images and captions of vsepp
    drawn = re.findall(r'<svg class="look"', page)
    assert len(drawn) == 8 * (4 + 4 + 2)  # two passes of four elements, one of two
    assert page.count("After pass 1") == 8
    assert page.count("After pass 2") == 0  # the last pass is not an earlier one
    clouds = re.findall(r'class="style-(\d) of-(images|texts)" d="(.*?)"', page)
    assert len(clouds) == 2 * (4 + 2)
    assert all(path.count("M") == 20 for *_, path in clouds)
    assert "80 of 1,200 vectors of images and 80 of 6,000 vectors of texts" in page


def test_each_image_element_stands_beside_the_text_element_that_it_matches(page: str) -> None:
    assert "cora: image 1 with text 1 (237.5 and 237.5), image 2 with text 2 (234.5 and" in page
    cosine = [[0.1, 0.9, 0.2], [0.0, -0.1, 0.3]]
    side = {"log_circular_variance": -1.0, "winners": 1.0}
    metrics = SetMetrics.model_validate(
        {
            "gallery": 10,
            "rsum": 300.0,
            "images": side | {"rsum_of": {"1": 250.0, "2": 260.0, "1+2": 270.0}},
            "texts": side | {"rsum_of": {"1": 240.0, "2": 251.0, "3": 261.0}},
        }
    )
    pairs = ElementPairs(share=[[0.0] * 3] * 2, cosine=cosine)
    assert [*partners(pairs, metrics)] == [(1, 2, 250.0, 251.0), (2, 3, 260.0, 261.0)]


def test_page_shows_what_each_element_retrieves_and_what_is_retrieved_again(
    page: str, with_sets: Path
) -> None:
    details = json.loads((with_sets / "runs" / "scenes" / "cora" / "sets.json").read_text())
    first = page.partition('id="look-1"')[2].partition("</article>")[0]
    cora, vsepp = first.split('<figure class="elements">')[1:]
    for part, elements in ((cora, 4), (vsepp, 2)):
        assert len(re.findall(r'<ol class="texts"', part)) == elements
        assert part.count('class="text"') == 3 * elements
    assert "4 elements, different captions retrieved first: 4" in cora
    assert "2 elements, different captions retrieved first: 1" in vsepp
    # Element k of cora shows the places k to k + 2, so that element 1's third is 2's second.
    also = re.findall(r"also element ([\d, ]+)", cora)
    assert also[:3] == ["2", "2, 3", "1"]
    assert re.findall(r"also element ([\d, ]+)", vsepp) == ["2"] * 3 + ["1"] * 3
    for answer in details["nearest"]["images"][0]["elements"][3]:
        assert escape(answer["caption"]) in cora
    read = page.partition('id="read-1"')[2].partition("</article>")[0]
    assert read.count('<ol class="images"') == 4 + 2
    assert "cosine with element 1" in read
    for words in ("3.4 of 4", "1.0 of 2"):  # the mean over all queries
        assert words in page


def test_variance_with_the_norm_squared_stands_below_maxmatchs_table(page: str) -> None:
    below = page.partition("within-set circular variance (Flickr30K)</summary>")[2]
    note = below.partition("</details>")[2].partition("</p>")[0]
    assert "cora -1.31 / -1.31; vsepp -6.43 / -6.43." in note
    assert page.count("MaxMatch squares the norm") == 1


def test_the_papers_numbers_of_their_elements_fold_out_below_ours(page: str) -> None:
    below = page.partition('id="sets"')[2].partition("Which elements match")[0]
    titles = re.findall(r"</span> (.*)</summary>", below)
    assert [title.partition(":")[0] for title in titles] == [
        *("DivE, table 3", "DivE, table 5"),
        *("MaxMatch, table 4", "MaxMatch, table 4"),
    ]
    for words in ("image set: only element 2", "309.6", "437.91", "-1.68"):
        assert words in below


def test_bare_clone_keeps_the_table_and_says_what_is_missing(with_sets: Path) -> None:
    shutil.rmtree(with_sets / "runs")
    page = page_of(with_sets)
    assert "-7.12" in page
    assert "details of these sets are not on this machine" in page
    assert 'id="elements"' not in page


def test_sets_without_attention_still_show_what_elements_retrieve(with_sets: Path) -> None:
    for preset in ("cora", "vsepp"):
        path = with_sets / "runs" / "scenes" / preset / "sets.json"
        edit(path, lambda sets: sets.update(image_maps=[], caption_maps=[]))
    page = page_of(with_sets)
    assert "Which elements match" in page
    assert '<svg class="look"' not in page
    assert "Words read by" not in page
    assert '<ol class="texts" aria-label="Element 4"' in page


def _map(**parts: Any) -> ImageMap:
    made = {"image_id": "a", "size": (4, 4), "grid": 2, "boxes": None, "weights": [[0.25] * 4]}
    made["passes"] = []
    return ImageMap.model_validate(made | parts)


def test_veil_is_on_what_is_not_looked_at() -> None:
    drawing = look(_map(size=(4, 2)), [0.0, 0.0, 0.5, 0.25], 0)
    assert drawing.frame == (0, 25, 100, 50)
    assert drawing.veils == [(0.34, "M1 1h1v1h-1z"), (0.84, "M0 0h2v1h-2z")]
    assert drawing.label == "Element 1: most, 50%, at row 2, column 1 of 2"


def test_even_attention_veils_nothing_and_none_veils_all() -> None:
    assert look(_map(), [0.25] * 4, 0).veils == []
    assert look(_map(), [0.0] * 4, 0).veils == [(0.84, "M0 0h2v1h-2zM0 1h2v1h-2z")]


def test_boxes_are_drawn_strongest_last_and_weak_ones_not_at_all() -> None:
    boxes, weights = (
        [(0.0, 0.0, 0.5, 1.0), (0.5, 0.5, 1.0, 1.0), (0.0, 0.0, 0.1, 0.1)],
        [0.6, 0.39, 0.01],
    )
    drawing = look(_map(grid=None, boxes=boxes, weights=[weights]), weights, 0)
    assert [outline.strength for outline in drawing.outlines] == [0.65, 1.0]
    first = drawing.outlines[-1]
    assert (first.x, first.y, first.width, first.height) == (0, 0, 50, 100)
    assert drawing.label.endswith("60%, at region 1 of 3")


def test_points_of_one_element_are_one_path_and_images_lie_on_top() -> None:
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


def test_one_modality_may_be_single_vectors(with_sets: Path) -> None:
    path = with_sets / "results" / "scenes" / "vsepp.json"
    edit(path, lambda metrics: metrics["sets"].pop("texts"))
    assert "-7.12" in page_of(with_sets)
