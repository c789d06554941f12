"""The commands `manymatch` and `dvc` in forks of a process that has loaded their libraries.

The tests start hundreds of commands, which need most of their time to load torch, Lightning, spaCy
and DVC. `folder()` holds scripts with the names of the commands. A script hands its arguments,
folder, environment and streams to the process that runs this file; it passes signals on and ends as
the command ends. All processes of pytest-xdist share that process. Tests of the wheel, and those of
what a command loads, start the real commands.
"""

import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import json
import multiprocessing.spawn
import multiprocessing.util
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from filelock import FileLock

_SCRIPT = """\
#!{python} -IS
import json, os, signal, socket, sys
def inherited(number):
    try:
        return os.get_inheritable(number)
    except OSError:
        return False
others = set(map(int, os.listdir("/proc/self/fd"))) - {{0, 1, 2}}
streams = [0, 1, 2, *filter(inherited, others)]
ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r})
request = [sys.argv, os.getcwd(), dict(os.environ), ignored, os.getpid(), streams]
socket.send_fds(server, [json.dumps(request).encode()], streams)
def pass_on(number, _):
    try:
        server.send(str(number).encode())
    except OSError:  # the fork has ended
        pass
passed_on = {{signal.SIGTERM, signal.SIGHUP, signal.SIGINT}} - {{signal.SIGINT if ignored else 0}}
for number in passed_on:
    signal.signal(number, pass_on)
for number in streams[3:]:
    os.close(number)
try:
    answer = server.recv(20)
except ConnectionResetError:  # a signal came after the end of the fork; the answer follows
    answer = server.recv(20)
status = int(answer or 1)
if status < 0:
    if -status in passed_on:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
_COMMANDS = {"manymatch": "manymatch.cli.commands", "dvc": "dvc.cli"}
"""The module of each command's function `main`."""
_SPAWN = "spawn"
"""The script that multiprocessing starts in place of `python -c ...`."""
_PASSING = multiprocessing.util.spawnv_passfds
_TESTS = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
"""The process of all tests, which forks of this process have too."""
_LOADED = (
    "spacy",
    "manymatch.evaluation.evaluate",
    "manymatch.features.extract",
    "manymatch.reporting.report",
    "manymatch.shards.write",
    "manymatch.training.train",
    "dvc.cli.parser",
    "dvc.repo.reproduce",
    "dvc.repo.experiments.queue.workspace",
    "dvc.data_cloud",
    "dvc.repo.index",
    "dvc.repo.plots",
    "dvc_data.hashfile.db.local",
)
_LONGEST_REQUEST = 1_000_000
_ROOM = "-" * 4000
"""An argument of the process that loads, whose place in memory holds a command's arguments."""


@functools.cache
def folder():
    """A folder like that of an environment's programs: `python`, which takes the others of this
    folder for those of its environment, and the scripts."""
    # The system reuses process ids.
    begun = psutil.Process(_TESTS).create_time()
    made = Path(tempfile.gettempdir()) / f"warm-{_TESTS}-{begun:.0f}"
    with FileLock(made.with_suffix(".lock")):
        if not made.exists():
            _start(made, _TESTS)
    return made / "bin"


def spawn():
    """The script that works as `python -c CODE` does."""
    return folder() / _SPAWN


def spawn_passing(path, arguments, passed):
    """In place of multiprocessing's own function: the children are forks too."""
    child = "--multiprocessing-fork" in arguments
    return _PASSING(os.fsencode(spawn()) if child else path, arguments, passed)


def _start(made, tests):
    """Start the process that loads; it ends with the process `tests` and removes the folder."""
    address = str(made / "socket")
    programs = made / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(Path(sys.executable).resolve())
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", made)
    (made / "lib").symlink_to(Path(sys.prefix) / "lib")
    for name in (*_COMMANDS, _SPAWN):
        script = programs / name
        script.write_text(_SCRIPT.format(python=sys.executable, address=address))
        script.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, __file__, address, str(tests), _ROOM],
        # Without the mark of one process of tests, because it serves the others as well.
        env={**os.environ, "PYTHONUNBUFFERED": "1", "MANYMATCH_TESTS": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,  # control-C in a terminal is for the tests
    )
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"


