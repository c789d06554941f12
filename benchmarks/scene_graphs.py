"""Scene graphs: the cost of our rules, the gain of two processes, and the accuracy.

    python benchmarks/scene_graphs.py                     # on generated captions
    python benchmarks/scene_graphs.py --source FOLDER     # on every line of FOLDER/*.en.gz

The parse without and with rules is timed alternately on the same batches in processor time, which
other programs hardly influence. The gain of two processes is in wall-clock time, which needs two
idle cores. Without idle cores, read the processor time: the time of the main process plus half the
time of the two workers, with their start, is the time that two idle cores would take.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measuring import arguments, compare
from spacy.language import Language

from manymatch.batch.scene_graph import SceneGraph
from manymatch.scene_graphs.accuracy import accuracy, lemmatiser
from manymatch.scene_graphs.parse import parse_batch, parse_captions
from manymatch.scene_graphs.parser import graphs, load_model
from manymatch.scenes.twins import pair
from manymatch.util.parts import Parts

MODEL = "en_core_web_sm"
BATCH = 256


def main() -> None:
    options = arguments(
        __doc__,
        source=(None, "folder of *.en.gz with a caption a line"),
        captions=(20_000, "captions that are timed"),
        pairs=(900, "pairs of generated images"),
    )
    model = load_model(MODEL)
    generated = list(_generated(options.pairs))
    _print_accuracy(model, generated)
    captions = _lines(options.source) if options.source else [text for text, _ in generated]
    _print_cost_of_rules(model, captions[: options.captions])
    with tempfile.TemporaryDirectory() as folder:
        timed = captions[: options.captions]
        one, two = (_stage_seconds(timed, Path(folder), processes) for processes in (1, 2))
        for clock in ("wall clock", "processor"):
            print(
                f"{clock:10} one process {one[clock]:.1f} s, two {two[clock]:.1f} s: "
                f"{one[clock] / two[clock]:.2f}x (with start)"
            )
        if options.source:
            _print_whole_source(captions, Path(folder))


def _generated(pairs: int) -> Iterator[tuple[str, SceneGraph]]:
    """Yield captions of `scenes` with their true graphs."""
    for number in range(pairs):
        for picture in pair(seed=0, split="train", number=number, twins=0.5):
            for sentence in picture.captions:
                yield sentence.text, sentence.graph


def _lines(folder: Path) -> list[str]:
    files = sorted(folder.glob("*.en.gz"))
    if not files:
        raise SystemExit(f"{folder}: no *.en.gz files")
    return [line for file in files for line in gzip.open(file, "rt", encoding="utf-8")]


def _print_accuracy(model: Language, generated: list[tuple[str, SceneGraph]]) -> None:
    parsed = graphs(model, [text for text, _ in generated], Counter())
    pairs = zip(parsed, (true for _, true in generated), strict=True)
    for kind, score in accuracy(pairs, lemmatiser(model)).items():
        print(
            f"{kind:11} precision {score.precision:.4f}  recall {score.recall:.4f}  "
            f"F1 {score.f1:.4f}  ({score.true} true)"
        )


def _print_cost_of_rules(model: Language, captions: list[str]) -> None:
    starts = range(0, len(captions), BATCH)
    done: Counter[str] = Counter()

    def batch(name: str) -> list[str]:
        start = starts[done[name]]
        done[name] += 1
        return captions[start : start + BATCH]

    # In turns, because the second parse finds the batch's words in the model's caches.
    candidates: dict[str, Callable[[], object]] = {
        "spaCy alone": lambda: list(model.pipe(batch("spaCy alone"), batch_size=BATCH)),
        "with rules": lambda: parse_batch(model, batch("with rules")),
    }
    times = compare(f"{len(starts)} batches of {BATCH}", candidates, len(starts), warm_up=0)
    for name, measured in times.items():
        print(f"  {name}: {len(captions) / sum(one.processor for one in measured):.0f} captions/s")


def _stage_seconds(captions: list[str], folder: Path, processes: int) -> dict[str, float]:
    source, table = folder / "captions.parquet", folder / "graphs.parquet"
    ids = [str(number) for number in range(len(captions))]
    pq.write_table(pa.table({"caption_id": ids, "caption": captions}), source)
    started, (process, workers) = time.perf_counter(), _processor_seconds()
    parse_captions(source, table, MODEL, processes, BATCH, parts=Parts(table.with_name("parts")))
    own_after, workers_after = _processor_seconds()
    return {
        "wall clock": time.perf_counter() - started,
        "processor": own_after - process + (workers_after - workers) / processes,
    }


def _processor_seconds() -> tuple[float, float]:
    """Return the processor seconds of this process and of its finished workers."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system


def _print_whole_source(captions: list[str], folder: Path) -> None:
    seconds = _stage_seconds(captions, folder, processes=2)["wall clock"]
    parsed = pq.read_table(folder / "graphs.parquet")
    empty = pc.sum(pc.equal(pc.list_value_length(parsed["objects"]), 0)).as_py()
    parts = {
        name: pc.sum(pc.list_value_length(parsed[name])).as_py()
        for name in ("objects", "relations")
    }
    parts["attributes"] = pc.sum(
        pc.list_value_length(pc.list_flatten(parsed["attributes"]))
    ).as_py()
    means = ", ".join(f"{count / len(captions):.2f} {name}" for name, count in parts.items())
    print(f"{parsed.num_rows} captions in {seconds:.0f} s, {empty} without an object; mean {means}")


if __name__ == "__main__":
    main()
