"""Sealed files: changing them as their writer would, and damaging them."""

import random

from manymatch.util.files import write_json
from manymatch.util.json_file import read_object
from manymatch.util.seal import NAME, sealed


def edit(path, **change):
    """Change keys of the object in a JSON file, and the seal of the folder that holds the file."""
    write_json(path, read_object(path) | change)
    reseal(next(folder for folder in path.parents if (folder / NAME).is_file()))


def reseal(folder):
    """Seal the present content of a folder."""
    content = folder.rename(folder.with_name("unsealed"))
    (content / NAME).unlink()
    with sealed(folder, loose=["README.md"]) as partial:
        content.rename(partial)


def flipped_bits(path, count, seed=0):
    """Flip one bit of the file at a time, at positions spread over the file and at its ends, and
    restore the file at last; yield the position."""
    whole, rng = path.read_bytes(), random.Random(seed)
    ends = [*range(min(8, len(whole))), *range(max(0, len(whole) - 8), len(whole))]
    spread = [int((number + rng.random()) / count * len(whole)) for number in range(count)]
    for at in [*ends, *spread]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        yield at
    path.write_bytes(whole)
