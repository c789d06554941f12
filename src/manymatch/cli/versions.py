"""The commands `models list`, `show`, `promote` and `rollback`."""

import math
from typing import TYPE_CHECKING, Annotated

import typer

from manymatch.cli import project
from manymatch.cli.options import DatasetName
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.util.errors import CheckpointError, ConfigError
from manymatch.util.progress import say

if TYPE_CHECKING:
    from manymatch.model.versions import Version

commands = typer.Typer(
    help="List models; show and promote the versions of a trained model, or go back by one.",
    invoke_without_command=True,
)
_SHOWN = 20
"""The newest versions that are shown."""


@commands.callback()
def _listed_without_action(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_models()


@commands.command("list")
def list_models() -> None:
    """List the models of this package, those in production, and those that were trained here."""
    from manymatch.model.facts import FACTS, facts
    from manymatch.model.places import packaged
    from manymatch.model.versions import promoted
    from manymatch.reporting.table import Cell, Column, Table
    from manymatch.reporting.terminal import show

    trained = {str(path.parent): path.parent for path in sorted(LAYOUT.models.glob(f"*/*/{FACTS}"))}
    promoted_here = {
        f"{dataset} = {known[-1]}": known[-1].folder(LAYOUT)
        for dataset, known in promoted(LAYOUT).items()
    }
    texts = (
        Column(title, numeric=False) for title in ("model", "method", "trained on", "pictures")
    )
    columns = [*texts, Column("validation rsum"), Column("MB")]
    rows = []
    for name, folder in (packaged() | promoted_here | trained).items():
        if name in promoted_here and not folder.exists():  # the weights are not fetched for a list
            rows.append([Cell(name), *[Cell()] * (len(columns) - 1)])
            continue
        try:
            known = facts(folder)
        except CheckpointError as error:  # one damaged model hides no other
            say(str(error))
            continue
        size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
        rows.append(
            [
                Cell(name),
                Cell(known["method"]),
                Cell(known.get("dataset") or ""),
                Cell((known.get("extraction") or {}).get("backbone", "")),
                Cell.number(known.get("rsum")),
                Cell.number(size / 1e6),
            ]
        )
    show([Table("Models", columns, rows)])


@commands.command("show")
def show_versions(
    model: Annotated[str, typer.Argument(metavar="DATASET[/PRESET]", help="A data set or model.")],
) -> None:
    """Show the versions of a model, or of all models of a data set: each training whose dvc.lock
    was committed."""
    from manymatch.model.versions import promoted, versions
    from manymatch.reporting.table import Cell, Column, Note, Table
    from manymatch.reporting.terminal import show

    project.require_project()
    if not (known := versions(LAYOUT, model)):
        raise ConfigError(
            f"{model}: no version. A training becomes a version when dvc.lock is committed after "
            "'dvc repro'"
        )
    present = promoted(LAYOUT).get(model.partition("/")[0], [None])[-1]
    rows = [
        [
            Cell(str(one)),
            Cell(one.date[:16].replace("T", " ")),
            Cell(one.commit[:8]),
            Cell(one.data[:8]),
            Cell.number(one.metrics.get("rsum")),
            Cell("production" if present and one.md5 == present.md5 else ""),
        ]
        for one in known[-_SHOWN:]
    ]
    texts = [Column(title, numeric=False) for title in ("version", "date", "commit", "data")]
    columns = [*texts, Column("rsum"), Column("alias", numeric=False)]
    older = len(known) - len(rows)
    notes = [Note(f"{older} older versions are not shown")] if older else []
    show([Table(f"Versions of {model}", columns, rows), *notes])


@commands.command()
@writes(LAYOUT.production)
def promote(
    version: Annotated[
        str, typer.Argument(metavar="DATASET/PRESET[@HASH]", help="A version; default: the newest.")
    ],
    gate: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC=POINTS",
            help="Refuse a version whose METRIC, such as rsum, is more than POINTS below that of "
            "the version in production.",
        ),
    ] = None,
) -> None:
    """Put a version into production: '--model DATASET' is then this version."""
    from manymatch.model import versions

    project.require_project()
    metric, _, points = (gate or "").partition("=")
    try:
        limits = (metric, float(points)) if gate is not None else None
        if limits and not math.isfinite(limits[1]):
            raise ValueError
    except ValueError:
        raise ConfigError(f"--gate {gate}: expected METRIC=POINTS, such as rsum=1.5") from None
    new = versions.version(LAYOUT, version)
    before = versions.promote(LAYOUT, new, limits)
    _say_production(new, before)


@commands.command()
@writes(LAYOUT.production)
def rollback(dataset: DatasetName) -> None:
    """Put the version that was in production before into production again."""
    from manymatch.model import versions

    project.require_project()
    _say_production(*versions.roll_back(LAYOUT, dataset))


def _say_production(new: "Version", before: "Version | None") -> None:
    was = f"; before: {before}" if before else ""
    say(f"production of {new.model.partition('/')[0]}: {new}{was}. Commit {LAYOUT.production}")
