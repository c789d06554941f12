"""The command `manymatch` in a fork of a process that has loaded the libraries.

The tests of the pipeline start a hundred commands, which need most of their time to load torch,
Lightning and spaCy. `folder()` holds a script `manymatch`, which hands its arguments, folder,
environment and streams to the process that runs this file. Tests that kill commands, and those of
the wheel, start the real command.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

_SCRIPT = """\
#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r})
request = json.dumps([sys.argv, os.getcwd(), dict(os.environ)])
socket.send_fds(server, [request.encode()], [0, 1, 2])
status = int(server.recv(20) or 1)
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
_LONGEST_REQUEST = 1_000_000


@functools.cache
def folder() -> Path:
    """The folder of the script. The process behind the script ends with this process."""
    made = Path(tempfile.mkdtemp(prefix="warm-"))
    address = str(made / "socket")
    script = made / "manymatch"
    script.write_text(_SCRIPT.format(python=sys.executable, address=address))
    script.chmod(0o755)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(
        [sys.executable, __file__, address],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"
    atexit.register(server.communicate)  # closes the standard input, and keeps it open until then
    return made


def _serve(address: str) -> None:
    """Fork for each request. Returns in the process that has taken over the streams, folder,
    arguments and environment of a request; ends when the standard input ends."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    gc.freeze()
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in readable:
            shutil.rmtree(Path(address).parent)
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            if _take_over(connection):
                return
        connection.close()


def _take_over(connection: socket.socket) -> bool:
    """True in the process that does the work of the request. Its parent waits and ends here."""
    request, streams, _, _ = socket.recv_fds(connection, _LONGEST_REQUEST, 3)
    worker = os.fork()
    if worker:
        watched = os.pidfd_open(worker)
        readable, _, _ = select.select([connection, watched], [], [])
        if watched not in readable:  # the script was killed
            os.killpg(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    os.setsid()
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv, where, environment = json.loads(request)
    os.chdir(where)
    os.environ.clear()
    os.environ.update(environment)
    return True


if __name__ == "__main__":
    import spacy  # noqa: F401

    import manymatch.evaluation.evaluate
    import manymatch.features.extract
    import manymatch.reporting.report
    import manymatch.shards.write
    import manymatch.training.train  # noqa: F401
    from manymatch.cli.commands import main

    del sys.path[0]  # the folder of this file
    _serve(sys.argv[1])
    main()
