"""What the first person with a GPU needs to know: is it right, does it wait, is it busy, is it fed?

    make gpu-check
    python benchmarks/gpu_check.py dive maxmatch --images 64 --minutes 4

Each check prints a line with PASS or FAIL and what was wanted; a line without a limit is for
information, and a check that breaks is a FAIL. The most important checks come first, and none
begins after `--minutes`: steps of each method and of presets with a BERT, a CNN and AdamP against
the CPU's (`gpu_steps.py`); whole trainings on made-up shards, loaders, and several processes
(`gpu_epochs.py`); search, evaluation, features of pictures; steps with compiled parts. All lines,
the versions and the costliest kernels are written to one JSON file. Without a GPU everything runs
on the CPU, and what only a GPU has is left out.
"""

import math
import multiprocessing
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gpu_epochs
import gpu_steps
import torch
from backbones import MODELS, jpeg, saved
from gpu_steps import Lines
from measuring import arguments
from search_scan import made_up, untrained
from torch import nn
from training_step import METHODS_OF_IMAGES, built, made_up_words, published

import manymatch
from manymatch.evaluation.ranking.ranks import rank
from manymatch.experiments.costs.timing import hardware, seconds
from manymatch.features.backbone import GridBackbone
from manymatch.features.butd import ButdDetector
from manymatch.features.butd.network import Network, folded
from manymatch.features.extractors import Detection, Extractor
from manymatch.features.image_list import Picture
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.embed import inference
from manymatch.networks.backbones import resnet
from manymatch.search.scan.scanner import Scanner
from manymatch.util.files import write_json


def main() -> None:
    gpus = torch.cuda.device_count()
    device = torch.device("cuda" if gpus else "cpu")
    options = arguments(
        __doc__,
        {"methods": [*METHODS_OF_IMAGES, *gpu_steps.PRESETS]},
        images=(128, "images of a batch"),
        stored=(5120, "images of the made-up shards"),
        processes=(min(2, gpus), "processes that train together"),
        minutes=(8.0, "no check begins later"),
        places=(["auto", *gpu_epochs.places(device)], "where features are in whole trainings"),
        parts=(["numbers", "steps", "epochs", "compiled"], "which checks run"),
        json=(Path("reports/machine/gpu-check.json"), "where all results are written"),
    )
    report = Report(options.minutes, options.json, options.parts)
    print(report.machine)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        # The shards are written beside the first checks, by a process that has no GPU.
        context = multiprocessing.get_context("fork")
        writer = context.Process(target=gpu_epochs.write_shards, args=(folder, options.stored))
        if "epochs" in options.parts:
            writer.start()
        for method in options.methods:
            report.add(
                method, partial(gpu_steps.lines, method, options.images, folder, device, report)
            )
        if "epochs" in options.parts:
            writer.join()
            code = writer.exitcode or 0
            line = ("exit code of the writer", code, "0", lambda code: code == 0)
            report.add("made-up shards", lambda: [line])
            for checks in (gpu_epochs.checks, uses):
                for subject, lines in checks(folder, options, device):
                    report.add(subject, lines)
        for name in options.methods if gpus and "compiled" in options.parts else ():
            report.add(name, partial(gpu_steps.compiled, name, options.images, folder, device))
    bad = sum(line["verdict"] == "FAIL" for line in report.lines)
    print(f"{bad} of {len(report.lines)} lines are FAIL; all results: {options.json}")


class Report:
    """The lines so far; `kernels`: by subject, the costliest kernels of a step."""

    def __init__(self, minutes: float, path: Path, parts: Sequence[str] = ()) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self.parts = path, parts
        self.lines: list[dict[str, Any]] = []
        self.kernels: dict[str, Any] = {}
        self.machine = _machine()
        self._end = time.monotonic() + 60 * minutes

    def add(self, subject: str, check: Callable[[], Iterable[gpu_steps.Line]]) -> None:
        """Run one check and print its lines. The file has all lines so far."""
        if time.monotonic() > self._end:
            self._print("LEFT OUT", subject, "no time left", None, "")
            return
        try:
            for measured, value, wanted, good in check():
                verdict = "" if good is None else "PASS" if good(value) else "FAIL"
                self._print(verdict, subject, measured, value, wanted)
        except Exception as error:
            if torch.cuda.is_available():
                torch.cuda.set_sync_debug_mode("default")
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            self._print("FAIL", subject, reason, None, "")
        content = {"machine": self.machine, "lines": self.lines, "kernels": self.kernels}
        write_json(self._path, content)

    def _print(
        self, verdict: str, subject: str, measured: str, value: float | None, wanted: str
    ) -> None:
        line = {"verdict": verdict, "subject": subject, "measured": measured}
        number = value if value is None or math.isfinite(value) else str(value)
        self.lines.append({**line, "value": number, "wanted": wanted})
        shown = "" if value is None else f"{value:.4g}"
        print(f"{verdict:8} {subject:28} {measured:44} {shown:>10}  {wanted}", flush=True)


