"""The section on studies: every number and case of every model, and faults in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_studies import GRAPH, write_studies

from manymatch.reporting.queries import Thumbnails
from manymatch.reporting.report import report
from manymatch.reporting.studies import StudyView, views
from manymatch.results.studies import Studies
from manymatch.system.errors import DataError

EVIL = "<script>alert(1)</script>\"'>"


@pytest.fixture
def studied(reports: Path) -> Path:
    """Studies of both models of `scenes`; one has no entities."""
    samples = json.loads((reports / "runs" / "scenes" / "cora" / "samples.json").read_text())
    pictures = [query["thumbnail"] for query in samples["images"][:3]]
    write_studies(reports, "scenes", "cora", pictures)
    write_studies(reports, "scenes", "vsepp", pictures, entities=False)
    return reports


def page_of(reports: Path) -> str:
    report(reports)
    return (reports / "index.html").read_text(encoding="utf-8")


def shown(reports: Path) -> list[StudyView]:
    return views(Studies.read_all(reports), "scenes", Thumbnails())


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_a_page_without_studies_has_no_such_section(reports: Path) -> None:
    assert "-studies" not in page_of(reports)


def test_the_page_shows_all_studies_of_the_dataset_that_has_them(studied: Path) -> None:
    page = page_of(studied)
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert {"scenes-studies", *(f"scenes-study-{n}" for n in range(1, 5))} <= set(ids)
    assert "flickr8k-studies" not in ids
    section = page[page.index('id="scenes-studies"') : page.index('id="scenes-provenance"')]
    for words in ("13.13", "16.13", "51.33", "1,432", "236.25", "450", "two blue cats"):
        assert words in section
    assert section.count("<caption>rsum</caption>") == 1
    assert section.count('<svg class="drawing"') == 2 * 2
    assert "best 243.12 at 0.6" in section and ">beta</div>" in section


def test_tables_of_models_stand_below_each_other(studied: Path) -> None:
    of_scenes = {view.name: view for view in shown(studied)}
    assert list(of_scenes) == ["rich_captions", "entity_retrieval", "parse_errors", "reranking"]
    (table,) = of_scenes["rich_captions"].tables
    assert [preset for preset, _ in table.rows] == ["cora", "cora", "vsepp", "vsepp"]
    assert [cells[2] for _, cells in table.rows] == [
        (text, True) for text in ("21", "13.13", "24", "16.13")
    ]
    errors = of_scenes["parse_errors"].tables[0].rows[0][1]
    assert errors[0] == ("any", False) and errors[-1] == ("-", True)
    assert of_scenes["reranking"].tables == []


def test_cases_of_models_stand_side_by_side(studied: Path) -> None:
    path = studied / "studies" / "scenes" / "vsepp.json"
    edit(path, lambda value: value["studies"]["rich_captions"]["samples"].pop(0))
    of_scenes = {view.name: view for view in shown(studied)}
    rich = of_scenes["rich_captions"].rich
    assert [row.ranks for row in rich[:2]] == [[1, None], [5, 8]]
    assert [preset for preset, _ in of_scenes["entity_retrieval"].entities[0].answers] == [
        "cora",
        "vsepp",
    ]


def test_about_names_the_model_where_models_differ(studied: Path) -> None:
    path = studied / "studies" / "scenes" / "vsepp.json"
    edit(path, lambda value: value["studies"]["rich_captions"].update(about="Another."))
    found = {view.name: view.about for view in shown(studied)}
    assert found["rich_captions"][1] == ("vsepp", "Another.")
    assert found["entity_retrieval"] == [(None, "All entities.")]


def test_a_study_of_ones_own_shows_its_tables(studied: Path) -> None:
    table = {"title": "Own", "columns": ["What", "How much"], "rows": [["this", 77.25]]}
    own = {"title": "My study", "about": "Mine.", "tables": [table], "samples": [{"a": 1}]}
    path = studied / "studies" / "scenes" / "cora.json"
    edit(path, lambda value: value["studies"].update(mine=own))
    page = page_of(studied)
    assert "My study" in page and "77.25" in page


def test_words_of_others_are_text(studied: Path) -> None:
    def poison(value: dict[str, Any]) -> None:
        studies = value["studies"]
        studies["rich_captions"]["samples"][0]["caption"] = EVIL
        studies["rich_captions"]["tables"][0]["rows"][0][0] = EVIL
        image = studies["entity_retrieval"]["samples"][0]
        image["captions"][0] = image["entities"][0]["entity"] = EVIL
        error = studies["parse_errors"]["samples"][0]
        error["caption"] = EVIL
        error["before"] = GRAPH | {"objects": [EVIL, "ball"]}

    edit(studied / "studies" / "scenes" / "cora.json", poison)
    page = page_of(studied)
    assert EVIL not in page
    assert page.count("&lt;script&gt;alert(1)") >= 6


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a cell too few": (
        lambda v: v["studies"]["rich_captions"]["tables"][0]["rows"][0].pop(),
        "studies.rich_captions.tables.0: Value error, table 'Text to image'",
    ),
    "no rank": (
        lambda v: v["studies"]["rich_captions"]["samples"][0].pop("rank"),
        "studies.rich_captions.samples.0.rank: Field required",
    ),
    "no picture": (
        lambda v: v["studies"]["entity_retrieval"]["samples"][0].update(thumbnail="x"),
        "not a base64 JPEG",
    ),
    "edge to nowhere": (
        lambda v: v["studies"]["parse_errors"]["samples"][0]["after"].update(attributes=[]),
        "studies.parse_errors.samples.0.after",
    ),
    "another's": (lambda v: v.update(preset="dive"), "belongs to 'scenes/dive'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_file_is_one_line(studied: Path, fault: str) -> None:
    spoil, words = FAULTS[fault]
    path = studied / "studies" / "scenes" / "cora.json"
    edit(path, spoil)
    with pytest.raises(DataError) as error:
        report(studied)
    assert str(path) in str(error.value) and words in str(error.value)
    assert "manymatch study scenes cora" in str(error.value)
    assert "\n" not in str(error.value)
