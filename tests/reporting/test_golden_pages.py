"""The whole report of a made-up folder of results, compared as text with the files in `golden/`.

If a change of the report is intended, this command writes the files again:

    REWRITE=1 python -m pytest tests/reporting/test_golden_pages.py

Read `git diff tests/reporting/golden` before the commit. Style and script have a place-holder in
these files, pictures have their number, and long decimals are rounded.
"""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest
from report_pages import plans_of

from manymatch.reporting.page import TEMPLATES
from manymatch.reporting.report import read
from manymatch.reporting.sections import (
    costs,
    experiments,
    leaderboard,
    over_seeds,
    probes,
    tuning,
)
from manymatch.reporting.terminal import show
from manymatch.results.costs import Costs
from manymatch.results.experiments import Experiment, SketchExperiment, SyntheticExperiment
from manymatch.results.probes import Clusters, Probes
from manymatch.results.tuning import Tuning

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.*"))


@pytest.fixture(scope="module")
def outputs(complete_results):
    """The outputs of the stage by name, as the golden files hold them."""
    paths = [*complete_results.glob("*.*"), *(complete_results / "pages").iterdir()]
    paths.append(complete_results / "plots/scenes/validation/rsum.tsv")
    written = {
        path.relative_to(complete_results).as_posix(): _plain(path.read_text(encoding="utf-8"))
        for path in paths
    }
    written["terminal.txt"] = _printed(read(complete_results, plans_of(complete_results)))
    if os.environ.get("REWRITE"):
        for path in GOLDEN.rglob("*.*"):
            path.unlink()
        for name, text in written.items():
            (GOLDEN / name).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / name).write_text(text, encoding="utf-8")
    return written


def _printed(results):
    """What the commands print of all results, 80 columns wide."""
    blocks = [*leaderboard.blocks(results.runs), leaderboard.both_ways(results.runs[0].metrics)]
    for kind, blocks_of in {
        Experiment: experiments.blocks,
        SyntheticExperiment: over_seeds.synthetic,
        SketchExperiment: over_seeds.sketches,
        Costs: costs.blocks,
        Clusters: probes.class_blocks,
        Probes: lambda one: probes.blocks_of([one]),
    }.items():
        blocks += [block for one in results.current(kind) for block in blocks_of(one)]
    blocks.append(tuning.table(results.current(Tuning)))
    stream = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(stream):
        patch.setenv("COLUMNS", "80")
        show(blocks, Path("reports/index.html"))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _plain(text):
    for name in ("style.css", "script.js"):
        text = text.replace((TEMPLATES / name).read_text(encoding="utf-8"), f"({name})")
    pictures = {}
    text = re.sub(
        '(?<=data:image/jpeg;base64,)[^"]+',
        lambda found: f"{pictures.setdefault(found[0], len(pictures))}",
        text,
    )
    text = re.sub("sha256-[^']+", "sha256-(script.js)", text)
    return re.sub(r"\d+\.\d{7,}", lambda found: f"{float(found[0]):.6g}", text)


def test_the_report_has_the_golden_files(outputs):
    golden = {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.*")}
    assert outputs.keys() == golden


@pytest.mark.parametrize("name", NAMES)
def test_an_output_is_the_golden_file(outputs, name):
    assert outputs[name].splitlines() == (GOLDEN / name).read_text(encoding="utf-8").splitlines()
