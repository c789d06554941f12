"""Tiny shards on a web server, and batches that are read from it."""

import contextlib
from dataclasses import fields
from pathlib import Path

import torch
from scripted_server import file, head, serving

from manymatch.batch.vocabulary import Vocabulary
from manymatch.shards import remote
from manymatch.shards.read import Loader, batches

CACHE = Path("data/cache")
PLENTY = 10**9


def served(folder, *first, **options):
    """An answer of a plain web server with the files of `folder`.

    Args:
        first: the first answers for each file, each with the options of `scripted_server.file`, or
            a status.
        options: those of later answers.
    """
    waiting = {}

    def answer(request):
        _, _, address = request.partition(" /grid/")  # a killed client sends an empty request
        path = folder / address.partition(" ")[0]
        if not path.is_file():
            return [head("Content-Length: 0", status="404 Not Found")]
        now = waiting.setdefault(path.name, list(first))
        how = now.pop(0) if now else options
        if isinstance(how, str):
            return [head("Content-Length: 0", status=how)]
        return file(path.read_bytes(), **how)(request)

    return answer


@contextlib.contextmanager
def head_of(folder, answer, cache_bytes=PLENTY):
    """The server, and a folder with the head of the shards that the server has."""
    with serving(answer) as server:
        local = Path("data/shards/tiny/grid")
        remote.write_head(server.url.removesuffix("/file.bin"), local, cache_bytes)
        assert {path.name for path in local.iterdir()} == {"SEAL.json", "index.json"}
        yield server, local


def epochs(tiny, folder, workers=0):
    """The contents of all batches of two epochs."""
    words = Vocabulary.load(tiny.vocabulary)

    def plan(epoch):
        return batches(folder, "train", words, 5, captions_per_image=2, shuffle=(0, epoch))

    loader = Loader(plan, workers)
    return [contents(loader.epoch(epoch)) for epoch in (0, 1)]


def contents(batches_):
    """The fields of batches as comparable values."""
    return [_parts(batch) for batch in batches_]


def _parts(value):
    parts = (getattr(value, field.name) for field in fields(value))
    return [
        part.tolist() if isinstance(part, torch.Tensor) else _parts(part)
        if hasattr(part, "to") else part
        for part in parts
    ]  # fmt: skip
