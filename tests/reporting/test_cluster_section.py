"""SwAMP's classes on the page: keywords, members and pictures; faulty files are one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_experiments import write_clusters

from manymatch.reporting.clusters import MOST_CAPTIONS, views
from manymatch.reporting.queries import Thumbnails
from manymatch.reporting.report import report
from manymatch.results.clusters import Clusters
from manymatch.system.errors import DataError

JPEG = "/9j/AA=="


def test_a_class_has_its_keywords_captions_and_pictures(tmp_path: Path) -> None:
    write_clusters(tmp_path, "scenes", "swamp", {"1": JPEG, "2": None})
    thumbnails = Thumbnails()
    (view,) = views(Clusters.read_all(tmp_path), "scenes", thumbnails)
    assert "2 of 200 classes hold captions, 1 hold images; 62.5%" in view.summary
    first, second = view.classes
    assert first.title == "Class 17: 6 captions, 2 images"
    assert second.title == "Class 3: 1 caption, 0 images"
    assert (first.nouns, first.verbs) == ("dog (6), ball (6)", "chase (6)")
    assert len(first.captions) == MOST_CAPTIONS
    assert first.pictures == [(thumbnails.numbers[JPEG], "1"), (None, "2")]


def test_clusters_stand_with_their_data_set(tmp_path: Path) -> None:
    write_clusters(tmp_path, "scenes", "swamp", {})
    assert views(Clusters.read_all(tmp_path), "flickr8k", Thumbnails()) == []


def test_the_page_shows_them(reports: Path) -> None:
    report(reports)
    page = (reports / "index.html").read_text()
    assert 'id="scenes-clusters"' in page and 'href="#scenes-clusters"' in page
    assert 'id="flickr8k-clusters"' not in page
    assert "Class 17: 6 captions" in page and "A dog chases ball 0." in page


def test_a_file_in_a_wrong_place_or_with_a_wrong_picture_is_one_line(tmp_path: Path) -> None:
    path = write_clusters(tmp_path, "scenes", "swamp", {})
    moved = path.rename(path.with_name("other.json"))
    with pytest.raises(DataError, match="belongs to 'scenes/swamp'"):
        Clusters.read_all(tmp_path)
    moved.unlink()
    write_clusters(tmp_path, "scenes", "swamp", {"1": "javascript:alert(1)"})
    with pytest.raises(DataError, match=r"not a base64 JPEG.*manymatch clusters scenes swamp"):
        Clusters.read_all(tmp_path)