def _machine() -> dict[str, Any]:
    """The versions of everything between Python and the GPU."""
    facts = {"device": hardware(torch.device("cuda" if torch.cuda.is_available() else "cpu"))}
    facts |= {"torch": str(torch.__version__), "python": platform.python_version()}
    if torch.cuda.is_available():
        facts |= {
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
            "gpus": str(torch.cuda.device_count()),
        }
    return facts


def uses(
    folder: Path, options: Any, device: torch.device
) -> Iterator[tuple[str, Callable[[], Lines]]]:
    """What a trained model is used for: search, evaluation, features of pictures."""
    yield "search", partial(search, folder, device, 20 * options.stored)
    if device.type == "cuda":
        yield "evaluation of 5,000 images", partial(evaluation, device)
        for name in (*MODELS, "resnet152", "butd"):
            yield name, partial(pictures, name, folder, device)


def evaluation(device: torch.device, images: int = 5000) -> Lines:
    """Rank DivE's random embeddings of as many images and five captions each, 100 results deep."""
    method = built(published("dive"), made_up_words()).to(device).eval()
    random = torch.Generator(device).manual_seed(0)

    def embedded(count: int) -> Embeddings:
        vectors = torch.randn(count, 4, 1024, generator=random, device=device)
        return Embeddings(nn.functional.normalize(vectors, dim=2))

    image_of = torch.arange(images).repeat_interleave(5)
    gallery = embedded(images), embedded(5 * images), image_of
    with inference(method, device):
        work = partial(rank, method.score, *gallery, depth=100, t2i_score=method.t2i_score)
        work()
        yield "dive, s", seconds(work, device), "", None


def pictures(name: str, folder: Path, device: torch.device, count: int = 256) -> Lines:
    """Features of made-up pictures by a network of random weights: a ResNet-152, a model of
    transformers, or bottom-up attention."""
    made = folder / name.replace("/", "-")
    if name == "butd":
        detector = ButdDetector(folded(Network()), 36, 36, "")
        extractor: Extractor | Detection = Detection(name, detector, device)
    elif name == "resnet152":
        network = resnet.fresh(name)
        backbone = GridBackbone(
            network, resnet.MEAN, resnet.STD, size=224, width=resnet.WIDTH, scaling=""
        )
        extractor = Extractor(name, backbone, device, 64)
    else:
        extractor = Extractor(name, saved(MODELS[name](), made), device, 64)
    given = [Picture(str(number), jpeg(number)) for number in range(count)]
    list(extractor.run(given[:64]))
    yield "pictures/s", count / seconds(lambda: list(extractor.run(given)), device), "", None


def search(folder: Path, device: torch.device, items: int) -> Lines:
    """Search a text among random sets of four elements, all scored on the device; the best items
    against those of a scan on the CPU."""
    model = untrained(folder / "model", "dive")
    torch.manual_seed(0)
    gallery, query = made_up(items, 4, 256, None), made_up(1, 4, 256, None)
    (expected,) = Scanner(model, gallery).top(query, 10)
    there = manymatch.load(folder / "model", device.type)
    scanner = Scanner(there, gallery.to(device), resident=True)
    (found,) = scanner.top(query, 10)
    same = float((found.rows == expected.rows).mean())
    yield "the same best items", same, "1", lambda share: share == 1
    yield "a query, ms", 1e3 * seconds(lambda: scanner.top(query, 10), device), "", None


if __name__ == "__main__":
    main()
