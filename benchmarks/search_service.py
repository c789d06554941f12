"""Many clients at once: does `manymatch serve` answer all, how soon, and in how much memory?

    python benchmarks/search_service.py photos.index --clients 64 --seconds 60

Each client sends the next query as soon as it has an answer, over one connection. Every tenth
request is a thumbnail. Clients and service share the processor.
"""

import http.client
import itertools
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
from measuring import arguments

COLOURS = ("red", "blue", "green", "brown", "white", "black")
THINGS = ("bird", "dog", "table", "boat", "tree", "car", "house", "child")
PLACES = ("above", "beside", "in front of", "behind")


@contextmanager
def service(*words: str, folder: Path | None = None) -> Iterator[tuple[int, int]]:
    """The port of the service that a command of `manymatch` starts in `folder`, and its process."""
    command = [sys.executable, "-m", "manymatch", *words, "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert process.stderr
        line = process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if address is None:
            sys.exit(line)
        yield int(address[1]), process.pid
    finally:
        process.terminate()
        process.wait()


def client(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


def get(connection: http.client.HTTPConnection, address: str) -> bytes:
    connection.request("GET", address)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {content[:200]!r}")
    return content


def query(rng: random.Random) -> str:
    colours, things = rng.choices(COLOURS, k=2), rng.sample(THINGS, 2)
    text = f"a {colours[0]} {things[0]} {rng.choice(PLACES)} a {colours[1]} {things[1]}"
    return f"/search?k=20&q={quote(text)}"


def work(port: int, seed: int, until: float, times: list[float], errors: list[str]) -> None:
    rng, connection = random.Random(seed), client(port)
    item = None
    for number in itertools.count():
        if time.perf_counter() > until:
            return
        picture = number % 10 == 9
        address = f"/items/{item}/thumbnail" if picture else query(rng)
        started = time.perf_counter()
        try:
            content = get(connection, address)
        except Exception as error:
            errors.append(repr(error))
            connection = client(port)
            continue
        times.append(time.perf_counter() - started)
        if not picture:
            item = json.loads(content)["results"][0]["id"]


def memory(port: int) -> float:
    """MiB of the service."""
    text = get(client(port), "/metrics").decode()
    (value,) = re.findall(r"^process_resident_memory_bytes (\S+)", text, re.MULTILINE)
    return float(value) / 2**20


def main() -> None:
    options = arguments(__doc__, {"index": None}, clients=64, seconds=60.0)
    with service("serve", str(options.index), "--rate", "1e9") as (port, _):
        started = time.perf_counter()
        while json.loads(get(client(port), "/health"))["status"] == "loading":
            time.sleep(0.1)
        print(f"ready after {time.perf_counter() - started:.1f} s")
        times: list[float] = []
        errors: list[str] = []
        until = time.perf_counter() + options.seconds
        threads = [
            threading.Thread(target=work, args=(port, seed, until, times, errors))
            for seed in range(options.clients)
        ]
        for thread in threads:
            thread.start()
        for part in range(1, 5):
            time.sleep(options.seconds / 5)
            print(f"{part * options.seconds / 5:4.0f} s: {memory(port):.0f} MiB")
        for thread in threads:
            thread.join()
        p50, p95 = 1000 * np.percentile(times, [50, 95])
        print(f"  end: {memory(port):.0f} MiB")
        print(
            f"{options.clients} clients: {len(times):,} answers, "
            f"{len(times) / options.seconds:.0f} a second, p50 {p50:.0f} ms, p95 {p95:.0f} ms, "
            f"{len(errors)} errors {errors[:3]}"
        )


if __name__ == "__main__":
    main()
