"""A folder of made-up pictures, and an index of it."""

import numpy as np
import pytest
from PIL import Image

from manymatch import Index, load
from manymatch.search.index import build as building
from manymatch.search.index.sources import source_of
from manymatch.util.parts import Part, Parts


class Album:
    """A folder of pictures, its index and the model, in `root`."""

    def __init__(self, root, model, model_folder):
        self.root, self.model, self.model_folder = root, model, model_folder
        self.pictures, self.target = root / "pictures", root / "album.index"
        self.pictures.mkdir(parents=True)

    def draw(self, name, seed):
        pixels = np.random.default_rng(seed).integers(0, 256, (40, 40, 3), dtype=np.uint8)
        path = self.pictures / name
        path.parent.mkdir(exist_ok=True, parents=True)
        Image.fromarray(pixels).save(path)

    def index(self, source=None, **options):
        parts = Parts(self.root / "parts")
        return building.build(
            source_of(source or self.pictures),
            self.model,
            self.target,
            str(self.model_folder),
            parts=parts,
            **options,
        )

    def index_part(self, part):
        parts = Parts(self.root / "parts", Part.read(part))
        building.build_part(source_of(self.pictures), self.model, parts)

    def open(self):
        return Index.open(self.target, self.model)

    def content(self):
        """The files of the index by name, without the manifest, which names folders."""
        files = (path for path in self.target.rglob("*") if path.is_file())
        return {path.name: path.read_bytes() for path in files if path.name != "manifest.json"}


@pytest.fixture(scope="module")
def vsepp_folder(make_model):
    return make_model("vsepp")


@pytest.fixture(scope="module")
def vsepp(vsepp_folder):
    return load(vsepp_folder, "cpu")


@pytest.fixture
def album(tmp_path, vsepp, vsepp_folder, monkeypatch):
    """An album of 12 pictures, whose index is made in parts of three."""
    monkeypatch.setattr(building, "ITEMS_AT_ONCE", 3)
    return drawn(tmp_path, vsepp, vsepp_folder)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory, vsepp, vsepp_folder):
    """An album that has its index; a test changes neither."""
    made = drawn(tmp_path_factory.mktemp("indexed"), vsepp, vsepp_folder)
    made.index()
    return made


def drawn(root, model, model_folder):
    made = Album(root, model, model_folder)
    for number in range(12):
        made.draw(f"{number % 3}/{number:02}.png", number)
    return made


@pytest.fixture
def encoded(vsepp, monkeypatch):
    """Collects every picture that is embedded."""
    seen = []
    inner = vsepp.encode_images

    def counted(images, *args, **options):
        return inner((seen.append("picture") or image for image in images), *args, **options)

    monkeypatch.setattr(vsepp, "encode_images", counted)
    return seen
