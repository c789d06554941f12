"""Damage to one's own pictures and captions, for tests of the messages."""

import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from own_forms import coco, pictures_in_parquet, webdataset
from PIL import Image
from tars import tar_bytes


def text(content, name="metadata.csv"):
    """The whole content of the table."""

    def damage(birds):
        data = content if isinstance(content, bytes) else content.encode()
        (birds.photos / name).write_bytes(data)

    return damage


def table(change):
    """A change of the text of the table `metadata.csv`."""

    def damage(birds):
        path = birds.table(birds.photos / "metadata.csv")
        text(change(path.read_text()))(birds)

    return damage


def caption(value):
    """Another caption of two pictures, which are more than 1% of 120 captions."""
    return table(lambda rows: re.sub('"a bird, number [78]"', lambda _: f'"{value}"', rows))


def named(value):
    """Another name of the picture bird7.jpg in the table."""
    return table(lambda rows: rows.replace("bird7.jpg", value))


def picture(change):
    """A change of the file bird7.jpg."""

    def damage(birds):
        birds.table(birds.photos / "metadata.csv")
        change(birds.photos / "bird7.jpg")

    return damage


def split(word, **settings):
    """The splits of the pictures by number."""

    def damage(birds):
        rows = [row | {"split": word(n)} for n, row in enumerate(birds.rows)]
        text("\n".join(map(json.dumps, rows)), "metadata.jsonl")(birds)
        return settings

    return damage


def one_of_two(birds):
    """A split of two pictures, one of which cannot be decoded."""
    (birds.photos / "bird1.jpg").write_bytes(b"")
    return split(lambda n: "test" if n < 2 else "train", allow=0.05)(birds) or {}


def lists(**content):
    def damage(birds):
        birds.table(birds.photos / "metadata.csv")
        paths = [birds.root / f"{name}.txt" for name in content]
        for path in paths:
            path.write_text(content[path.stem])
        return {"split": [str(path) for path in paths]}

    return damage


def link(target):
    def change(path):
        path.unlink()
        path.symlink_to(target)

    return change


def same_in_folders(birds):
    (birds.photos / "more" / "bird7.jpg").write_bytes((birds.photos / "bird8.jpg").read_bytes())
    (birds.photos / "bird7.jpg").rename(birds.photos / "more" / "x.jpg")
    (birds.photos / "other").mkdir()
    (birds.photos / "other" / "bird7.jpg").write_bytes((birds.photos / "bird9.jpg").read_bytes())
    birds.table(birds.photos / "metadata.csv")


def other_case(birds):
    (birds.photos / "BIRD8.jpg").write_bytes((birds.photos / "bird7.jpg").read_bytes())
    birds.captions["BIRD8.jpg"] = ["a bird"]
    birds.table(birds.photos / "metadata.csv")


def all_alike(birds):
    for path in birds.photos.rglob("*.jpg"):
        Image.new("RGB", (40, 40)).save(path)
    birds.table(birds.photos / "metadata.csv")


def two_forms(birds):
    coco(birds)
    birds.table(birds.photos / "metadata.csv")


def tar(content, cut=None):
    def damage(birds):
        path = birds.root / "x.tar"
        path.write_bytes(tar_bytes(content)[:cut])
        return {"images": str(path)}

    return damage


def cut_parquet(birds):
    settings = pictures_in_parquet(birds)
    path = next(Path(settings["images"]).iterdir())
    path.write_bytes(path.read_bytes()[:-40])
    return settings


def no_utf8(kind):
    """A Parquet table whose captions, of the type `kind`, are not UTF-8."""

    def damage(birds):
        settings = pictures_in_parquet(birds)
        path = next(Path(settings["images"]).iterdir())
        rows = pq.read_table(path)
        captions = pa.array([b"\xff\xfe"] * len(rows)).view(kind)
        pq.write_table(rows.set_column(1, "caption", captions), path)
        return settings

    return damage


def damaged_in_tar(birds):
    path = birds.photos / "bird7.jpg"
    path.write_bytes(path.read_bytes()[:300])
    return webdataset(birds)


def coco_of(images, annotations):
    return text(json.dumps({"images": images, "annotations": annotations}), "captions_train.json")


def renamed(ending):
    """Two pictures, which are more than 1%, with another ending, also in the table."""

    def damage(birds):
        for file in ("bird7.jpg", "bird8.jpg"):
            name = Path(file).with_suffix(ending).name
            (birds.photos / file).rename(birds.photos / name)
            birds.captions[name] = birds.captions.pop(file)
        birds.table(birds.photos / "metadata.csv")

    return damage


def picture_bytes():
    file = io.BytesIO()
    Image.new("RGB", (40, 40)).save(file, "JPEG")
    return file.getvalue()


def in_lists(*numbers):
    return "".join(f"bird{n}.jpg\n" for n in numbers)
