"""The search service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer()


@commands.command()
def serve(
    indexes: Annotated[
        list[Path], typer.Argument(metavar="INDEX", help="Folders of 'manymatch index'.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8000,
    rate: Annotated[
        float, typer.Option(min=1, help="Requests a second that each client may send.")
    ] = 500,
) -> None:
    """Search indexes in the browser: a page, and an HTTP service for programs.

    Several indexes, such as those of several methods, stand side by side on the page. Nobody else
    can reach the service, unless --host names another address of this machine.
    """
    from manymatch.search.service.server import serve as run

    run(indexes, host, port, rate)
