"""The stage `report`: all results on pages, and the leaderboard as CSV, Markdown and LaTeX."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from manymatch.config.preset import Preset
from manymatch.config.strict import read_yaml, validate
from manymatch.reporting import page
from manymatch.reporting.page import TEMPLATES, all_sections
from manymatch.reporting.sections import leaderboard
from manymatch.results.all_results import AllResults
from manymatch.results.machine import git_revision, read_records
from manymatch.results.runs import Run
from manymatch.util import files
from manymatch.util.packages import package_folder
from manymatch.util.progress import working

_VEGA = "django-js-lib-vega-embed"
"""Vega, Vega-Lite and Vega-Embed as they are published; the wheel has no code but a version."""
_LATEX_HEAD = "% The tables need the package booktabs: \\usepackage{booktabs}"


def report(reports: Path, plans: Path, presets: Path | None = None) -> list[Run]:
    """Write `index.html`, `pages/*.html`, `leaderboard.{csv,md,tex}`, and what DVC draws,
    `plots/**/*.tsv`, in the folder `reports`.

    Reads all result files of the folder, the claims in the folder `plans` of experiments, and the
    published settings in the folder `presets`; curves and run files may be missing. The outputs are
    the same on every machine. What differs from run to run (date, revision, time, memory) is
    written to `machine/machine.js`, which the pages load if the file exists. The results of the
    leaderboard are returned.

    Raises:
        DataError, ConfigError: there is no result, or a file is malformed. The message is one line
            with the file. Earlier outputs then stay as they were.
    """
    published = {
        f"presets/{path.parent.name}/{path.name}": validate(Preset, stated, str(path))
        for path in (sorted(presets.glob("*/*.yaml")) if presets else ())
        if (stated := read_yaml(path)).get("setting") == "reproduced"
    }
    results = replace(read(reports, plans), published=published)
    with working("draw the pages"):
        pages = page.render(results)
    sections = all_sections()
    markdown = [text for one in sections if one.markdown for text in one.markdown(results)]
    latex = [text for one in sections if one.latex for text in one.latex(results)]
    machine = {
        "date": date.today().isoformat(),
        "revision": git_revision(reports),
        "results": {
            name: record.model_dump() for name, record in read_records(reports / "machine").items()
        },
    }
    outputs = {
        "leaderboard.csv": leaderboard.to_csv(results.runs),
        "leaderboard.md": "\n".join(markdown),
        "leaderboard.tex": "\n\n".join([_LATEX_HEAD, *latex]) + "\n",
        "index.html": pages.pop("index.html"),
        "machine/machine.js": f"window.MANYMATCH_MACHINE = {json.dumps(machine, indent=1)};\n",
    }
    for name, text in outputs.items():
        files.write_text(reports / name, text)
    with files.replacing(reports / "pages") as folder:
        folder.mkdir()
        for address, text in pages.items():
            (folder / Path(address).name).write_text(text, encoding="utf-8")
    with files.replacing(reports / "plots") as folder:
        folder.mkdir()
        for name, text in curve_tables(results.runs).items():
            files.write_text(folder / name, text)
    return results.runs


def read(reports: Path, plans: Path) -> AllResults:
    """All results that a section shows, and the claims about them; see `AllResults.read`."""
    return AllResults.read(reports, plans, [kind for one in all_sections() for kind in one.kinds])


def curve_tables(runs: Sequence[Run]) -> dict[str, str]:
    """A tab-separated table for each data set and logged value, by path: `scenes/train/loss.tsv`.
    The columns are `step` (the epoch, from 1), `preset` and the value: DVC draws the last one."""
    tables: dict[str, str] = {}
    for run in runs:
        for name, curve in run.curves.items():
            path = f"{run.dataset}/{name}.tsv"
            lines = [f"{step + 1:g}\t{run.preset}\t{value}\n" for step, value in curve.points]
            head = f"step\tpreset\t{name.rpartition('/')[2]}\n"
            tables[path] = "".join([tables.get(path, head), *lines])
    return tables


def offline_page() -> str:
    """The page that DVC fills (its setting `plots.html_template`), with Vega inside. DVC's own page
    loads Vega from a network. Without the package of Vega there is a `ConfigError`."""
    advice = "use 'dvc plots show' with a network"
    folder = package_folder("js_lib_vega_embed", _VEGA, advice)
    script = folder / "static" / "js_lib_vega_embed" / "vega-embed-full.js"
    page = (TEMPLATES / "plots.html").read_text(encoding="utf-8")
    return page.replace("SCRIPT", script.read_text(encoding="utf-8"))
