"""`python divided_run.py`: a stage divided twice here, with the commands of `make.py` and of
`broken.py`; prints as JSON what was made, who listened and what was told.

A process of its own: what Prefect and Dask leave in one makes forks of it end with an error.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import psutil
from prefect.testing.utilities import prefect_test_harness

from pipelines import parts
from pipelines.stage import StageFailed


def main() -> None:
    divided = parts.divided.with_options(task_runner=parts.runner("", 2))
    hosts: set[str] = set()
    threading.Thread(target=_note_hosts, args=(hosts,), daemon=True).start()
    with prefect_test_harness(server_startup_timeout=200):
        divided("shards", "python make.py", 2, {})
        made = sorted(path.name for path in Path().glob("*-of-2"))
        message = ""
        try:
            divided("shards", "python broken.py", 2, {})
        except StageFailed as fault:
            message = str(fault)
    print(json.dumps({"made": made, "hosts": sorted(hosts), "message": message}))


def _note_hosts(hosts: set[str]) -> None:
    """The addresses at which this process listens, as long as it runs."""
    while True:
        ports = psutil.Process().net_connections()
        hosts.update(connection.laddr.ip for connection in ports if connection.status == "LISTEN")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
