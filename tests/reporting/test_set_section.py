"""The section on sets: what it shows, what it leaves out, and how its drawings come about."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_sets import add_sets

from manymatch.errors import DataError
from manymatch.reporting import leaderboard
from manymatch.reporting.attention_drawing import look
from manymatch.reporting.report import report
from manymatch.reporting.results import read_runs
from manymatch.reporting.set_results import ImageMap, Projection
from manymatch.reporting.sets import Named, plane_of

EVIL = "<script>alert(1)</script>\"'>"


@pytest.fixture
def with_sets(reports: Path) -> Path:
    """Both methods of `scenes` have sets: four elements that share the work; two, one of which
    wins all."""
    add_sets(reports, "scenes", "cora", 4, alive=True)
    add_sets(reports, "scenes", "vsepp", 2, alive=False)
    return reports


def page_of(reports: Path) -> str:
    report(reports)
    return (reports / "index.html").read_text(encoding="utf-8")


def test_page_without_sets_has_no_such_section(reports: Path) -> None:
    page = page_of(reports)
    assert "Sets of elements" not in page
    assert "-sets" not in page


def test_page_shows_sets_of_the_dataset_that_has_them(with_sets: Path) -> None:
    page = page_of(with_sets)
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert {"scenes-sets", "scenes-looks", "scenes-reads", "scenes-look-1"} <= set(ids)
    assert "flickr8k-sets" not in ids
    for words in ("-7.12", "3.7 of 4", "1.0 of 2", "97%", "251.2", "Mean cosine"):
        assert words in page
    assert page.count('<span class="setting collapsed">') == 2  # images and captions of vsepp
    drawn = re.findall(r'<svg class="look"', page)
    assert len(drawn) == 8 * (4 + 2)
    assert len(re.findall(r'class="style-\d of-text"', page)) == 6 * 5 * (4 + 2)
    assert len(re.findall(r'class="style-\d of-image"', page)) == 6 * (4 + 2)


def test_the_papers_numbers_of_their_elements_fold_out_below_ours(with_sets: Path) -> None:
    page = page_of(with_sets)
    below = page.partition('id="scenes-sets"')[2].partition("Which elements meet")[0]
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
    assert "What these sets look at is not on this machine" in page
    assert "scenes-looks" not in page


def test_sets_without_attention_still_show_which_elements_meet(with_sets: Path) -> None:
    for preset in ("cora", "vsepp"):
        path = with_sets / "runs" / "scenes" / preset / "sets.json"
        _edit(path, lambda sets: sets.update(image_maps=[], caption_maps=[]))
    page = page_of(with_sets)
    assert "Which elements meet" in page
    assert "scenes-looks" not in page
    assert "scenes-reads" not in page


def test_part_of_the_gallery_is_told(with_sets: Path) -> None:
    path = with_sets / "metrics" / "scenes" / "cora.json"
    assert "a part of the gallery" not in page_of(with_sets)
    _edit(path, lambda metrics: metrics["sets"].update(gallery=200))
    assert "cora: its first 200 images" in page_of(with_sets)


def test_words_of_others_are_text(with_sets: Path) -> None:
    path = with_sets / "runs" / "scenes" / "cora" / "sets.json"

    def poison(sets: dict[str, Any]) -> None:
        shown = sets["caption_maps"][0]
        shown["words"][0] = shown["caption_id"] = EVIL
        sets["projection"]["images"][0] = sets["image_maps"][0]["image_id"] = EVIL

    _edit(path, poison)
    metrics = with_sets / "metrics" / "scenes" / "cora.json"
    _edit(metrics, lambda value: value["sets"]["images"]["rsum_of"].update({EVIL: 1.0}))
    page = page_of(with_sets)
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)" in page


def test_numbers_of_sets_are_in_the_csv(with_sets: Path) -> None:
    table = leaderboard.to_csv(read_runs(with_sets))
    head = table.splitlines()[0].split(",")
    assert "sets.images.log_circular_variance" in head
    assert "sets.texts.rsum_of.4" in head
    assert "sets.images.rsum_of.1+2" in head


def _edit(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "uneven rows": (lambda s: s["pairs"]["share"][0].pop(), "pairs.share: Value error"),
    "other shape": (lambda s: s["pairs"]["cosine"].pop(), "differ in shape"),
    "weight above 1": (
        lambda s: s["image_maps"][0]["weights"][0].__setitem__(0, 2.0),
        "image_maps.0.weights.0.0",
    ),
    "no place for a weight": (
        lambda s: s["image_maps"][0].update(grid=6),
        "49 weights for 36 regions",
    ),
    "no word for a weight": (
        lambda s: s["caption_maps"][1]["words"].append("more"),
        "caption_maps.1: Value error",
    ),
    "point of no image": (
        lambda s: s["projection"]["points"][0].update(image=6),
        "an image that is not there",
    ),
    "no gallery": (lambda s: s.pop("gallery"), "gallery: Field required"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_file_is_one_line(with_sets: Path, fault: str) -> None:
    spoil, words = FAULTS[fault]
    path = with_sets / "runs" / "scenes" / "cora" / "sets.json"
    _edit(path, spoil)
    with pytest.raises(DataError) as error:
        read_runs(with_sets)
    assert str(path) in str(error.value)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def _map(**parts: Any) -> ImageMap:
    made = {"image_id": "a", "size": (4, 4), "grid": 2, "boxes": None, "weights": [[0.25] * 4]}
    return ImageMap.model_validate(made | parts)


def test_veil_is_on_what_is_not_looked_at() -> None:
    drawing = look(_map(weights=[[0.0, 0.0, 0.5, 0.25]], size=(4, 2)), 0)
    assert drawing.frame == (0, 25, 100, 50)
    assert drawing.veils == [(0.34, "M1 1h1v1h-1z"), (0.84, "M0 0h2v1h-2z")]
    assert drawing.label == "Element 1: most, 50%, at row 2, column 1 of 2"


def test_even_attention_veils_nothing_and_none_veils_all() -> None:
    assert look(_map(), 0).veils == []
    assert look(_map(weights=[[0.0] * 4]), 0).veils == [(0.84, "M0 0h2v1h-2zM0 1h2v1h-2z")]


def test_boxes_are_drawn_strongest_last_and_weak_ones_not_at_all() -> None:
    boxes = [(0.0, 0.0, 0.5, 1.0), (0.5, 0.5, 1.0, 1.0), (0.0, 0.0, 0.1, 0.1)]
    drawing = look(_map(grid=None, boxes=boxes, weights=[[0.6, 0.39, 0.01]]), 0)
    assert [outline.strength for outline in drawing.outlines] == [0.65, 1.0]
    first = drawing.outlines[-1]
    assert (first.x, first.y, first.width, first.height) == (0, 0, 50, 100)
    assert drawing.label.endswith("60%, at region 1 of 3")


def test_points_fill_the_plane_and_images_lie_on_top() -> None:
    def point(x: float, y: float, modality: str) -> dict[str, Any]:
        caption = 2 if modality == "texts" else None
        return {
            "x": x, "y": y, "image": 0, "modality": modality, "element": 3, "caption": caption
        }  # fmt: skip

    points = [point(-5, 0, "images"), point(5, 5, "texts")]
    made = Projection.model_validate({"images": ["a"], "points": points})
    dots = plane_of(Named("p", 0), made, {}).dots
    assert [(dot.x, dot.y) for dot in dots] == [(386, 107), (14, 293)]
    assert [dot.label for dot in dots] == ["Image 1, caption 2, element 3", "Image 1, element 3"]


@pytest.mark.parametrize("count", [0, 1])
def test_very_few_points_are_drawn_in_the_middle(count: int) -> None:
    point = {"x": 7, "y": 7, "image": 0, "modality": "images", "element": 1, "caption": None}
    made = Projection.model_validate({"images": ["a"], "points": [point] * count})
    assert [(dot.x, dot.y) for dot in plane_of(Named("p", 0), made, {}).dots] == [
        (200, 200)
    ] * count


def test_one_modality_may_be_single_vectors(with_sets: Path) -> None:
    path = with_sets / "metrics" / "scenes" / "vsepp.json"
    _edit(path, lambda metrics: metrics["sets"].pop("texts"))
    assert "-7.12" in page_of(with_sets)
