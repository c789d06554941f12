"""What `dvc plots show` draws without a network: a chart of each logged value, with all presets."""

from collections.abc import Sequence

from manymatch.reporting.page import TEMPLATES
from manymatch.results.runs import Run
from manymatch.util.packages import package_folder

_PACKAGE = "django-js-lib-vega-embed"
"""Vega, Vega-Lite and Vega-Embed as they are published; the wheel has no code but a version."""


def curve_tables(runs: Sequence[Run]) -> dict[str, str]:
    """A tab-separated table for each data set and logged value, by path: `scenes/train/loss.tsv`.

    The columns are `step` (the epoch, from 1), `preset` and the value, because DVC draws the last
    column.
    """
    tables: dict[str, str] = {}
    for run in runs:
        for name, curve in run.curves.items():
            path = f"{run.dataset}/{name}.tsv"
            lines = [f"{step + 1:g}\t{run.preset}\t{value}\n" for step, value in curve.points]
            head = f"step\tpreset\t{name.rpartition('/')[2]}\n"
            tables[path] = "".join([tables.get(path, head), *lines])
    return tables


def offline_page() -> str:
    """The page that DVC fills (its setting `plots.html_template`), with Vega inside.

    DVC's own page loads Vega from a network.

    Raises:
        ConfigError: the package with Vega is not installed.
    """
    advice = "use 'dvc plots show' with a network"
    folder = package_folder("js_lib_vega_embed", _PACKAGE, advice)
    script = folder / "static" / "js_lib_vega_embed" / "vega-embed-full.js"
    page = (TEMPLATES / "plots.html").read_text(encoding="utf-8")
    return page.replace("SCRIPT", script.read_text(encoding="utf-8"))
