"""What the service adds to a pipeline: the same stages by `dvc repro` and by Prefect, in turn.

    python benchmarks/orchestration.py [--rounds 2] [--folder DIR]

Each round makes two fresh clones of this checkout on a tiny `scenes`. One runs all that CORA needs
by `dvc repro`; in the other the service is started and a run asked for as a person would. Printed:

- seconds from `make serve` to the run's first stage (wanted: under 30): the very first time, with
  the empty data base that `make setup` leaves, and later;
- seconds that a stage takes longer than by `dvc repro`, counted from the first stage to the end
  of the run, its artifacts included (wanted: under 5), for stages that run and for unchanged ones.
"""

import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from measuring import arguments, clocks

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "helpers")]

from service import Service, make_service  # noqa: E402

LAST = "evaluate@scenes-cora"
WANTED = {
    "from the very first 'make serve' to the first stage": 30.0,
    "from a later one": 30.0,
    "added to a stage that runs": 5.0,
    "added to an unchanged stage": 5.0,
}
"""What a round measures, and the wanted seconds."""


def main() -> None:
    options = arguments(__doc__, rounds=2, folder=(None, "where the clones are made"))
    rounds = []
    for number in range(1, options.rounds + 1):
        folder = Path(tempfile.mkdtemp(dir=options.folder, prefix="orchestration-"))
        rounds.append(measure(folder))
        shutil.rmtree(folder)
        shown = ", ".join(f"{seconds:.1f}" for seconds in rounds[-1])
        print(f"round {number}: {shown} s", flush=True)
    for (what, wanted), values in zip(WANTED.items(), zip(*rounds, strict=True), strict=True):
        verdict = "ok" if max(values) < wanted else "TOO SLOW"
        print(f"{what}: {statistics.median(values):.1f} s (wanted: under {wanted:.0f}): {verdict}")


def measure(folder: Path) -> tuple[float, ...]:
    """The seconds that `WANTED` names."""
    direct, served = (_checkout(folder / name) for name in ("by_hand", "served"))
    served.run("prefect", "server", "database", "upgrade", "--yes")  # as `make setup` does
    plain = [clocks(lambda: direct.run("dvc", "repro", LAST))[0] for _ in range(2)]
    first_start, count, ran = served_run(served)
    start, _, unchanged = served_run(served)
    return first_start, start, (ran - plain[0]) / count, (unchanged - plain[1]) / count


def _checkout(folder: Path) -> Service:
    """A checkout on a tiny `scenes`, in which nothing has run."""
    folder.mkdir()
    return replace(make_service(ROOT, folder), own_sources=True)


def served_run(served: Service) -> tuple[float, int, float]:
    """Seconds from `make serve` to the first stage, and `run_of`'s stages and seconds."""
    asked = time.time()
    served.serve()
    try:
        first, count, seconds = run_of(served)
    finally:
        served.stop()
    return first - asked, count, seconds


def run_of(served: Service) -> tuple[float, int, float]:
    """When the first stage of a new run began (Unix time), how many there were, and the seconds
    from there to the end of the run's last artifact."""
    watched = served.run("prefect", "deployment", "run", "train-cora", "--watch")
    (run,) = served.call("POST", "flow_runs/filter", sort="START_TIME_DESC", limit=1)
    assert run["id"] in watched, "another run than the one that was asked for"
    stages = served.call("POST", "task_runs/filter", flow_runs={"id": {"any_": [run["id"]]}})
    began = min(unix(stage["start_time"]) for stage in stages)
    return began, len(stages), unix(run["end_time"]) - began


def unix(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


if __name__ == "__main__":
    main()
