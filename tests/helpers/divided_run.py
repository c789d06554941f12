"""`python divided_run.py`: a stage divided in two here, whose command is `make.py`, with a broken
part; prints as JSON what was made, who listened, what was told, and the lines that a person who
watches the run sees.

A process of its own: what Prefect and Dask leave in one makes forks of it end with an error.
"""

import asyncio
import json
import threading
import time
from pathlib import Path
from uuid import UUID

import psutil
from prefect import flow, get_client, runtime
from prefect.client.schemas.objects import Log
from prefect.testing.utilities import prefect_test_harness

from manymatch.cli.deployment_names import PROGRESS, _new_logs
from pipelines import parts
from pipelines.stage import StageFailed


def main():
    divided = parts.divided.with_options(task_runner=parts.runner("", 2))
    hosts = set()
    threading.Thread(target=_note_hosts, args=(hosts,), daemon=True).start()
    ids, message = list[UUID](), ""
    with prefect_test_harness(server_startup_timeout=200):

        @flow
        def whole() -> None:
            ids.append(UUID(str(runtime.flow_run.id)))
            divided("shards", "python make.py", 2, {})

        try:
            whole()
        except StageFailed as fault:
            message = str(fault)
        shown = asyncio.run(_shown(ids[0]))
    made = sorted(path.name for path in Path().glob("*-of-2"))
    print(json.dumps({"made": made, "hosts": sorted(hosts), "message": message, "shown": shown}))


async def _shown(run):
    """The lines on progress of a run, as soon as there are three."""
    read = dict[UUID, Log]()
    async with get_client() as client:
        for _ in range(120):
            await _new_logs(client, run, read)
            lines = [log.message for log in read.values() if log.name.endswith(f".{PROGRESS}")]
            if len(lines) > 2:
                break
            await asyncio.sleep(0.5)
    return sorted(lines)


def _note_hosts(hosts):
    """The addresses at which this process listens, as long as it runs."""
    while True:
        ports = psutil.Process().net_connections()
        hosts.update(connection.laddr.ip for connection in ports if connection.status == "LISTEN")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
