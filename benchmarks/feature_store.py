"""Feature store: memory use of a whole read, and speed compared with plain reads.

    python benchmarks/feature_store.py [--gib 2] [--folder DIR]

The benchmark prints:
- images written per second;
- time to read a store of `--gib` GiB in order, relative to a plain read of the same bytes into one
  small buffer;
- random batches of 128 images per second;
- peak memory of the process, which does not grow with the store.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from measuring import arguments, compare, drop_from_cache, peak_gib

from manymatch.features.layout import Layout
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
        compare_reads(path, "from the disk", drop_from_cache)
        compare_reads(path, "from the page cache")
        with FeatureStore(path) as store:
            rng, started = np.random.default_rng(1), time.perf_counter()
            for _ in range(50):
                store.read(rng.integers(0, len(store), 128))
            seconds = time.perf_counter() - started
    print(f"random batches of 128: {50 / seconds:.1f} a second, {6400 / seconds:.0f} images/s")
    print(f"peak memory {peak_gib():.2f} GiB")


def write(path: Path, images: int) -> None:
    rng = np.random.default_rng(0)
    features = rng.random((64, REGIONS, WIDTH), dtype=np.float32).astype(np.float16)
    started = time.perf_counter()
    names = [str(number) for number in range(images)]
    with FeatureWriter(path, Layout(names, REGIONS, WIDTH)) as writer:
        for row in range(images):
            writer.write(row, features[row % 64])
    seconds = time.perf_counter() - started
    print(f"{path.stat().st_size / 2**30:.1f} GiB, written at {images / seconds:.0f} images/s")


def compare_reads(
    path: Path, state: str, prepare: Callable[[Path], None] = lambda path: None
) -> None:
    """Print the times of plain reads and of the store, and the speed of both."""
    candidates = {"plain": partial(plain_read, path), "store": partial(read, path)}
    times = compare(state, candidates, ROUNDS, before=partial(prepare, path))
    size = path.stat().st_size / 2**30
    for name, measured in times.items():
        print(f"  {name}: {size / median(one.wall for one in measured):.2f} GiB/s")


def plain_read(path: Path) -> None:
    buffer = bytearray(32 * ROW_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def read(path: Path) -> None:
    with FeatureStore(path) as store:
        for _ in store.blocks():
            pass


if __name__ == "__main__":
    main()
