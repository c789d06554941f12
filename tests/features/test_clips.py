"""Features of clips in every form, and damaged files of each form."""

import pickle
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from made_clips import SIZE, made_clips, write_saved

from manymatch.config.params import Published
from manymatch.datasets.base import CAPTIONS
from manymatch.features.importers.importing import import_features
from manymatch.features.store import FeatureStore
from manymatch.util.errors import DataError

CLIPS = list(made_clips(9))


class ImportData:
    """A caption table of clips, and a folder for their features."""

    def __init__(self, folder):
        self.captions, self.store = folder / "youcook2.parquet", folder / "out" / "howto100m.h5"
        self.source = folder / "given"
        self.source.mkdir()
        rows = [
            {"image_id": clip.id, "caption_id": f"{clip.id}#0", "split": "train", "labels": []}
            | {"caption": clip.caption, "file": f"videos/{clip.id}.mp4"}
            for clip in CLIPS
        ]
        pq.write_table(pa.Table.from_pylist(rows, schema=CAPTIONS), self.captions)

    def run(self, path=None):
        settings = Published(format="clips", path=str(path or self.source))
        import_features("howto100m", settings, self.captions, self.store)
        with FeatureStore(self.store) as store:
            features, counts, boxes = store.read(range(len(store)))
            assert store.image_ids == [clip.id for clip in CLIPS] and boxes is None
            assert counts.tolist() == [1] * len(CLIPS)
            return features[:, 0]

    def refusal(self, path=None):
        with pytest.raises(DataError) as fault:
            self.run(path)
        assert "\n" not in str(fault.value) and not self.store.exists()
        return str(fault.value)


@pytest.fixture
def data(tmp_path):
    return ImportData(tmp_path)


def joined():
    """Return both parts, normalised and concatenated."""
    parts = [[clip.frames for clip in CLIPS], [clip.movement for clip in CLIPS]]
    lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in parts]
    return np.concatenate([np.stack(p) / n for p, n in zip(parts, lengths, strict=True)], axis=1)


def write_list(path):
    rows = [{"id": c.id, "2d": c.frames, "3d": c.movement, "caption": c.caption} for c in CLIPS]
    path.write_bytes(pickle.dumps(rows, 2))


def parts():
    return {
        "2d": {clip.id: clip.frames for clip in CLIPS},
        "3d": {clip.id: clip.movement for clip in CLIPS},
    }


def write_mapping(path):
    path.write_bytes(pickle.dumps(parts(), 4))


def write_npz(path, save=np.savez):
    save(path, **{f"{p}/{name}": v for p, arrays in parts().items() for name, v in arrays.items()})


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        for part, arrays in parts().items():
            for name, values in arrays.items():
                file.create_dataset(f"{part}/{name}", data=values, compression="gzip")


WRITERS = {
    "list.pkl": write_list,
    "mapping.pickle": write_mapping,
    "now.pth": lambda path: write_saved(path, CLIPS),
    "then.pt": lambda path: write_saved(path, CLIPS, legacy=True),
    "a.npz": write_npz,
    "packed.npz": lambda path: write_npz(path, np.savez_compressed),
    "a.h5": write_hdf5,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_form_gives_the_same_rows(data, name):
    WRITERS[name](data.source / name)
    features = data.run(data.source / name)
    np.testing.assert_array_equal(features, joined().astype(np.float16))


def test_a_folder_of_several_files_with_other_clips_too(data):
    write_saved(data.source / "train.pth", CLIPS[4:])
    write_saved(data.source / "test.pth", [*CLIPS[:4], *made_clips(3, first=300)], legacy=True)
    write_saved(data.source / "others.pth", made_clips(3, first=600))
    (data.source / "notes.txt").write_text("not features")
    np.testing.assert_array_equal(data.run(), joined().astype(np.float16))
    with FeatureStore(data.store) as store:
        assert store.attributes["preprocessing"] == "published, clips: test.pth train.pth"


def test_whole_vectors_are_taken_as_they_are_and_rows_by_their_maximum(data):
    rows = {clip.id: np.stack([clip.frames, clip.movement]) for clip in CLIPS}
    np.savez(data.source / "a.npz", **rows)
    wanted = np.stack([rows[clip.id].max(0) for clip in CLIPS]).astype(np.float16)
    np.testing.assert_array_equal(data.run(), wanted)


def test_clips_without_features_are_counted_and_clips_in_two_files_are_refused(data):
    write_saved(data.source / "a.pth", CLIPS[1:-1])
    line = data.refusal()
    assert "no features of image '-v_000_0'" in line and "(2 images have none)" in line
    write_saved(data.source / "a.pth", CLIPS)
    write_saved(data.source / "b.pth", CLIPS[:1])
    assert "b.pth: '-v_000_0': image '-v_000_0' is already in" in data.refusal()


def spoilt(change):
    """Return the features with a changed fourth clip."""
    whole = parts()
    whole["3d"][CLIPS[3].id] = change(whole["3d"][CLIPS[3].id])
    return whole


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda v: v * np.nan, "NaN or infinity"),
        (lambda v: v[:5], "width"),
        (lambda v: v.reshape(2, 4, 4), "is neither (D,) nor"),
        (lambda v: "text", "str is not an array"),
        (lambda v: v.astype("S4"), "is neither (D,) nor"),
    ],
    ids=["nan", "short", "cube", "text", "strings"],
)
def test_a_spoilt_vector_is_named(data, change, reason):
    (data.source / "a.pkl").write_bytes(pickle.dumps(spoilt(change)))
    line = data.refusal()
    assert "a.pkl: '-v_001_0'" in line and reason in line
    whole = parts()
    del whole["3d"][CLIPS[3].id]
    (data.source / "a.pkl").write_bytes(pickle.dumps(whole))
    assert "only one of the features" in data.refusal()


@pytest.mark.parametrize("name", ["a.npz", "a.h5"])
def test_a_file_that_is_cut_off_is_one_line(data, name):
    file = data.source / name
    WRITERS[name](file)
    file.write_bytes(file.read_bytes()[:-100])
    assert str(file) in data.refusal(file)


def test_files_of_something_else(data):
    (data.source / "a.mat").write_bytes(b"MATLAB")
    assert "not one of .h5" in data.refusal(data.source / "a.mat")
    assert "no features of image" in data.refusal()
    with zipfile.ZipFile(data.source / "a.npz", "w") as archive:
        for clip in CLIPS:
            archive.writestr(clip.id, b"no array")
    assert "not an array" in data.refusal()


def large_piece(folder):
    packed = {"chunks": (2**25,), "maxshape": (None,), "compression": "gzip"}
    with h5py.File(folder / "a.h5", "w") as file:
        for clip in CLIPS:
            file.create_dataset(clip.id, (SIZE,), "f4", **packed)


def packed_zeros(folder):
    np.savez_compressed(folder / "a.npz", **{CLIPS[0].id: np.zeros((2**15, 2**10), np.float32)})
    with zipfile.ZipFile(folder / "a.npz", "a") as archive:
        for clip in CLIPS[1:]:
            archive.writestr(f"{clip.id}.npy", b"")


def stretched(folder):
    """A tensor stretched over one number."""
    torch.save({clip.id: torch.zeros(1).expand(2**40) for clip in CLIPS}, folder / "a.pth")


@pytest.mark.parametrize("write", [large_piece, packed_zeros, stretched])
def test_what_unfolds_to_more_than_a_clip_is_not_read(data, write):
    write(data.source)
    assert "too large for one clip" in data.refusal()
