"""The whole report of a made-up folder of results, compared as text with the files in `golden/`.

If a change of the report is intended, this command writes the files again:

    REWRITE=1 python -m pytest tests/reporting/test_golden_pages.py

Read `git diff tests/reporting/golden` before the commit. Style and script have a place-holder in
these files, pictures have their number, and long decimals are rounded.
"""

import os
import re
from pathlib import Path

import pytest
from report_pages import plans_of

from manymatch.reporting.page import _TEMPLATES
from manymatch.reporting.report import report

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.*"))


@pytest.fixture(scope="module")
def outputs(complete_results):
    """The outputs of the stage by name, as the golden files hold them."""
    report(complete_results, plans_of(complete_results))
    paths = [*complete_results.glob("*.*"), *(complete_results / "pages").iterdir()]
    written = {
        path.relative_to(complete_results).as_posix(): _plain(path.read_text(encoding="utf-8"))
        for path in paths
    }
    if os.environ.get("REWRITE"):
        for path in GOLDEN.rglob("*.*"):
            path.unlink()
        for name, text in written.items():
            (GOLDEN / name).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / name).write_text(text, encoding="utf-8")
    return written


def _plain(text):
    for name in ("style.css", "script.js"):
        text = text.replace((_TEMPLATES / name).read_text(encoding="utf-8"), f"({name})")
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
