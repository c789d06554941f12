"""What `dvc plots show` draws without a network: a chart of each logged value, with all presets."""

from __future__ import annotations

from collections.abc import Sequence

from manymatch.results.runs import Run
from manymatch.util.packages import package_folder

_PACKAGE = "django-js-lib-vega-embed"
"""Vega, Vega-Lite and Vega-Embed as they are published; the wheel has no code but a version."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{refresh_tag}
<title>DVC plots</title>
<style>
  body { font: 15px sans-serif; display: flex; flex-wrap: wrap; gap: 1em }
  body > [id$=validation_rsum_tsv] { order: -1 }
  table { border-spacing: 15px }
</style>
<script>SCRIPT</script>
<script>
  // DVC gives the metrics files, which are no curves, an empty chart each.
  const draw = vegaEmbed;
  vegaEmbed = (place, chart) =>
    chart.data ? draw(place, chart) : document.querySelector(place).remove();
</script>
</head>
<body>
{plot_divs}
</body>
</html>
"""


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
    return _PAGE.replace("SCRIPT", script.read_text(encoding="utf-8"))
