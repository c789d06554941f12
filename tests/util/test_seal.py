"""A sealed folder or file is whole, after a kill at any moment, and damage is told in one line."""

import json
import os
import signal
import sys
from functools import partial

import pytest
from forked import forked
from hashed_files import flipped_bits

from manymatch.util import seal
from manymatch.util.errors import DataError
from manymatch.util.json_file import content_hash
from manymatch.util.seal import check_if_sealed, open_sealed, sealed

REMEDY = "Run the stage again"
ZEROS = "0" * 64
CHANGES = {
    *(f"os.{name}" for name in ("rename", "remove", "mkdir", "rmdir")),
    "ctypes.dlsym",
}
"""Audited calls that change a folder. A kill elsewhere leaves what a kill at the next change does.
`dlsym` comes before two paths change places."""


def write(target, word):
    with sealed(target, loose=["README.md"]) as folder:
        if target.suffix:
            folder.write_text(word)
            return
        (folder / "deep").mkdir(parents=True)
        for name in ("a", "deep/b", "README.md"):
            (folder / name).write_text(word)


def words(target):
    """The words in a target whose seal is right."""
    if target.suffix:
        check_if_sealed(target, REMEDY)
        return {target.read_text()}
    return {open_sealed(target, REMEDY).check(name).read_text() for name in ("a", "deep/b")}


