"""A training step of the small presets with two versions of the code, in turns.

    python benchmarks/training_pairs.py ../before             # all methods of presets/scenes
    python benchmarks/training_pairs.py ../before dive cora --rounds 30

Each version has a process with one thread, as in a study. The two processes make the same steps on
the same made-up batches (32 images of 49 cells of 1280, two captions each) in turns. Printed are
the median milliseconds of both, the median ratio, and the largest relative difference of the losses
of the first three steps.
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import geometric_mean

import torch
from measuring import Times, arguments, clocks, compare, ratio_of
from training_step import METHODS_OF_IMAGES, built, made_up, made_up_words

from manymatch.config.preset import read_preset
from manymatch.experiments.costs.timing import training_step
from manymatch.training.run_context import deterministic

HERE = Path(__file__).parents[1]
CELLS, FEATURES, WORDS = 49, 1280, 2_000
FIRST = 3
STEPS = "--steps"
"""The first word of a process that does steps."""


def main() -> None:
    if sys.argv[1:2] == [STEPS]:
        steps(sys.argv[2])
        return
    options = arguments(__doc__, {"before": None, "methods": METHODS_OF_IMAGES}, rounds=20)
    ratios = [pairs(options.before, method, options.rounds) for method in options.methods]
    print(f"geometric mean: {geometric_mean(ratios):.2f} times as fast")


def pairs(before: Path, method: str, rounds: int) -> float:
    """How many times as fast a step is; the times and the difference of losses are printed."""
    processes = {"before": _process(before, method), "after": _process(HERE, method)}
    losses: dict[str, list[float]] = {name: [] for name in processes}

    def step(name: str) -> Times:
        stream = processes[name]
        assert stream.stdin and stream.stdout
        print(file=stream.stdin, flush=True)
        wall, processor, loss = map(float, stream.stdout.readline().split())
        losses[name].append(loss)
        return Times(wall, processor)

    times = compare(
        method, {name: partial(step, name) for name in processes}, rounds, warm_up=FIRST
    )
    for stream in processes.values():
        stream.communicate()
    both = list(zip(losses["before"], losses["after"], strict=True))[:FIRST]
    difference = max(abs(a / b - 1) for a, b in both)
    ratio = ratio_of(times["before"], times["after"], 1)
    print(f"  {ratio:.2f} times as fast, losses differ by {difference:.0e}", flush=True)
    return ratio


def _process(checkout: Path, method: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(checkout.resolve() / "src"), str(Path(__file__).parent)])
    return subprocess.Popen(
        [sys.executable, __file__, STEPS, method],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def steps(name: str) -> None:
    """One step for each line of the input; the output is the times and the loss of the step."""
    vocabulary = made_up_words(WORDS)
    preset = read_preset(HERE / "presets" / "scenes" / f"{name}.yaml")
    method = built(preset, vocabulary, FEATURES)
    batch = made_up(32, 2, vocabulary, CELLS, FEATURES).to("cpu")
    step = training_step(method, preset.training, torch.device("cpu"))
    with deterministic(preset.training, torch.device("cpu")):
        for _ in sys.stdin:
            losses: list[float] = []
            times = clocks(lambda losses=losses: losses.append(float(step(batch))))  # type: ignore[misc]
            print(*times, *losses, flush=True)


if __name__ == "__main__":
    main()
