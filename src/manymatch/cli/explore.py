"""Exploring results in the browser, and exporting them for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manymatch.cli import project
from manymatch.cli.options import check_name, check_names
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.util.progress import say

commands = typer.Typer()

_RATE = 500
"""Requests a second, as `serve` allows them."""
Explored = Annotated[
    str | None,
    typer.Argument(callback=check_name, help="A data set; by default the first of params.yaml."),
]


@commands.command()
def explore(
    dataset: Explored = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8000,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Ask the results of a data set in the browser: ranks, differences, pairs nobody judged.

    The page reads the files of 'dvc repro', and writes judgments to judgments/DATASET.csv.
    """
    from manymatch.search.explore.explorer import Explorer
    from manymatch.search.service.server import check_ready, serve

    check_ready("127.0.0.1", port)
    explorer = Explorer(LAYOUT, dataset or project.params().datasets[0])
    serve([], "127.0.0.1", port, _RATE, show=browser, explorer=explorer)


@commands.command()
@writes(lambda to: to)
def export(
    to: Annotated[
        Path, typer.Option(metavar="FILE", resolve_path=True, help="The new table (.parquet).")
    ],
    dataset: Explored = None,
    vectors: Annotated[
        list[str] | None,
        typer.Option(callback=check_names, metavar="PRESET", help="Add embeddings; repeatable."),
    ] = None,
) -> None:
    """Write all images and captions with ranks, scores and the map as one table.

    Embedding Atlas, FiftyOne, Spotlight and pandas read the table.
    """
    from manymatch.search.explore.explorer import Explorer
    from manymatch.search.explore.export import write_export

    explorer = Explorer(LAYOUT, dataset or project.params().datasets[0])
    say(f"{to}: {write_export(explorer, to, vectors or ()):,} rows")
