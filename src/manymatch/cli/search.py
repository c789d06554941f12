"""Indexing pictures or captions with a trained model, searching them, and the search service."""

import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from manymatch.cli import project
from manymatch.cli.options import Device, MovedModel, PartName, Port, check_name
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.util.errors import ConfigError, ManyMatchError
from manymatch.util.parts import Part, Parts
from manymatch.util.progress import say
from manymatch.util.regular_file import resolved

if TYPE_CHECKING:
    from manymatch.model.answer import Answer
    from manymatch.search.index.sources import Source

commands = typer.Typer()

Engine = Literal["lance", "lance-ivf"]
_BETWEEN_LOOKS = 5.0
"""Seconds between two checks of the source by `index --watch`."""


def _target(source: Path | None, model: str | None, to: str | None, name: str | None) -> Path:
    """The index that a command writes: the folder `--to`, or that of an index of params.yaml. For
    a URL, the place in the current folder beside which unfinished parts lie."""
    given: dict[str, object] = {"SOURCE": source, "--model MODEL": model, "--to FOLDER": to}
    if LAYOUT.production.exists():  # the version in production is the default
        given["--model MODEL"] = model or ""
    missing = [option for option, value in given.items() if value is None]
    if name is None and missing:
        raise ConfigError(
            f"missing: {', '.join(missing)}. Add what is missing, or give --name alone with the "
            "name of an index in params.yaml"
        )
    if name is not None and (source, model, to) != (None, None, None):
        raise ConfigError("--name: params.yaml gives SOURCE, --model and --to. Leave them out")
    if to and "://" in to:
        return Path.cwd() / to.rstrip("/").rpartition("/")[2]
    path = resolved(Path(to) if to else LAYOUT.indexes / str(name))
    if path.is_symlink():
        raise ConfigError(f"{path}: the links lead in a circle. Choose another folder")
    return path


