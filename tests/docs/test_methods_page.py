"""The page on methods against what there is: every method, every preset, every link."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_methods import NAMES

from manymatch.config.preset import read_preset

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
TITLES = {
    "vsepp": "VSE++",
    "vse_infinity": "VSE-infinity",
    "pvse": "PVSE",
    "pcme": "PCME",
    "dive": "DivE",
    "swamp": "SwAMP",
    "swamp_video": "SwAMP on videos",
    "msrm": "MSRM",
    "maxmatch": "MaxMatch",
    "cora": "CORA",
}
PRESETS = sorted((ROOT / "presets").glob("*/*.yaml"))


def row(method: str) -> str:
    (row_text,) = re.findall(rf"^\| `{method}` \|.*$", TEXT, re.MULTILINE)
    return row_text


def section(method: str) -> str:
    return TEXT.split(f"\n## {TITLES[method]}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("method", NAMES)
def test_every_method_has_a_row_with_its_file_and_a_section(method: str) -> None:
    assert f"(../src/manymatch/methods/{method}.py)" in row(method)
    words, _, deviations = section(method).strip().partition("\n\n")
    assert 250 < len(words) < 800, "what it does, in about five lines"
    assert deviations.startswith("- ")


def test_every_preset_is_linked_in_the_row_of_its_method() -> None:
    for path in PRESETS:
        target = f"(../presets/{path.parent.name}/{path.name})"
        assert target in row(read_preset(path).method)
        assert TEXT.count(target) == 1


def test_rows_link_to_nothing_that_is_not_there() -> None:
    links = [link for method in NAMES for link in re.findall(r"\]\(([^)#]+)\)", row(method))]
    assert len(links) == len(NAMES) + len(PRESETS)
    assert all((ROOT / "docs" / link).is_file() for link in links)
