"""A training step of the small presets with two versions of the code, in turns.

    python benchmarks/training_pairs.py ../before             # all methods of presets/scenes
    python benchmarks/training_pairs.py ../before dive cora --rounds 30

Each version has a process with one thread, as in a study. The two processes make the same steps on
the same made-up batches (32 images of 49 cells of 1280, two captions each) in turns. A line shows
the median milliseconds of processor time of both, the median ratio, and the largest relative
difference of the losses of the first three steps.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import geometric_mean, median

import torch
from measuring import alternate
from training_step import CLIP_METHODS, made_up

from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.preset import read_preset
from manymatch.experiments.costs.timing import training_step
from manymatch.methods import METHODS, build_method
from manymatch.training.run_context import deterministic

HERE = Path(__file__).parents[1]
CELLS, FEATURES, WORDS = 49, 1280, 2_000
FIRST = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="a checkout of the other version")
    picture_methods = [name for name in METHODS if name not in CLIP_METHODS]
    parser.add_argument("methods", nargs="*", default=picture_methods, metavar="METHOD")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.steps:
        steps(options.methods[0])
        return
    ratios = []
    for method in options.methods:
        before, after, ratio, difference = pairs(options.before, method, options.rounds)
        ratios.append(ratio)
        print(
            f"{method:13} {before:7.1f} ms {after:7.1f} ms   {ratio:.2f} times as fast, losses "
            f"differ by {difference:.0e}",
            flush=True,
        )
    print(f"geometric mean: {geometric_mean(ratios):.2f} times as fast")


def pairs(before: Path, method: str, rounds: int) -> tuple[float, float, float, float]:
    """Median milliseconds before and after, median ratio, largest difference of losses."""
    processes = {"after": _process(HERE, method), "before": _process(before, method)}
    times: dict[str, list[float]] = {name: [] for name in processes}
    losses: dict[str, list[float]] = {name: [] for name in processes}
    for name in alternate(processes, FIRST + rounds):
        stream = processes[name]
        assert stream.stdin and stream.stdout
        print(file=stream.stdin, flush=True)
        milliseconds, loss = map(float, stream.stdout.readline().split())
        times[name].append(milliseconds)
        losses[name].append(loss)
    for stream in processes.values():
        stream.communicate()
    first, second = times["before"][FIRST:], times["after"][FIRST:]
    ratio = median(one / other for one, other in zip(first, second, strict=True))
    both = list(zip(losses["before"], losses["after"], strict=True))[:FIRST]
    return median(first), median(second), ratio, max(abs(a / b - 1) for a, b in both)


def _process(checkout: Path, method: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(checkout.resolve() / "src"), str(Path(__file__).parent)])
    return subprocess.Popen(
        [sys.executable, __file__, "--steps", str(checkout), method],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def steps(name: str) -> None:
    """One step for each line of the input; the output is its milliseconds and its loss."""
    vocabulary = Vocabulary([*Vocabulary.SPECIAL, *(f"word{n}" for n in range(WORDS))])
    preset = read_preset(HERE / "presets" / "scenes" / f"{name}.yaml")
    torch.manual_seed(0)
    method = build_method(
        preset.method, preset.model, vocabulary=vocabulary, feature_width=FEATURES
    )
    batch = made_up(32, 2, vocabulary, CELLS, FEATURES).to("cpu")
    step = training_step(method, preset.training, torch.device("cpu"))
    with deterministic(True):
        for _ in sys.stdin:
            started = time.process_time()
            loss = step(batch)
            print(1e3 * (time.process_time() - started), float(loss), flush=True)


if __name__ == "__main__":
    main()
