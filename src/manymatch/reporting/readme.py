"""The tables and figures of experiments in README.md and docs/results.md.

A table stands between two markers, `<!-- results DATASET/EXPERIMENT -->` and `<!-- /results -->`. A
page that names the picture `images/results/DATASET/EXPERIMENT.svg` gets the picture, too.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from manymatch.reporting.page import environment
from manymatch.reporting.sections import experiments, false_negatives
from manymatch.results.experiments import Experiment
from manymatch.util import files
from manymatch.util.errors import DataError, nearest

_BLOCK = re.compile(r"(<!-- results (\S+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)
_MARKER = re.compile(r"<!-- /?results\b")
_PICTURE = re.compile(r"\(([\w./-]*images/results/([\w-]+/[\w-]+)\.svg)\)")
_LAST = "mAP@R"
"""The last column of an experiment's table that a page shows; the report has all."""


def update_pages(pages: Sequence[Path], reports: Path) -> None:
    """Put the results in the folder `reports` between the markers of each page, and write the
    pictures that the pages name. If a file, a pair of markers or an experiment is missing, there is
    a `DataError`, and nothing is changed."""
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
            written[page.parent / path] = svg(named[name])
    for file, text in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write_through(file, text)


def _filled(page: str, named: Mapping[str, Experiment]) -> str:
    """The page with the first columns of each table. The text that explains the columns stands
    below the first table alone."""
    explained: set[str] = set()

    def filled(match: re.Match[str]) -> str:
        experiment = named[match[2]]
        markdown = false_negatives.markdown(experiment) or experiments.to_markdown(experiment)
        text, *_ = markdown.strip().partition("\n\n*published*")
        head, table, *notes = text.split("\n\n")
        rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
        shown = rows[0].index(_LAST) + 1 if _LAST in rows[0] else None
        lines = "\n".join(f"| {' | '.join(row[:shown])} |" for row in rows)
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

    return _BLOCK.sub(filled, page)


def svg(experiment: Experiment) -> str:
    """The experiment's first chart as a picture, for pages that are not the report."""
    both = false_negatives.charts(experiment.dataset, false_negatives.measured(experiment))
    chart = (both or experiments.dot_charts(experiment))[0]
    return environment().get_template("dot_chart.svg").render(chart=chart)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: the file is missing. Write the page with its markers") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
