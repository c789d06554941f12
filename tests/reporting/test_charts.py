"""Curves are read as dvclive writes them, and stay inside of their charts."""

import re

import pytest

from manymatch.reporting.report import offline_page
from manymatch.reporting.sections.methods import validation_chart
from manymatch.results.runs import Curve, read_curves
from manymatch.util.errors import DataError


def test_what_dvclive_writes_is_read(tmp_path):
    dvclive = pytest.importorskip("dvclive")
    with dvclive.Live(str(tmp_path), dvcyaml=False, save_dvc_exp=False) as live:
        for value in (3.0, float("nan"), 1.5):
            live.log_metric("train/loss", value)
            live.log_metric("epoch", value)
            live.next_step()
    curves = read_curves(tmp_path)
    assert curves["train/loss"] == Curve("train/loss", ((0.0, 3.0), (2.0, 1.5)))
    assert set(curves) == {"train/loss", "epoch"}


@pytest.mark.parametrize("value", ["", "NA"])
def test_a_curve_has_a_number_in_each_line_or_is_empty(tmp_path, value):
    path = tmp_path / "plots" / "metrics" / "loss.tsv"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")  # as a full disk leaves the file
    assert read_curves(tmp_path) == {}
    path.write_text(f"step\tloss\n0\t1.5\n1\t{value}\n")
    with pytest.raises(DataError, match=r"loss\.tsv: expected"):
        read_curves(tmp_path)


@pytest.mark.parametrize(
    "points",
    [
        [(0, 5.0)],
        [(3, 0.0), (4, 0.0)],
        [(0, -1e-9), (1, 2e-9)],
        [(0, 1e12), (7, -3e11)],
        [(step, step**0.5) for step in range(5000)],
    ],
)
def test_any_finite_curve_stays_inside_its_chart(points):
    chart = validation_chart([("cora", 2, {"validation/rsum": Curve("validation/rsum", points)})])
    places = [float(text) for text in re.findall(r"[-\d.]+", chart.lines[0].path)]
    assert places
    assert all(0 <= position <= 1000 for position in places)
    assert len(chart.lines[0].dots) <= 200
    assert 2 <= len(chart.y_ticks) <= 8
    assert all(-0.01 <= tick.at <= 100.01 for tick in [*chart.x_ticks, *chart.y_ticks])


def test_the_page_of_dvc_asks_for_nothing_from_a_network():
    pytest.importorskip("js_lib_vega_embed")
    page = offline_page()
    assert page.count("{plot_divs}") == 1 and "{scripts}" not in page
    assert not re.search(r"<(script|link)[^>]*(src|href)=", page)
    assert page.count("</script") == page.count("<script")