def killed_at(event, work):
    """Do `work` in a child that is killed at its event of this number; whether the child lived."""

    def child():
        left = [event]

        def hook(name, arguments):
            if name in CHANGES or (name == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        work()

    _, status = os.waitpid(forked(child), 0)
    return not os.WIFSIGNALED(status)


@pytest.mark.parametrize(
    ("name", "exchanged"), [("folder", True), ("folder", False), ("table.parquet", True)]
)
def test_a_kill_at_any_moment_leaves_the_old_or_the_new(tmp_path, monkeypatch, name, exchanged):
    if not exchanged:  # as on a file system without this step
        monkeypatch.setattr("manymatch.util.files._exchange", lambda *_: False)
    target, event, seen = tmp_path / name, 0, set()
    write(target, "0")
    while True:
        event += 1
        old = words(target)
        if killed_at(event, partial(write, target, str(event))):
            break
        if exchanged or target.suffix:
            now = words(target)
            assert now in (old, {str(event)})
            seen.add(now == old)
        elif target.exists():
            assert words(target) in (old, {str(event)})
        write(target, "again")
        assert words(target) == {"again"}
        assert not list(tmp_path.glob("*.partial"))
    assert event > 10 and (not exchanged or seen == {True, False})


def test_equal_content_gives_equal_seals_that_name_all_files(tmp_path):
    for number in range(2):
        write(tmp_path / f"folder{number}", "x")
    one, other = (open_sealed(tmp_path / f"folder{number}", REMEDY) for number in range(2))
    assert one.hashes == other.hashes and set(one.hashes) == {"a", "deep/b"}
    assert set(one.sizes.values()) == {1}
    texts = {(tmp_path / f"folder{number}" / seal.NAME).read_text() for number in range(2)}
    assert len(texts) == 1
    (tmp_path / "folder0" / "README.md").write_text("edited by a person")
    open_sealed(tmp_path / "folder0", REMEDY).check_all()


def test_a_hash_that_the_block_knows_is_taken(tmp_path):
    with sealed(tmp_path / "x.bin", known={"x.bin": ZEROS}) as file:
        file.write_text("x")
    with pytest.raises(DataError, match="differs from the seal"):
        open_sealed(tmp_path / "x.bin", REMEDY)
    assert open_sealed(tmp_path / "x.bin", REMEDY, whole_bytes=0).hashes == {"x.bin": ZEROS}


@pytest.mark.parametrize("name", ["a", "deep/b", seal.NAME])
def test_every_flipped_bit_is_one_line_that_names_the_file(tmp_path, name):
    write(tmp_path / "folder", "some words")
    for _ in flipped_bits(tmp_path / "folder" / name, 40):
        with pytest.raises(DataError, match=f"{name}.*{REMEDY}") as caught:
            open_sealed(tmp_path / "folder", REMEDY)
        assert "\n" not in str(caught.value)
    assert words(tmp_path / "folder") == {"some words"}


def test_a_large_file_is_compared_when_it_is_used_and_once(tmp_path, monkeypatch):
    hashed, whole = [], seal.sha256
    monkeypatch.setattr(seal, "sha256", lambda path: (hashed.append(path.name), whole(path))[1])
    write(tmp_path / "folder", "large")
    hashed.clear()
    opened = open_sealed(tmp_path / "folder", REMEDY, whole_bytes=0)
    assert not hashed
    for _ in range(2):
        opened.check_all()
        open_sealed(tmp_path / "folder", REMEDY)
    assert sorted(hashed) == ["a", "b"]
    (tmp_path / "folder" / "a").write_text("rot!!")
    with pytest.raises(DataError, match="damaged"):
        opened.check("a")
    with pytest.raises(DataError, match="not in the seal"):
        opened.check("README.md")
    (tmp_path / "folder" / "a").write_text("longer")
    hashed.clear()
    open_sealed(tmp_path / "folder", REMEDY, whole_bytes=None)
    with pytest.raises(DataError, match="a: damaged or cut off: 6 bytes"):
        open_sealed(tmp_path / "folder", REMEDY, whole_bytes=0)
    assert not hashed


def own(**changes):
    """The content of a seal whose author has computed its hash."""
    content = {"version": 1, "files": {}, "code": "", "inputs": {}} | changes
    return json.dumps(content | {"seal_sha256": content_hash(content)})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, r"no seal.*older version"),
        ("", "not valid JSON"),
        ("[]", "JSON object"),
        ("{}", "damaged or no seal"),
        ("[" * 100_000, "SEAL"),
        *((own(**odd), "damaged or no seal") for odd in ({"version": 2}, {"files": []})),
        (own(files={"a": 5}), "damaged or no seal"),
        (own(files={"../a": {"bytes": 1, "sha256": ""}}), "the name '../a'"),
        (own(files={"/etc/passwd": {"bytes": 1, "sha256": ""}}), "the name '/etc/passwd'"),
        (own(files={"\ud800": {"bytes": 1, "sha256": ZEROS}}), "damaged or no seal"),
        (own(files={"none": {"bytes": 1, "sha256": ZEROS}}), "none: no such file"),
        (own(files={"pipe": {"bytes": 0, "sha256": ZEROS}}), "pipe"),
        *(
            (own(files={"a": {"bytes": 1, "sha256": text}}), r"SEAL\.json.*the hash")
            for text in ("/etc/passwd", f"../{'0' * 61}", "A" * 64, f"{ZEROS}\n", "a\0b", "")
        ),
        (own(files={"a": {"bytes": 1, "sha256": 5}}), "damaged or no seal"),
        *(
            (own(files={"a": {"bytes": size, "sha256": ZEROS}}), r"SEAL\.json.*the size")
            for size in (1e999, -1, 1.5, True, "1")
        ),
    ],
)
def test_what_is_no_seal_is_one_line_with_the_remedy(tmp_path, content, expected):
    folder = tmp_path / "folder"
    write(folder, "x")
    os.mkfifo(folder / "pipe")
    (folder / seal.NAME).unlink()
    if content is not None:
        (folder / seal.NAME).write_text(content)
    with pytest.raises(DataError, match=expected) as caught:
        open_sealed(folder, REMEDY)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)


def test_a_users_own_file_needs_no_seal(tmp_path):
    (tmp_path / "own.parquet").write_text("x")
    check_if_sealed(tmp_path / "own.parquet", REMEDY)
    with pytest.raises(DataError, match="no seal"):
        open_sealed(tmp_path / "own.parquet", REMEDY)
    with pytest.raises(DataError, match="no such file or folder"):
        open_sealed(tmp_path / "none", REMEDY)