@commands.command()
@writes(_target)
def index(
    source: Annotated[
        Path | None,
        typer.Argument(
            help="A folder of pictures or of shards, a feature store (.h5), or a text file with "
            "one caption a line (.txt)."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A folder, such as models/scenes/cora, a name of 'manymatch models', or a data "
            "set, for its version in production. Default: the only version in production.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="The index to write or to update; also the URL of a table."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            callback=check_name,
            metavar="NAME",
            help="An index of params.yaml, which gives SOURCE, --model and --to.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Facts to filter by, .csv or .parquet with a column 'path'."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            callback=check_name, help="Of shards: train, validation or test. Default: all splits."
        ),
    ] = None,
    device: Device = "auto",
    part: PartName = None,
    engine: Annotated[
        Engine | None,
        typer.Option(
            help="Write a table of LanceDB, which several hosts read: lance for exact searches, "
            "lance-ivf for millions of items by candidates."
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on, and bring the index up to date every 5 s.")
    ] = False,
) -> None:
    """Index pictures or captions. A later run embeds only new and changed items.

    A run that was killed continues where it stopped.
    """
    from manymatch.model.facts import FACTS
    from manymatch.model.model import load
    from manymatch.model.places import packaged
    from manymatch.model.versions import in_production
    from manymatch.search.index import build as stage
    from manymatch.search.index.sources import source_of

    if part and watch:
        raise ConfigError("--watch cannot be combined with --part. Remove one of the two options.")
    if part and table:
        raise ConfigError(
            "--table cannot be combined with --part. Give the table to the command that joins the "
            "parts."
        )
    url, target = to if to and "://" in to else None, _target(source, model, to, name)
    if name is not None:
        listed = project.params().index(name)
        source, model = Path(listed.source), str(LAYOUT.models / listed.model)
    assert source is not None
    given = model is not None and (
        Path(model, FACTS).is_file() or "/" in model or model in packaged()
    )
    promoted = None if given else in_production(LAYOUT, model)
    if promoted is None and model is None:
        raise ConfigError("missing: --model MODEL. Several data sets have a version in production")
    items = source_of(source, split)
    loaded = load(promoted or str(model), device)
    parts = Parts(_parts(target), None if part is None else Part.read(part))
    if parts.wanted:
        stage.build_part(items, loaded, parts)
    else:
        times = not target.is_relative_to(resolved(LAYOUT.indexes))  # else an output of DVC
        build = partial(
            stage.build,
            items,
            target=target,
            table=table,
            parts=parts,
            times=times,
            any_model=promoted is not None,
            engine=engine,
            url=url,
        )
        seen, fault, shown = _states(items), "", url or target
        say(f"{shown}: {build(model=loaded, model_path=str(promoted or model))}")
        while watch:
            time.sleep(_BETWEEN_LOOKS)
            try:
                latest = in_production(LAYOUT, model) if promoted else None
                if promoted and latest is None:
                    raise ConfigError(
                        f"{LAYOUT.production}: {model or 'the only data set'} is no longer in this "
                        "file, or no longer the only one. Restore the file, or restart with --model"
                    )
                if (now := _states(items)) == seen and latest == promoted:
                    continue
                seen = now
                if latest != promoted:
                    loaded, promoted = load(str(latest), device), latest
                say(f"{shown}: {build(model=loaded, model_path=str(promoted or model))}")
            except ManyMatchError as error:
                if str(error) != fault:
                    fault = str(error)
                    say(f"{shown}: not brought up to date: {fault}")


def _states(source: "Source") -> list[tuple[str, int, int]] | None:
    """The path, size and time of change of every item; None: the source cannot be listed."""
    try:
        return [(entry.path, entry.size, entry.mtime_ns) for entry in source.entries()]
    except ManyMatchError:
        return None


def _parts(index: Path) -> Path:
    """The folder of the parts of an index, whose path has no links. The parts of a stage's index
    lie with the parts of other stages."""
    data = LAYOUT.root / "data"
    if index.is_relative_to(data_folder := resolved(data)):
        return LAYOUT.parts(data / index.relative_to(data_folder))
    return Path(f"{index}.parts")


@commands.command()
def search(
    index: Annotated[str, typer.Argument(help="The folder of an index, or the URL of a table.")],
    query: Annotated[str | None, typer.Argument(help="A text, in quotation marks.")] = None,
    image: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A picture instead of a text.")
    ] = None,
    count: Annotated[int, typer.Option("-k", help="The number of results.")] = 20,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="FILTER", help="A condition: \"path glob 'a/*' and date >= 2024-01-31\"."
        ),
    ] = None,
    least: Annotated[
        float | None, typer.Option(metavar="SCORE", help="Leave out lower scores.")
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(
            help="Rank by the text's entities, too (CORA): weight of the whole text, 0-1."
        ),
    ] = None,
    model: MovedModel = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="Show the results with pictures in a browser.")
    ] = False,
) -> None:
    """Search an index by a text or a picture: the best items with their scores.

    Each search loads the model, which takes seconds. 'manymatch serve' loads the model once, and
    then answers in milliseconds.
    """
    asked = query if image is None else image
    if asked is None or None not in (query, image):
        raise ConfigError("give either a text or --image FILE.")
    from manymatch.search.index.index import Index

    opened = Index.open(index, model, beta)
    answer = opened.search(asked, count, where=where, least=least)
    if as_json:
        typer.echo(json.dumps(answer.model_dump(exclude_none=True), ensure_ascii=False))
    else:
        _show(answer)
    if open_page:
        import webbrowser

        from manymatch.search.index.export import write_grid

        page = write_grid(opened, answer)
        say(f"{page}: the results as a page")
        webbrowser.open(page.as_uri())


def _show(answer: "Answer") -> None:
    """Print the results as a table."""
    from manymatch.reporting.table import Cell, Column, Heading, Note, Table
    from manymatch.reporting.terminal import show

    ms = answer.ms
    rows = [
        [
            Cell(result.text or result.path),
            Cell.number(result.score, 3),
            Cell.number(None if result.precision is None else 100 * result.precision),
        ]
        for result in answer.results
    ]
    own = answer.right is not None and answer.right.pairs == "own"
    share = Column("own pair" if own else "right", unit="%")
    columns = [Column("item", numeric=False), Column("score"), share]
    results = Table("Results", columns, rows).filled_columns() if rows else Note("no results")
    notes = [Note(note) for note in answer.notes()]
    below = [Note(str(answer.right))] if rows and answer.right else []
    kind = "exact" if answer.exact else "not proven exact"
    times = f"parsed, encoded and searched in {ms.parse:.0f}, {ms.encode:.0f}, {ms.search:.0f} ms"
    small = f"{kind}, {answer.reranked:,} re-ranked, {times}"
    show([Heading(answer.query, small), *notes, results, *below])


@commands.command()
def serve(
    indexes: Annotated[
        list[str],
        typer.Argument(metavar="INDEX", help="Folders or URLs of 'manymatch index'."),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Port = 8000,
    rate: Annotated[
        float, typer.Option(min=1, help="Requests a second that each client may send.")
    ] = 500,
    model: MovedModel = None,
) -> None:
    """Search indexes in the browser: a page, and an HTTP service for programs.

    Several indexes, such as those of several methods, stand side by side on the page. Nobody else
    can reach the service, unless --host names another address of this machine.
    """
    from manymatch.search.service.server import serve as run

    run(indexes, host, port, rate, model)
