"""A made-up COCO of five images in the forms in which people hold it."""

import json
import zipfile

import numpy as np

IMAGES = {
    9: ("test", "val2014"),
    4: ("train", "train2014"),
    7: ("val", "val2014"),
    3: ("restval", "val2014"),
    5: ("test", "val2014"),
}
"""Karpathy's order, which is not that of the numbers."""
ORDER = [4, 3, 7, 9, 5]
"""Of the table: by split, then Karpathy's."""
SCAN = {"train": [4, 3], "dev": [7], "testall": [9, 5], "test": [9]}
IDS = {"train": [4], "restval": [3], "dev": [7], "test": [9, 5]}
CAPTIONS = 5
KARPATHY = "dataset_coco.json"


def file_name(image):
    return f"COCO_{IMAGES[image][1]}_{image:012}.jpg"


def text(image, number):
    return f"A picture {number} of {image} ."


def caption_id(image, number):
    return 1000 - 10 * image + number


def write_images(folder):
    """In train2014 and val2014, as the archives unpack."""
    for image, (_, part) in IMAGES.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / part / file_name(image)).write_bytes(b"picture %d" % image)


def karpathy():
    images = [
        {
            "filepath": part,
            "filename": file_name(image),
            "cocoid": image,
            "imgid": position,
            "split": split,
            "sentids": [caption_id(image, k) for k in range(CAPTIONS)],
            "sentences": [
                {"raw": text(image, k), "tokens": ["a"], "sentid": caption_id(image, k)}
                for k in range(CAPTIONS)
            ],
        }
        for position, (image, (split, part)) in enumerate(IMAGES.items())
    ]
    return {"images": images, "dataset": "coco"}


def write_karpathy(folder, archive=None, inside=KARPATHY):
    content = json.dumps(karpathy())
    if archive is None:
        (folder / KARPATHY).write_text(content)
        return
    with zipfile.ZipFile(folder / archive, "w") as opened:
        opened.writestr("dataset_flickr8k.json", "{}")
        opened.writestr("coco/vgg_feats.mat", bytes(1000))
        opened.writestr(inside, content)


def annotations(part):
    """COCO's own files of a part: captions and instances."""
    mine = sorted(image for image in IMAGES if IMAGES[image][1] == part)
    images = [{"id": image, "file_name": file_name(image), "height": 4} for image in mine]
    captions = [
        {"image_id": image, "id": caption_id(image, k), "caption": text(image, k) + "\n"}
        for k in range(CAPTIONS)
        for image in mine
    ]
    instances = [
        {"id": n, "image_id": image, "category_id": category, "segmentation": [[1.5, 2.25]]}
        for n, (image, category) in enumerate((i, c) for i in mine for c in (90, i, 1) if i != 5)
    ]
    info = {"description": 'COCO [2014] {"annotations": []}', "year": 2014}
    return {
        "captions": {"info": info, "images": images, "annotations": captions},
        "instances": {
            "info": info,
            "images": images,
            "annotations": instances,
            "categories": [{"id": 1, "name": "person"}],
        },
    }


def write_annotations(folder, archive=None):
    """As files in `annotations/`, or in an archive."""
    files = {
        f"annotations/{kind}_{part}.json": json.dumps(value)
        for part in ("train2014", "val2014")
        for kind, value in annotations(part).items()
    }
    if archive is not None:
        with zipfile.ZipFile(folder / archive, "w") as opened:
            for name, content in files.items():
                opened.writestr(name, content)
        return
    (folder / "annotations").mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)


def write_ids(folder):
    folder.mkdir(exist_ok=True)
    for name, images in IDS.items():
        ids = [caption_id(image, k) for image in images for k in range(CAPTIONS)]
        np.save(folder / f"coco_{name}_ids.npy", np.array(ids))


def write_precomp(folder, ids="image", mapping=None):
    """SCAN's folder; ids once an `image` or a `caption`, or none; `mapping`: where that goes."""
    folder.mkdir(parents=True)
    for name, images in SCAN.items():
        lines = [text(image, k) for image in images for k in range(CAPTIONS)]
        (folder / f"{name}_caps.txt").write_text("\n".join(lines) + "\n")
        repeats = {"image": 1, "caption": CAPTIONS}
        if ids:
            numbers = [str(image) for image in images for _ in range(repeats[ids])]
            (folder / f"{name}_ids.txt").write_text("\n".join(numbers) + "\n")
    if mapping is not None:
        files = {str(image): f"{IMAGES[image][1]}/{file_name(image)}" for image in IMAGES}
        (mapping / "id_mapping.json").write_text(json.dumps(files))


def expected(ids=True):
    """Return (image, split, caption id, caption) of the whole table."""
    splits = {"train": "train", "restval": "train", "val": "validation", "test": "test"}
    return [
        (
            str(image),
            splits[IMAGES[image][0]],
            str(caption_id(image, k)) if ids else f"{image}#{k}",
            text(image, k),
        )
        for image in ORDER
        for k in range(CAPTIONS)
    ]


def table(rows):
    keys = ("image_id", "split", "caption_id", "caption")
    return [tuple(row[key] for key in keys) for row in rows]
