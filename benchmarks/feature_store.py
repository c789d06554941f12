"""Feature store: memory use of a whole read, and speed compared with plain reads.

    python benchmarks/feature_store.py [--gib 2] [--folder DIR]

The benchmark prints:
- images written per second;
- time to read a store of `--gib` GiB in order, relative to a plain read of the same bytes into one
  small buffer;
- random batches of 128 images per second;
- peak memory of the process, which does not grow with the store.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from measuring import alternate, arguments, clocks, drop_from_cache, peak_gib

from manymatch.features.store import FeatureStore
from manymatch.features.writer import FeatureWriter

REGIONS, WIDTH = 36, 2048
ROW_BYTES = REGIONS * WIDTH * 2
ROUNDS = 5


def main() -> None:
    options = arguments(__doc__, gib=2.0, folder=(None, "where the store is made"))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "store.h5"
        write(path, int(options.gib * 2**30) // ROW_BYTES)
        compare(path, "from the disk", drop_from_cache)
        compare(path, "from the page cache")
        with FeatureStore(path) as store:
            started = time.perf_counter()
            random_batches(store, 50)
            seconds = time.perf_counter() - started
    print(f"random batches of 128: {50 / seconds:.1f} a second, {6400 / seconds:.0f} images/s")
    print(f"peak memory {peak_gib():.2f} GiB")


def write(path: Path, images: int) -> None:
    rng = np.random.default_rng(0)
    features = rng.random((64, REGIONS, WIDTH), dtype=np.float32).astype(np.float16)
    started = time.perf_counter()
    with FeatureWriter(
        path, [str(number) for number in range(images)], max_regions=REGIONS, width=WIDTH
    ) as writer:
        for row in range(images):
            writer.write(row, features[row % 64])
    seconds = time.perf_counter() - started
    print(f"{path.stat().st_size / 2**30:.1f} GiB, written at {images / seconds:.0f} images/s")


def compare(path: Path, state: str, prepare: Callable[[Path], None] = lambda path: None) -> None:
    """Print the ratio of the store to plain reads. They alternate, and so does the first one."""
    pair = {"plain": plain_read, "store": read}
    times: dict[str, list[float]] = {name: [] for name in pair}
    for name in alternate(pair, ROUNDS + 1):
        prepare(path)
        times[name].append(clocks(partial(pair[name], path))[0])
    plain, store = (statistics.median(times[name][1:]) for name in pair)  # the first warms up
    size = path.stat().st_size / 2**30
    print(
        f"{state}: plain {size / plain:.2f} GiB/s, store {size / store:.2f} GiB/s, "
        f"ratio {store / plain:.2f}"
    )


def plain_read(path: Path) -> None:
    buffer = bytearray(32 * ROW_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def read(path: Path) -> None:
    with FeatureStore(path) as store:
        for _ in store.blocks():
            pass


def random_batches(store: FeatureStore, count: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(count):
        store.read(rng.integers(0, len(store), 128))


if __name__ == "__main__":
    main()
