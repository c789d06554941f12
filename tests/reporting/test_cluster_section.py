"""SwAMP's classes on the page: keywords, members and pictures; faulty files are one line."""

from __future__ import annotations

from pathlib import Path

from made_results import write_clusters

from manymatch.reporting.blocks import Heading
from manymatch.reporting.sections.clusters import MAX_CAPTIONS, ClusterGrid, section
from manymatch.results.all_results import AllResults
from manymatch.results.clusters import Clusters

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
