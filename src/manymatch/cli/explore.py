"""Exploring results in the browser, and exporting them for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from manymatch.cli import project
from manymatch.cli.options import Browser, MovedModel, Port, check_name, check_names
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.config.names import checked_name
from manymatch.util.errors import ConfigError
from manymatch.util.progress import say

commands = typer.Typer()

Explored = Annotated[
    str | None,
    typer.Argument(callback=check_name, help="A data set. Default: the first of params.yaml."),
]


@commands.command()
def explore(
    dataset: Explored = None,
    port: Port = 8000,
    browser: Browser = True,
) -> None:
    """Show the results of a data set query by query in the browser, and judge pairs.

    The page reads the files of 'dvc repro', and writes judgments to judgments/DATASET.csv.
    """
    from manymatch.search.explore.explorer import Explorer
    from manymatch.search.service.server import check_ready, serve

    check_ready("127.0.0.1", port)
    explorer = Explorer(LAYOUT, dataset or project.params().datasets[0])
    serve([], "127.0.0.1", port, show=browser, explorer=explorer)


@commands.command()
@writes(lambda to: to)
def export(
    to: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            resolve_path=True,
            help="The new table (.parquet); for an index a folder of tables, or with the ending "
            ".lance a database of LanceDB.",
        ),
    ],
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET", help="A data set; or the folder of an index, or the URL of a table."
        ),
    ] = None,
    vectors: Annotated[
        list[str] | None,
        typer.Option(callback=check_names, metavar="PRESET", help="Add embeddings; repeatable."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For an index: a file with a text in each line. Default: items ask.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("-k", min=1, help="For an index: the best items of a query.")
    ] = 10,
    model: MovedModel = None,
) -> None:
    """Write all images and captions with ranks, scores and the map as one table.

    Embedding Atlas, FiftyOne, Spotlight and pandas read the table. For an index, the command
    writes the sets and the exact best items of queries, with which other engines can be tuned.
    """
    from manymatch.search.index.manifest import NAME, is_table

    if subject and (is_table(subject) or Path(subject, NAME).is_file()):
        from manymatch.search.index.export import write_sets
        from manymatch.search.index.index import Index

        if vectors:
            raise ConfigError("--vectors: an index has its own embeddings. Leave the option out.")
        say(f"{to}: {write_sets(Index.open(subject, model), to, queries, count)}")
        return
    if queries or model:
        raise ConfigError(f"--queries and --model belong to an index, and {subject} is none.")
    if to.suffix.lower() != ".parquet" or to.is_dir():
        raise ConfigError(f"--to: {to} is no name of a .parquet file. Choose such a name.")
    from manymatch.search.explore.explorer import Explorer
    from manymatch.search.explore.lists import write_export

    dataset = checked_name(subject, "DATASET") if subject else project.params().datasets[0]
    say(f"{to}: {write_export(Explorer(LAYOUT, dataset), to, vectors or ()):,} rows")
