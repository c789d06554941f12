"""`python tests/soak/soak.py --minutes N --seed S`: the pipeline while processes are killed.

On a tiny project in a temporary folder, `dvc repro`, stages by hand and runs of the service go on
at the same time, and random processes get SIGTERM, SIGKILL or SIGINT. Afterwards the results must
be the same, byte for byte, as those of an undisturbed run. No process, lock or temporary file may
be left. The exit code is 1 if any of this fails.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "helpers")]

import left_processes  # noqa: E402
from service import Service, make_service  # noqa: E402
from workspace import make_workspace  # noqa: E402

STAGES = (
    "code",
    "download scenes",
    "captions scenes",
    "features scenes lite0",
    "scene-graphs scenes",
    "shards scenes lite0",
    "train scenes vsepp",
    "train scenes cora",
    "evaluate scenes vsepp",
    "evaluate scenes cora",
    "report",
)
"""The commands of all stages, in the order in which they need each other."""
TARGETS = (
    "download@scenes",
    "features@scenes-lite0",
    "shards@scenes-lite0",
    "train@scenes-vsepp",
    "evaluate@scenes-cora",
)
"""Stages that `dvc repro --force` repeats although nothing has changed."""
DEPLOYMENTS = "train/train-cora", "prepare/prepare-data", "reproduce/reproduce", "report/report"
SPARED = "pipelines.serve", "prefect server"
"""Commands that are not killed: the start of a service takes a minute on a busy machine."""
SIGNALS = signal.SIGTERM, signal.SIGKILL, signal.SIGINT
COMPARED = "data", "models", "reports"
SECONDS_BETWEEN_KILLS = 5.0
SECONDS_TO_END = 600.0


class Soak:
    """One soak of `workspace`: the threads that start commands, the killer, and the events."""

    def __init__(self, workspace, seed, seconds):
        self.workspace, self.seed = workspace, seed
        self.began = time.monotonic()
        self.deadline = self.began + seconds
        self.counts = Counter()
        self.violations = []
        self.disturbed = set()
        """The sessions of which a process was killed."""

    def log(self, text):
        print(f"{time.monotonic() - self.began:7.1f} s  {text}", flush=True)

    def violate(self, text):
        self.violations.append(text)
        self.log(f"VIOLATION: {text}")

    @property
    def over(self):
        return time.monotonic() >= self.deadline

    def run(self):
        """All threads until the deadline, then until the last command has ended."""
        actors = [self._repeat_dvc, self._repeat_dvc, *[self._repeat_stages] * 3, self._kill]
        if isinstance(self.workspace, Service):
            actors.append(self._repeat_runs)
        threads = [
            threading.Thread(target=actor, args=[random.Random(f"{self.seed} {number}")])
            for number, actor in enumerate(actors)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _repeat_dvc(self, choice):
        while not self.over:
            forced = ["--force", "--single-item", choice.choice(TARGETS)]
            self._command("dvc", "repro", *(forced if choice.random() < 0.3 else []))

    def _repeat_stages(self, choice):
        while not self.over:
            self._command("manymatch", *choice.choice(STAGES).split())

    def _command(self, *command):
        name = " ".join(command)
        process = self.workspace.start(*command)
        self.log(f"[{process.pid}] begins: {name}")
        assert process.stdout is not None
        # DVC believes that a process lives until its starter has waited for it, but a stage that
        # DVC started keeps the output open for a while after DVC's end.
        with ThreadPoolExecutor(1) as reader:
            read = reader.submit(process.stdout.read)
            try:
                process.wait(SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                self.violate(f"{name} (process {process.pid}) hangs")
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output = read.result()
        process.stdout.close()
        code, killed = process.returncode, process.pid in self.disturbed
        self.log(f"[{process.pid}] ends with {code}{' (disturbed)' if killed else ''}: {name}")
        self.counts["dvc repro" if command[0] == "dvc" else "stages by hand"] += 1
        self.counts["waits for a lock"] += output.count(": waiting for process")
        if "is busy, it is being blocked by" in output:
            self.counts["refusals by DVC because of another DVC"] += 1
        elif code and not killed:
            self.counts["undisturbed commands that failed"] += 1
            last = [line for line in output.splitlines() if line.strip()][-6:]
            self.log(f"[{process.pid}] said: " + " | ".join(last))
            if "RWLock-file" in output or "dvc.lock' " in output:
                self._command("manymatch", "check")  # mends what DVC has half written
            if command[0] == "manymatch" and "Traceback" in output:
                self.violate(f"a traceback of {name}")

    def _repeat_runs(self, choice):
        service = self.workspace
        assert isinstance(service, Service)
        while not self.over:
            try:
                service.serve()  # starts only what was killed
                name = choice.choice(DEPLOYMENTS)
                run = service.begin(name)
                self.counts["runs of the service"] += 1
                self.log(f"run {name} is queued")
                self._sleep(choice.uniform(5, 60))
                if choice.random() < 0.4:
                    service.cancel(run)
                    self.log(f"run {name} is cancelled")
            except (AssertionError, httpx.HTTPError) as error:  # a killed server or client
                self.log("the service: " + " ".join(str(error).split())[-300:])

    def _kill(self, choice):
        while not self.over:
            self._sleep(choice.expovariate(1 / SECONDS_BETWEEN_KILLS))
            with contextlib.suppress(psutil.Error, ProcessLookupError, IndexError):
                victim, sent = choice.choice(self.processes()), choice.choice(SIGNALS)
                command = " ".join(Path(part).name for part in victim.cmdline())
                if any(spared in command for spared in SPARED):
                    continue
                session = os.getsid(victim.pid)
                self.disturbed.add(session)
                if choice.random() < 0.2 and os.getpgid(victim.pid) == session:
                    os.killpg(session, sent)
                    self.log(f"{sent.name} to all of [{session}], found by: {command[:70]}")
                else:
                    victim.send_signal(sent)
                    self.log(f"{sent.name} to {victim.pid} of [{session}]: {command[:70]}")
                self.counts["kills"] += 1

    def _sleep(self, seconds):
        time.sleep(max(0.0, min(seconds, self.deadline - time.monotonic())))

    def processes(self):
        """All processes that work in the project."""
        folder = str(self.workspace.folder)
        return [
            process
            for process in psutil.process_iter(["cwd", "status"])
            if process.info["cwd"] == folder and process.info["status"] != psutil.STATUS_ZOMBIE
        ]

    def check(self, expected):
        """Compare with the undisturbed files, and search for what must not be left."""
        self._gone("when all commands have ended")
        # The check repairs DVC, and DVC the outputs; each stage removes what a killed process of it
        # left.
        by_hand = (f"manymatch {stage}" for stage in STAGES)
        for command in ("manymatch check", "dvc repro", *by_hand, "dvc repro"):
            with self._named(f"{command} fails at the end"):
                self.workspace.run(*command.split())
        with self._named("'dvc status' is not clean"):
            assert "up to date" in self.workspace.run("dvc", "status")
        actual = contents(self.workspace)
        for name in sorted(expected.keys() | actual.keys()):
            if expected.get(name) != actual.get(name):
                state = "missing" if name not in actual else "new or different"
                self.violate(f"{name} is {state}")
        self._gone("at the end")
        for path in self.workspace.folder.rglob("*.partial"):
            self.violate(f"{path.relative_to(self.workspace.folder)} is left")

    def _gone(self, when):
        _, left = psutil.wait_procs(self.processes(), timeout=15)
        for process in left:
            with contextlib.suppress(psutil.Error):
                self.violate(f"process {process.pid} is left {when}: {process.cmdline()}")
                process.kill()

    @contextlib.contextmanager
    def _named(self, fault):
        try:
            yield
        except AssertionError as error:
            self.violate(f"{fault}: {str(error)[-1000:]}")

    def summary(self):
        counts = ", ".join(f"{number} {name}" for name, number in sorted(self.counts.items()))
        faults = "; ".join(self.violations) or "none"
        return (
            f"Soak with seed {self.seed}, {(time.monotonic() - self.began) / 60:.1f} minutes: "
            f"{counts}. Violations: {faults}."
        )


def contents(workspace):
    """Every file of the pipeline but what tells of the machine, and the service's own pages."""
    return {
        str(path.relative_to(workspace.folder)): path.read_bytes()
        for name in COMPARED
        for path in (workspace.folder / name).rglob("*")
        if path.is_file()
        and path.suffix != ".partial"
        and not {"machine", "service"} & set(path.relative_to(workspace.folder).parts)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-service", action="store_true", help="no Prefect service")
    options = parser.parse_args()
    left_processes.end_with_this_process()
    make = make_workspace
    if not options.no_service:
        make = make_service
    with tempfile.TemporaryDirectory(prefix="soak-") as root:
        folders = [Path(root, name) for name in ("undisturbed", "disturbed")]
        for folder in folders:
            folder.mkdir()
        # The copied sources: an edit of this checkout meanwhile must not change the stages.
        undisturbed = make_workspace(ROOT, folders[0]).use_own_sources()
        disturbed = make(ROOT, folders[1]).use_own_sources()
        undisturbed.run("dvc", "repro")
        expected = contents(undisturbed)
        # The soak begins with everything made, so that every stage has its inputs.
        for name in (*COMPARED, ".dvc/cache", "dvc.lock"):
            source, target = undisturbed.folder / name, disturbed.folder / name
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
        soak = Soak(disturbed, options.seed, 60 * options.minutes)
        try:
            soak.run()
        finally:
            if isinstance(disturbed, Service):
                disturbed.stop()
        soak.check(expected)
    print(soak.summary())
    return 1 if soak.violations else 0


if __name__ == "__main__":
    sys.exit(main())
