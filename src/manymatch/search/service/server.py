"""Running the service until it is told to end."""

import errno
import math
import signal
import socket
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from manymatch.util.errors import ConfigError
from manymatch.util.packages import extra, package_folder
from manymatch.util.progress import say

if TYPE_CHECKING:
    from manymatch.search.explore.explorer import Explorer

_LONGEST_ADDRESS = 1024**2
"""Bytes of an address with headers. Longer ones end the connection; shorter ones get an answer."""
_GRACE = 5


def serve(
    indexes: Sequence[str | Path],
    host: str,
    port: int,
    rate: float = 500,
    model: str | None = None,
    show: bool = False,
    explorer: "Explorer | None" = None,
) -> None:
    """Serve indexes on `http://host:port` until SIGINT or SIGTERM, or until none can be loaded.

    Args:
        indexes: folders, and URLs of tables.
        rate: requests a second that each client may send.
        model: of all indexes; None: as each says.
        show: whether to open the page in a browser.
        explorer: what the page `/explore` shows.

    Raises:
        SystemExit: no index can be loaded.
        ConfigError: the rate is not a finite number, the port is in use, the address is not one of
            this machine, or an index is missing.
    """
    if not math.isfinite(rate):
        raise ConfigError(f"--rate {rate}: expected a number of requests a second, such as 500.")
    listener = _listener(host, port)  # The port opens before slow imports.
    import uvicorn

    from manymatch.search.service.app import application
    from manymatch.search.service.guard import Connection, most_connections
    from manymatch.search.service.served_index import ServedIndex

    useless = Event()

    def end() -> None:
        useless.set()
        server.should_exit = True

    served = [ServedIndex.from_folder(folder, model) for folder in indexes]
    config = uvicorn.Config(
        application(served, host, rate, end, explorer),
        http=Connection,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_LONGEST_ADDRESS,
        backlog=most_connections(),
        timeout_graceful_shutdown=_GRACE,
    )
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listener.getsockname()[1]}"
    say(f"{address} (Ctrl+C ends)")
    if show:
        # A browser in the terminal returns when it ends, and needs a service until then.
        Thread(target=webbrowser.open, args=[address], daemon=True).start()
    # uvicorn ends at these signals and then raises them once more.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)
    server = uvicorn.Server(config)
    server.run(sockets=[listener])
    if useless.is_set():
        sys.exit(1)  # The faults of the indexes stand on the terminal.


def check_ready(host: str, port: int) -> None:
    """Check that a service can be started; raises the same as `serve`."""
    _listener(host, port).close()


def _listener(host: str, port: int) -> socket.socket:
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        package_folder(package, extra("search"), "use 'manymatch search'")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except UnicodeError:
        raise ConfigError(f"{host}: not the name of a host. Check --host.") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} of {host} is in use. Choose another one with --port."
            ) from None
        raise ConfigError(
            f"cannot listen on port {port} of {host}: {error.strerror}. Check --host and --port."
        ) from None
