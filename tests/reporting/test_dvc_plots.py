"""`dvc plots show`: one chart for each logged value, with the curves of all presets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from manymatch.reporting.dvc_plots import offline_page
from manymatch.reporting.report import report


def test_the_curves_of_all_presets_are_in_one_table(reports: Path) -> None:
    report(reports)
    lines = (reports / "plots" / "scenes" / "validation" / "rsum.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    assert rows[0] == ["step", "preset", "rsum"]
    assert {preset for _, preset, _ in rows[1:]} == {"cora", "vsepp"}
    own = reports / "curves" / "scenes" / "cora" / "plots" / "metrics" / "validation" / "rsum.tsv"
    expected = [tuple(map(float, line.split())) for line in own.read_text().splitlines()[1:]]
    assert [(float(s), float(v)) for s, preset, v in rows[1:] if preset == "cora"] == expected


def test_the_page_of_dvc_asks_for_nothing_from_a_network() -> None:
    pytest.importorskip("js_lib_vega_embed")
    page = offline_page()
    assert page.count("{plot_divs}") == 1 and "{scripts}" not in page
    assert not re.search(r"<(script|link)[^>]*(src|href)=", page)
    assert page.count("</script") == page.count("<script")
