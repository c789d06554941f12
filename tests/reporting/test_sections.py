"""One more kind of result and its section, and what chance gives."""

import os
from math import comb
from statistics import fmean

import pytest
from forked import forked
from made_results import write_experiment
from report_pages import edit, pages_of, section_of

from manymatch import results
from manymatch.reporting import sections
from manymatch.reporting.page import all_sections
from manymatch.reporting.sections.own_data import FRACTION, LEARNING_CURVE, chance

RESULT = '''"""Sizes of models."""

from typing import ClassVar

from manymatch.results.base import Result


class Sizes(Result):
    path: ClassVar[str] = "sizes/{dataset}.json"
    remedy: ClassVar[str] = "Measure {dataset} again."

    dataset: str
    sizes: dict[str, int]
'''
SECTION = '''"""The section on sizes."""

from manymatch.reporting.table import Block, Note
from manymatch.reporting.page import Section
from manymatch.results.all_results import AllResults
from manymatch.results.sizes import Sizes


def section(results: AllResults) -> list[Block]:
    return [Note(f"{name}: {size} parameters") for one in results.current(Sizes)
            for name, size in one.sizes.items()]


SECTIONS = [Section("Names", "sizes", 300, "Sizes", section, (Sizes,))]
'''


def test_a_kind_of_result_and_its_section_are_two_new_files(reports, tmp_path):
    for package, source in ((results, RESULT), (sections, SECTION)):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / "sizes.py").write_text(source)
    (reports / "sizes").mkdir()
    (reports / "sizes" / "own.json").write_text('{"dataset": "own", "sizes": {"cora": 7}}')

    def work():
        for package in (results, sections):
            package.__path__.append(str(tmp_path / package.__name__))
        all_sections.cache_clear()
        pages_of(reports)

    _, status = os.waitpid(forked(work), 0)
    assert status == 0
    page = (reports / "pages" / "own-names.html").read_text()
    assert '<p class="note">cora: 7 parameters</p>' in page
    assert 'href="pages/own-names.html"' in (reports / "index.html").read_text()


@pytest.mark.parametrize(
    ("rsums", "words"),
    [((200, 230, 250), "With twice the captions expect"), ((240, 230, 233), "no number")],
)
def test_own_data_has_a_learning_curve_and_near_duplicates(reports, rsums, words):
    group = [{"image_id": name, "split": name, "thumbnail": None} for name in ("train", "test")]
    known = {"copies": 7, "crossing": 2, "groups": [group], "found": 30}
    own = {"image_id": "here", "thumbnail": None}

    def owned(samples):
        samples["near_duplicates"] = known
        first, *_ = samples["captions"] = [
            {**query, **own, "rank": 9} for query in samples["captions"]
        ]
        samples["captions"] += [{**first, "caption_id": f"more{n}"} for n in range(50)]

    for preset in ("vsepp", "cora"):
        edit(reports / "runs" / "scenes" / preset / "samples.json", owned)
    shares = [0.25, 0.5, 1.0]
    by_seed = {
        f"{FRACTION}={share}": [rsum + noise, rsum, rsum - noise]
        for share, rsum, noise in zip(shares, rsums, (3, -3, 3), strict=True)
    }
    write_experiment(reports, LEARNING_CURVE, {FRACTION: shares}, rsums=by_seed, keys=[])
    pages = pages_of(reports)
    assert words in section_of(pages["scenes-results"], "learning-curve")
    assert ("expect" in words) == (
        "expect" in section_of(pages["scenes-results"], "learning-curve")
    )
    copies = section_of(pages["scenes-queries"], "near-duplicates")
    assert "7 pictures" in copies and "2 groups" in copies and copies.count("<tr>") == 3
    assert "1 of 30 groups" in copies
    assert 'id="caption-50"' in pages["scenes-queries"]
    assert "vague" in section_of(pages["scenes-queries"], "hardest")
    assert "Image here" in section_of(pages["scenes-queries"], "caption-queries")


def test_an_experiment_of_options_has_its_command(reports):
    over = {"preset": ["vsepp", "cora"]}
    write_experiment(reports, "vsepp-cora", over, keys=["preset"])
    path = reports / "experiments" / "scenes" / "vsepp-cora.json"
    of_options = "scenes vsepp cora --seeds 0,1,2 --set size=8 --set &#39;scales=[1, 2]&#39;"
    of_file = "experiments/{}.yaml --dataset scenes"
    for name, about, command in (
        ("vsepp-cora", "", of_options),
        ("vsepp-cora-options", "", of_options),
        ("vsepp-cora", "Two.", of_file),
        ("vsepp-cora-wide", "", of_file),
    ):
        stated = {"name": name, "about": about, "set": {"size": 8, "scales": [1, 2]}}
        edit(path, lambda record, stated=stated: record.update(stated))
        path = path.rename(path.with_stem(name))
        shown = section_of(pages_of(reports)["scenes-methods"], "methods")
        assert f"manymatch experiment {command.format(name)}</pre>" in shown


@pytest.mark.parametrize(
    ("images", "captions"), [(16, 80), (3, 3), (300, 1500), (100, 150), (40, 100)]
)
def test_chance_is_the_share_of_orders_with_a_true_item_in_front(images, captions):
    owned = [len(range(image, captions, images)) for image in range(images)]
    shown = chance(images, captions)
    for depth, i2t, t2i in zip((1, 5, 10), shown["i2t"], shown["t2i"], strict=True):
        whole = comb(captions, depth)
        missed = [comb(captions - own, depth) / whole if whole else 0 for own in owned]
        assert i2t == pytest.approx(100 * (1 - fmean(missed)))
        assert t2i == pytest.approx(100 * min(1, depth / images))
