"""The search service."""

from __future__ import annotations

from typing import Annotated

import typer

from manymatch.cli.options import check_name

commands = typer.Typer()


@commands.command()
def serve(
    indexes: Annotated[
        list[str],
        typer.Argument(
            metavar="INDEX", help="Folders of 'manymatch index'; with --shards addresses."
        ),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8000,
    rate: Annotated[
        float, typer.Option(min=1, help="Requests a second that each client may send.")
    ] = 500,
    shards: Annotated[
        bool,
        typer.Option(
            "--shards",
            help="INDEX are the services of the shards of one index: --shards http://HOST:8000 "
            "http://HOST2:8000. Their answers are merged exactly.",
        ),
    ] = False,
    shard_of: Annotated[
        str | None,
        typer.Option(
            callback=check_name, metavar="NAME", help="Serve INDEX as a shard of the index NAME."
        ),
    ] = None,
) -> None:
    """Search indexes in the browser: a page, and an HTTP service for programs.

    Several indexes, such as those of several methods, stand side by side on the page. Nobody else
    can reach the service, unless --host names another address of this machine.
    """
    from manymatch.search.service.server import serve as run

    run(indexes, host, port, rate, shards, shard_of)
