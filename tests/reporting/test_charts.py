"""Charts: curves are read as dvclive writes them, and every value stands where it belongs."""

import re

import pytest
from made_results import write_costs, write_experiment
from report_pages import pages_of

from manymatch.reporting.chart import LogAxis
from manymatch.reporting.dvc_plots import offline_page
from manymatch.reporting.sections.experiments import dot_charts, line_charts
from manymatch.reporting.sections.training import validation_chart
from manymatch.results.experiments import Experiment
from manymatch.results.runs import Curve, read_curves


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


def _validation(*points):
    curve = Curve("validation/rsum", points)
    chart = validation_chart([("cora", 2, {"validation/rsum": curve})])
    assert chart is not None
    return chart


def test_points_stand_where_the_ticks_say():
    chart = _validation((0, 100.0), (10, 300.0), (20, 200.0))
    (line,) = chart.lines
    assert line.summary == "best 300.0 in epoch 11"
    assert [(x, y) for _, x, y in line.dots] == [(0, 1000), (500, 0), (1000, 500)]
    assert [(tick.label, tick.at) for tick in chart.x_ticks][:2] == [("5", 20.0), ("10", 45.0)]
    assert line.dots[0][0] == "cora: 100 in epoch 1"  # as the log counts
    assert {tick.label: tick.at for tick in chart.y_ticks}["200"] == 50.0


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
    chart = _validation(*points)
    places = [float(text) for text in re.findall(r"[-\d.]+", chart.lines[0].path)]
    assert places
    assert all(0 <= position <= 1000 for position in places)
    assert len(chart.lines[0].dots) <= 200
    assert 2 <= len(chart.y_ticks) <= 8
    assert all(-0.01 <= tick.at <= 100.01 for tick in [*chart.x_ticks, *chart.y_ticks])


def test_a_logarithmic_axis_ends_on_powers_of_ten():
    axis = LogAxis([0.02, 35.0])
    assert [(tick.label, tick.at) for tick in axis.ticks()] == [
        ("0.01", 0.0),
        ("1", 50.0),
        ("100", 100.0),
    ]
    assert [tick.label for tick in LogAxis([10, 1000]).ticks()] == ["10", "100", "1K"]
    single = LogAxis([1.0])
    assert (single.at(1.0), single.at(10.0)) == (0.0, 100.0)


def experiment(reports, over, **change):
    return Experiment.read(write_experiment(reports, "what", over, **change))


def test_a_line_goes_through_the_means_where_the_ticks_say(tmp_path):
    rsums = {"a=10": [300.0], "a=2": [100.0], "a=5": [200.0]}
    chart = line_charts(experiment(tmp_path, {"a": [10, 2, 5]}, rsums=rsums))[0]
    assert [tick.label for tick in chart.x_ticks] == ["2", "5", "10"]
    assert [y for _, _, y in chart.lines[0].dots] == [1000, 500, 0]
    assert chart.lines[0].summary == "best 300.0 at 10"


@pytest.mark.parametrize(
    "over",
    [
        {"preset": ["vsepp", "dive", "cora"]},
        {"weight": [0.0, 0.1]},
        {"alpha": [None, 1, 2]},
        {"on": [True, False]},
    ],
    ids=["words", "too few", "not all numbers", "yes and no"],
)
def test_anything_else_is_rows_of_dots(tmp_path, over):
    points = experiment(tmp_path, over)
    assert line_charts(points) == []
    charts = dot_charts(points)
    assert len(charts) == 3
    for chart in charts:
        assert len(chart.dots) == len(points.points)
        assert all(0 <= dot.low <= dot.at <= dot.high <= 100 for dot in chart.dots)


def test_the_curves_of_all_presets_are_in_one_table(reports):
    pages_of(reports)
    lines = (reports / "plots" / "scenes" / "validation" / "rsum.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    assert rows[0] == ["step", "preset", "rsum"]
    assert {preset for _, preset, _ in rows[1:]} == {"cora", "vsepp"}
    own = reports / "curves" / "scenes" / "cora" / "plots" / "metrics" / "validation" / "rsum.tsv"
    expected = [tuple(map(float, line.split())) for line in own.read_text().splitlines()[1:]]
    assert [(float(s), float(v)) for s, preset, v in rows[1:] if preset == "cora"] == expected


def test_the_page_of_dvc_asks_for_nothing_from_a_network():
    pytest.importorskip("js_lib_vega_embed")
    page = offline_page()
    assert page.count("{plot_divs}") == 1 and "{scripts}" not in page
    assert not re.search(r"<(script|link)[^>]*(src|href)=", page)
    assert page.count("</script") == page.count("<script")


def test_costs_name_the_measured_revision(reports):
    write_costs(reports, git_revision="0123456789abcdef")
    assert "measured with revision 01234567," in pages_of(reports)["scenes-efficiency"]