def _serve(address, tests):
    """Fork for each request, pass signals of its script on, and tell the script how its fork ended.
    Returns in the fork; ends with the process `tests`."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    gc.freeze()
    scripts = {}  # by process id of the fork, until the script ends
    forks = {}  # process ids, by a file descriptor that is readable at the end
    ended = os.pidfd_open(tests)
    print("ready", flush=True)
    while True:
        open_scripts = {script: fork for fork, script in scripts.items()}
        readable, _, _ = select.select([listener, ended, *open_scripts, *forks], [], [])
        if ended in readable:
            shutil.rmtree(made := Path(address).parent)
            made.with_suffix(".lock").unlink(missing_ok=True)
            os._exit(0)
        for script in open_scripts.keys() & readable:
            signalled = script.recv(20)
            with contextlib.suppress(ProcessLookupError):
                # Nothing more comes from a script that was killed.
                os.killpg(open_scripts[script], int(signalled) if signalled else signal.SIGKILL)
            if not signalled:
                scripts.pop(open_scripts[script]).close()
        for watched in forks.keys() & readable:
            _, status = os.waitpid(fork := forks.pop(watched), 0)
            os.close(watched)
            if script := scripts.pop(fork, None):
                with contextlib.suppress(OSError):
                    script.send(str(os.waitstatus_to_exitcode(status)).encode())
                script.close()
        if listener in readable:
            script, _ = listener.accept()
            request, streams, _, _ = socket.recv_fds(script, _LONGEST_REQUEST, 253)
            if not request:  # the script was killed
                script.close()
                continue
            if not (fork := os.fork()):
                os.setsid()
                for opened in (listener, script, *scripts.values()):
                    opened.close()
                _take_over(streams, request)
                return
            for stream in streams:
                os.close(stream)
            while os.getpgid(fork) != fork:
                time.sleep(0.001)
            scripts[fork] = script
            forks[os.pidfd_open(fork)] = fork


def _take_over(received, request):
    """Give this process what the script has: streams, arguments, folder, environment and parent."""
    sys.argv, where, environment, ignored, script, streams = json.loads(request)
    # Descriptors of both lists may be the same numbers.
    free = max(received + streams) + 1
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD, free) for number in received]
    for number in received:
        os.close(number)
    for number, stream in zip(streams, moved, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: at the end of the other process
    os.chdir(where)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # that of the environment
    own, parent = os.getpid(), psutil.Process.ppid
    psutil.Process.ppid = lambda process: parent(
        psutil.Process(script) if process.pid == own else process
    )
    os.getppid = lambda: psutil.Process(own).ppid()
    _show(["python", *sys.argv])


def _show(command):
    """Let the system show `command` as the arguments of this process, to which tests send signals.
    Those of a script have `-IS`."""
    facts = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(facts[45]), int(facts[46])
    words = b"\0".join(map(os.fsencode, command))[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, words, len(words))


def _run(program):
    """Run the command and end the process, without the second in which Python would take all
    loaded modules apart."""
    name = Path(program).name
    try:
        if name == _SPAWN:
            words = sys.argv[sys.argv.index("-c") :]
            sys.argv = [words[0], *words[2:]]
            code = exec(words[1], {})
        else:
            code = importlib.import_module(_COMMANDS[name]).main()
    except SystemExit as ended:
        code = ended.code
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError):  # closed
            stream.flush()
    os._exit(code if isinstance(code, int) else code is not None)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    for module in (*_COMMANDS.values(), *_LOADED):
        importlib.import_module(module)
    os.fsync = lambda _: None  # no test cuts the power
    multiprocessing.set_executable(str(Path(sys.argv[1]).parent / "bin" / _SPAWN))
    _serve(sys.argv[1], int(sys.argv[2]))
    _run(sys.argv[0])
