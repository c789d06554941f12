"""Made-up clips in the published forms: captions of a few verbs and things, features that follow
them, and word vectors."""

import json
import pickle
from dataclasses import dataclass

import numpy as np
import torch

VERBS = ("cut", "fry", "boil", "mix", "peel", "grate")
THINGS = ("onion", "egg", "rice", "carrot", "bread", "cheese", "fish", "leek")
SIZE = 32
"""Of the features of each kind; published ones have 2,048."""
WORD_SIZE = 12


@dataclass(frozen=True)
class MadeClip:
    """`number` picks verb and thing."""

    id: str
    caption: str
    frames: np.ndarray
    movement: np.ndarray


def made_clips(count, first=0, seed=0):
    """Clips VIDEO_k, three a video, the verb in their movement and the thing in their frames."""
    patterns = np.random.default_rng(99).random((2, 8, SIZE))
    for number in range(first, first + count):
        rng = np.random.default_rng((seed, number))
        verb, thing = number % len(VERBS), (number * 5 + number // 6) % len(THINGS)
        noise = rng.random((2, SIZE)) / 4
        yield MadeClip(
            f"-v_{number // 3:03}_{number % 3}",
            f"{VERBS[verb]} the {THINGS[thing]}",
            (patterns[0, thing] + noise[0]).astype(np.float32),
            (patterns[1, verb] + noise[1]).astype(np.float32),
        )


def write_youcook2(folder, train, test):
    """HowTo100M's two pickles."""
    for name, clips in (("train", made_clips(train)), ("val", made_clips(test, first=3 * train))):
        entries = [
            {"id": clip.id, "2d": clip.frames, "3d": clip.movement, "caption": clip.caption}
            for clip in clips
        ]
        (folder / f"youcook_{name}.pkl").write_bytes(pickle.dumps(entries, protocol=4))


def write_annotations(folder, train, test):
    """YouCook2's own file."""
    database = {}
    parts = (("training", made_clips(train)), ("validation", made_clips(test, first=3 * train)))
    for subset, clips in parts:
        for clip in clips:
            video, _, step = clip.id.rpartition("_")
            entry = database.setdefault(video, {"subset": subset, "annotations": []})
            entry["annotations"].append({"id": int(step), "sentence": clip.caption})
    target = folder / "youcookii_annotations_trainval.json"
    target.write_text(json.dumps({"database": database}))


def write_saved(path, clips, legacy=False):
    """HowTo100M's features of MSR-VTT and LSMDC, as torch saves them now or did then."""
    kept = list(clips)
    parts = {
        "2d": {clip.id: torch.from_numpy(clip.frames) for clip in kept},
        "3d": {clip.id: torch.from_numpy(clip.movement) for clip in kept},
    }
    torch.save(parts, path, _use_new_zipfile_serialization=not legacy)


def write_word2vec(path, words, size=WORD_SIZE):
    """A binary file of word2vec's, with a line break after every word as some tools write it."""
    kept = list(words)
    rng = np.random.default_rng(5)
    with path.open("wb") as stream:
        stream.write(f"{len(kept)} {size}\n".encode())
        for word in kept:
            stream.write(word.encode() + b" " + rng.normal(size=size).astype("<f4").tobytes())
            stream.write(b"\n")
