"""Made-up features of sketches and images in the published forms.

A class is a point in a small space; sketches and images see it, with noise, through two random
maps. What the maps have in common is learnt on seen classes and serves the unseen ones.
"""

import numpy as np

CLASSES, LATENT, WIDTH = 24, 6, 20
UNSEEN = [f"kind-{number}" for number in range(18, CLASSES)]


def write_sketches(folder, per_class=20, seed=0):
    """Files as the CVAE's authors published them (ECCV 2018), images in two parts; the `data` of
    an experiment on them."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(CLASSES, LATENT))
    maps = rng.normal(size=(2, LATENT, WIDTH))
    for name, view, count in (
        ("sketch", 0, per_class),
        ("image", 1, per_class),
        ("image_ext", 1, per_class // 2),
    ):
        labels = np.tile(np.arange(CLASSES), count)
        seen = points[labels] + rng.normal(size=(len(labels), LATENT)) / 3
        features = np.maximum(seen @ maps[view], 0).astype(np.float32)
        np.save(folder / f"{name}_vgg_features.npy", features)
        paths = [f"256x256/{name}/kind-{label}/{row}.png" for row, label in enumerate(labels)]
        np.save(folder / f"{name}_paths.npy", np.array([path.encode() for path in paths]))
    return {
        "sketches": part(folder, "sketch"),
        "images": [part(folder, "image"), part(folder, "image_ext")],
        "unseen": UNSEEN,
    }


def part(folder, name):
    return {
        "features": str(folder / f"{name}_vgg_features.npy"),
        "classes": str(folder / f"{name}_paths.npy"),
    }
