"""The tables and figures of experiments in README.md and docs/results.md.

A table stands between two markers, `<!-- results DATASET/EXPERIMENT -->` and `<!-- /results -->`. A
page that names the picture `images/results/DATASET/EXPERIMENT.svg` gets the picture, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from manymatch.reporting.chart import DotChart
from manymatch.reporting.sections import experiments, false_negatives
from manymatch.results.experiments import Experiment
from manymatch.util import files
from manymatch.util.errors import DataError, nearest

_BLOCK = re.compile(r"(<!-- results (\S+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)
_MARKER = re.compile(r"<!-- /?results\b")
_PICTURE = re.compile(r"\(([\w./-]*images/results/([\w-]+/[\w-]+)\.svg)\)")
_COLUMNS = 6
"""The columns that a page shows; the report has all."""


def update_pages(pages: Sequence[Path], reports: Path) -> None:
    """Put the results in the folder `reports` between the markers of each page, and write the
    pictures that the pages name.

    Raises:
        DataError: a file, a pair of markers, or an experiment is missing. Nothing is then changed.
    """
    named = {f"{one.dataset}/{one.name}": one for one in Experiment.read_all(reports)}
    written = {}
    for page in pages:
        old = _text(page)
        names = [match[2] for match in _BLOCK.finditer(old)]
        if not names or len(_MARKER.findall(old)) != 2 * len(names):
            raise DataError(
                f"{page}: expected pairs of the lines <!-- results DATASET/EXPERIMENT --> and "
                "<!-- /results -->"
            )
        drawn = _PICTURE.findall(old)
        for name in [*names, *(name for _, name in drawn)]:
            if name not in named:
                raise DataError(
                    f"{page}: no experiment '{name}' in {reports}{nearest(name, named)}. "
                    "Run the experiment"
                )
        written[page] = _filled(old, named)
        for path, name in drawn:
            written[page.parent / path] = svg(_chart(named[name]))
    for file, text in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write_through(file, text)


def _markdown(experiment: Experiment) -> str:
    """A caption, the table, and what the columns mean."""
    return false_negatives.markdown(experiment) or experiments.to_markdown(experiment)


def _filled(page: str, named: Mapping[str, Experiment]) -> str:
    """The page with the first columns of each table. The text that explains the columns stands
    below the first table alone."""
    explained: set[str] = set()

    def shown(match: re.Match[str]) -> str:
        text, *_ = _markdown(named[match[2]]).strip().partition("\n\n*published*")
        head, table, *notes = text.split("\n\n")
        rows = (line.strip("| ").split(" | ")[:_COLUMNS] for line in table.splitlines())
        lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        # The sentence that explains a column goes with the column.
        kept = [
            ". ".join(
                part
                for part in note.split(". ")
                if not part.startswith("Log variance") or "Log variance" in lines
            )
            for note in notes
        ]
        new = [note for note in kept if note not in explained]
        explained.update(new)
        return f"{match[1]}\n" + "\n\n".join([head, lines, *new]) + f"\n\n{match[4]}"

    return _BLOCK.sub(shown, page)


def _chart(experiment: Experiment) -> DotChart:
    both = false_negatives.charts(experiment)
    return (both or experiments.dot_charts(experiment))[0]


_ROW, _NAME, _TRACK, _WIDTH = 22, 150, 440, 640
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.s{fill:#5a616a}.t{fill:#f3f1eb}"
    ".m0{fill:#2a6fb0;stroke:#2a6fb0}.m1{fill:#c2571a;stroke:#c2571a}"
    "@media(prefers-color-scheme:dark){text{fill:#e7e4dd}.s{fill:#a4a9b0}.t{fill:#22262a}"
    ".m0{fill:#86b9ea;stroke:#86b9ea}.m1{fill:#f0a878;stroke:#f0a878}}"
)


def svg(chart: DotChart) -> str:
    """The chart as a picture, for pages that are not the report."""
    from markupsafe import escape

    def at(percent: float) -> float:
        return round(_NAME + percent / 100 * (_TRACK - _NAME), 1)

    parts = [
        f'<text x="0" y="15"><tspan font-weight="600">{escape(chart.title)}</tspan>, '
        "mean and standard deviation of the seeds</text>"
    ]
    for number, name in enumerate(chart.legend):
        x = 4 + 190 * number
        parts.append(f'<circle class="m{number}" cx="{x}" cy="{_ROW + 8}" r="4"/>')
        parts.append(f'<text class="s" x="{x + 10}" y="{_ROW + 12}">{escape(name)}</text>')
    first = 2 if chart.legend else 1
    for row, dot in enumerate(chart.dots, first):
        y = _ROW * row + 8
        parts.append(
            f'<rect class="t" x="{_NAME}" y="{y - 6}" width="{_TRACK - _NAME}" height="12"/>'
            f'<text x="0" y="{y + 4}">{escape(dot.name.text)}</text>'
            f'<text class="s" x="{_WIDTH}" y="{y + 4}" text-anchor="end">{escape(dot.text)}</text>'
        )
        for number, (mean, low, high) in enumerate(dot.marks):
            parts.append(
                f'<path class="m{number}" d="M{at(low)} {y}H{at(high)}"/>'
                f'<circle class="m{number}" cx="{at(mean)}" cy="{y}" r="4"/>'
            )
    height = _ROW * (len(chart.dots) + first + 1)
    for tick in chart.ticks:
        parts.append(
            f'<text class="s" x="{at(tick.at)}" y="{height - 8}" text-anchor="middle">'
            f"{escape(tick.label)}</text>"
        )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>"]) + "\n"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: the file is missing. Write the page with its markers") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
