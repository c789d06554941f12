"""The sections on probes and on SwAMP's classes: every number and case of every model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_probes import write_probes
from made_results import write_clusters
from report_pages import edit, pages_of, texts_of

from manymatch.reporting.blocks import Block, Heading, Note
from manymatch.reporting.chart import Chart
from manymatch.reporting.sections.clusters import MAX_CAPTIONS, ClusterGrid, section
from manymatch.reporting.sections.probes import probe_blocks, probes_by_name
from manymatch.reporting.table import Table
from manymatch.results.all_results import AllResults
from manymatch.results.clusters import Clusters
from manymatch.results.probes import Probes


@pytest.fixture
def probed(reports: Path) -> Path:
    """Probes of both models of `scenes`; one has no entities."""
    samples = json.loads((reports / "runs" / "scenes" / "cora" / "samples.json").read_text())
    pictures = [query["thumbnail"] for query in samples["images"][:3]]
    write_probes(reports, "scenes", "cora", pictures)
    write_probes(reports, "scenes", "vsepp", pictures, entities=False)
    return reports


def blocks_of(reports: Path) -> dict[str, list[Block]]:
    """The blocks of each probe of the data set `scenes`."""
    by_name = probes_by_name(Probes.read_all(reports))
    return {name: list(probe_blocks(name, probes)) for name, probes in by_name.items()}


def tables_of(blocks: Sequence[Block]) -> list[list[list[str]]]:
    return [texts_of(block) for block in blocks if isinstance(block, Table)]


def test_the_page_shows_all_probes_of_the_dataset_that_has_them(probed: Path) -> None:
    pages = pages_of(probed)
    page = pages["scenes-probes"]
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    names = ("rich_captions", "entity_retrieval", "parse_errors", "reranking")
    assert {"probes", *(f"probe-{name}" for name in names)} <= set(ids)
    assert "flickr8k-probes" not in pages
    for words in ("13.13", "16.13", "51.33", "1,432", "236.25", "450", "two blue cats"):
        assert words in page
    assert page.count("<caption>rsum</caption>") == 1
    assert page.count('<svg class="drawing"') == 2 * 2
    assert "best 243.12 at 0.6" in page and ">beta</div>" in page


def test_tables_of_models_stand_below_each_other(probed: Path) -> None:
    by_name = blocks_of(probed)
    assert list(by_name) == ["rich_captions", "entity_retrieval", "parse_errors", "reranking"]
    numbers, _ = tables_of(by_name["rich_captions"])
    assert [row[0] for row in numbers] == ["cora", "cora", "vsepp", "vsepp"]
    assert [row[3] for row in numbers] == ["21", "13.13", "24", "16.13"]
    errors = tables_of(by_name["parse_errors"])[0][0]
    assert errors[1] == "any" and errors[-1] == "-"
    assert tables_of(by_name["reranking"]) == []
    (chart,) = (block for block in by_name["reranking"] if isinstance(block, Chart))
    assert [line.name for line in chart.lines] == ["cora"]


def test_cases_of_models_stand_side_by_side(probed: Path) -> None:
    path = probed / "probes" / "scenes" / "vsepp.json"
    edit(path, lambda value: value["studies"]["rich_captions"]["samples"].pop(0))
    _, rich = tables_of(blocks_of(probed)["rich_captions"])
    assert [row[2:] for row in rich[:2]] == [["1", "-"], ["5", "8"]]
    page = pages_of(probed)["scenes-probes"]
    entities = page.partition('id="entities-1"')[2].partition("</article>")[0]
    assert re.findall(r"<h4>(\w+) ", entities) == ["cora", "vsepp"]


def test_models_that_were_probed_on_different_splits_are_told_apart(probed: Path) -> None:
    edit(probed / "probes/scenes/vsepp.json", lambda value: value.update(split="validation"))
    numbers, _ = tables_of(blocks_of(probed)["rich_captions"])
    assert [row[0] for row in numbers] == ["cora (test)"] * 2 + ["vsepp (validation)"] * 2


def test_a_table_without_rows_has_its_columns(probed: Path) -> None:
    def clear(value: Any) -> None:
        value["studies"]["rich_captions"]["tables"][0]["rows"] = []

    edit(probed / "probes/scenes/cora.json", clear)
    table = next(b for b in blocks_of(probed)["rich_captions"] if isinstance(b, Table))
    assert len(table.columns) == len(table.rows[0])


def test_about_names_the_model_where_models_differ(probed: Path) -> None:
    path = probed / "probes" / "scenes" / "vsepp.json"
    edit(path, lambda value: value["studies"]["rich_captions"].update(about="Another."))
    by_name = blocks_of(probed)
    notes = {
        name: [block.text for block in blocks if isinstance(block, Note)]
        for name, blocks in by_name.items()
    }
    assert notes["rich_captions"][1] == "vsepp: Another."
    assert notes["entity_retrieval"][0] == "All entities."


def test_probes_and_classes_of_another_model_are_named_and_left_out(probed: Path) -> None:
    write_clusters(probed, "scenes", "vsepp", {"1": JPEG}, checkpoint_sha256="9")
    edit(
        probed / "probes" / "scenes" / "cora.json",
        lambda value: value.update(checkpoint_sha256="8"),
    )
    page = pages_of(probed)["scenes-probes"]
    said = "these models were trained anew since then"
    assert page.count(said) == 2
    assert f"{said}: cora. Run &#39;manymatch probe scenes cora&#39; again" in page
    assert f"{said}: vsepp. Run &#39;manymatch clusters scenes vsepp&#39; again" in page
    assert "13.13" not in page and "16.13" in page  # CORA's number, and that of VSE++
    results = AllResults.read(probed)
    assert [result.preset for result in results.outdated] == ["cora", "vsepp"]
    assert not any(result in results.clusters for result in results.outdated)


def test_a_probe_of_ones_own_shows_its_tables(probed: Path) -> None:
    table = {"title": "Own", "columns": ["What", "How much"], "rows": [["this", 77.25]]}
    own = {"title": "My probe", "about": "Mine.", "tables": [table], "samples": [{"a": 1}]}
    path = probed / "probes" / "scenes" / "cora.json"
    edit(path, lambda value: value["studies"].update(mine=own))
    page = pages_of(probed)["scenes-probes"]
    assert "My probe" in page and "77.25" in page


JPEG = "/9j/AA=="


def test_a_class_has_its_keywords_captions_and_pictures(tmp_path: Path) -> None:
    write_clusters(tmp_path, "scenes", "swamp", {"1": JPEG, "2": None})
    view = section(AllResults(runs=[], clusters=Clusters.read_all(tmp_path)))
    assert view is not None
    _, heading, grid = view.blocks
    assert isinstance(heading, Heading) and isinstance(grid, ClusterGrid)
    assert "2 of 200 classes hold captions, 1 hold images; 62.5%" in heading.small
    first, second = grid.classes
    assert first.title == "Class 17: 6 captions, 2 images"
    assert second.title == "Class 3: 1 caption, 0 images"
    assert (first.nouns, first.verbs) == ("dog (6), ball (6)", "chase (6)")
    assert len(first.captions) == MAX_CAPTIONS
    assert first.pictures == [("1", JPEG), ("2", None)]
