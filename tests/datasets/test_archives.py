import gzip
import io
import random
import stat
import tarfile
import zipfile
from functools import partial

import pytest
from tars import tar_bytes

from manymatch.datasets.fetching import archives
from manymatch.datasets.fetching.archives import extract, is_archive, whole_archive
from manymatch.util.errors import SourceError

FILES = {"a.txt": b"first", "folder/b.txt": b"second", "folder/deep/c.bin": bytes(70_000)}


def zip_bytes(members, attributes=None):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if attributes is not None:
                info.external_attr = attributes << 16
            opened.writestr(info, content)
    return stream.getvalue()


MAKERS = {"tar": tar_bytes, "tar.gz": lambda members: tar_bytes(members, ":gz"), "zip": zip_bytes}


def refused(tmp_path, content, words):
    """Extraction of `content` is refused in one line with `words`, and leaves nothing behind."""
    archive = tmp_path / "bad.archive"
    archive.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        extract(archive, tmp_path / "out")
    line = str(caught.value)
    if "overwrite" not in words:  # what is only read overwrites nothing
        with pytest.raises(SourceError) as caught:
            whole_archive(archive)
        assert str(caught.value) == line
    assert line.startswith(str(archive)) and words in line and "\n" not in line
    assert [path.name for path in tmp_path.iterdir()] == ["bad.archive"]


@pytest.mark.parametrize("kind", MAKERS)
def test_files_come_out_as_they_went_in(tmp_path, kind):
    archive = tmp_path / "x"
    archive.write_bytes(MAKERS[kind](FILES.items()))
    assert is_archive(archive) and not is_archive(tmp_path)
    extract(archive, tmp_path / "out")
    result = {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert result == FILES
    whole_archive(archive, lambda name: name.endswith(".txt"))
    with pytest.raises(SourceError, match="does not contain the wanted file"):
        whole_archive(archive, lambda name: name.endswith(".jpg"))


def test_an_earlier_folder_is_replaced_and_a_leading_dot_but_no_mode_or_time_is_taken(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    (tmp_path / "x.tar").write_bytes(tar_bytes([("./a", b"x")], mode=0o4777, mtime=1000))
    extract(tmp_path / "x.tar", tmp_path / "out")
    (path,) = (tmp_path / "out").iterdir()
    mode, changed = path.stat().st_mode, path.stat().st_mtime
    assert path.name == "a" and not mode & (stat.S_ISUID | stat.S_IXUSR) and changed > 1000


def pax(records):
    """A tar whose first header is extended by `records`."""
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, len(records)
    start = header.tobuf(tarfile.USTAR_FORMAT) + records + bytes(-len(records) % 512)
    return start + tar_bytes([("a", b"")])


def long_names(kind):
    """A tar of 3,000 headers of one `kind` for one member."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, content = kind, b"10 path=a\n" if kind in (b"x", b"g") else b"name\0"
    header.size = len(content)
    extended = header.tobuf(tarfile.GNU_FORMAT) + content.ljust(512, b"\0")
    return extended * 3000 + tar_bytes([("a", b"")])


def gigabytes():
    """A header that claims gigabytes."""
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 2**33 - 1
    return header.tobuf(tarfile.USTAR_FORMAT) + bytes(4096)


def encrypted():
    content = bytearray(zip_bytes([("secret", b"x")]))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + at] |= 1
    return bytes(content)


def zip_of(compression):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as opened:
        opened.writestr("a", b"some content")
    return stream.getvalue()


TWO = tar_bytes([("a", bytes(512)), ("b", bytes(512))])
THREE = tar_bytes([("a", bytes(512)), ("b", b"b"), ("c", b"c")])
LINKS = {"symbolic": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE}
DEVICES = {"character": tarfile.CHRTYPE, "block": tarfile.BLKTYPE, "pipe": tarfile.FIFOTYPE}
NO_FILE, ABOVE = "neither a file nor a folder", "leaves the folder by '..'"
OVERWRITE = "it would overwrite an earlier member"
NAMES = {
    "../evil.txt": ABOVE,
    "/tmp/evil.txt": "its path is absolute",
    "C:/evil.txt": "its path is absolute",
    "a\\..\\evil.txt": "backslash",
    "a\x1b[2Jb": "cannot be printed",
    "/".join("n" * 600): "its name is too long",
}
PAIRS = [("a", "a"), ("a", "./a"), ("d/a", "d//a"), ("a", "a/b"), ("a/b", "a")]
NOISE = random.Random(0).randbytes(30_000)


def cut(make, share):
    whole = make([("a", NOISE), ("b", NOISE), ("c", NOISE)])
    return whole[: int(share * len(whole))]


def special(kind, **fields):
    return tar_bytes([("x", b"")], type=kind, **fields)


HOSTILE = {
    "folder above": (lambda: zip_bytes([("good.txt", b"x"), ("../evil/", b"")]), ABOVE),
    "link in a zip": (lambda: zip_bytes([("x", b"/etc")], stat.S_IFLNK | 0o777), "it is a link"),
    "device in a zip": (lambda: zip_bytes([("dev", b"")], stat.S_IFCHR | 0o600), NO_FILE),
    "encrypted": (encrypted, "it is encrypted"),
    "compression": (lambda: zip_of(zipfile.ZIP_LZMA), "compression method 14 is not supported"),
    "changed content": (lambda: zip_of(zipfile.ZIP_STORED).replace(b"some", b"more"), "CRC"),
    "gigabytes": (gigabytes, "a header claims"),
    "cut between members": (lambda: TWO[:1024], "end mark is missing"),
    # One damaged header must not lose all members after the header.
    "damaged header": (lambda: THREE[:1024] + bytes(512) + THREE[1536:], "follows the end mark"),
    "two archives": (lambda: gzip.compress(TWO + TWO), "follows the end mark"),
    "overlapping records": (lambda: pax(b"2 " * 100_000 + b"="), "damaged extended header"),
    "negative size": (lambda: pax(b"13 size=-512\n"), "negative size"),
    "long digits": (lambda: pax(b"9" * 5000 + b" a=b\n"), "damaged extended header"),
}
for kind, make in MAKERS.items():
    for name, words in NAMES.items():
        HOSTILE[f"{kind} {name[:20]!a}"] = (partial(make, [("good", b"x"), (name, b"x")]), words)
    for names in PAIRS:
        HOSTILE[f"{kind} {names}"] = (partial(make, [(name, b"x") for name in names]), OVERWRITE)
    for share in (0.0, 0.3, 0.9):
        HOSTILE[f"{kind} cut at {share}"] = (partial(cut, make, share), "damaged or cut off")
    if kind != "tar":
        bomb = partial(make, [("bomb", bytes(40 * 2**20))])
        HOSTILE[f"{kind} bomb"] = (bomb, "'bomb': the archive unpacks to more than 100 times")
for name, kind in LINKS.items():
    for goal in ("good.txt", "/etc/passwd"):
        make = partial(special, kind, linkname=goal)
        HOSTILE[f"{name} link to {goal}"] = (make, "'x': it is a link")
for name, kind in DEVICES.items():
    HOSTILE[name] = (partial(special, kind), NO_FILE)
for kind in (b"L", b"K", b"x", b"g"):
    HOSTILE[f"headers {kind}"] = (partial(long_names, kind), "too many headers")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_and_damaged_archives_are_refused(tmp_path, name):
    """In one line that begins with the archive, and nothing is left."""
    make, words = HOSTILE[name]
    refused(tmp_path, make(), words)


@pytest.mark.parametrize("kind", MAKERS)
def test_too_many_members_are_refused(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    refused(tmp_path, MAKERS[kind](FILES.items()), "more than 2 members")
    with pytest.raises(SourceError, match=r"none\.tar: no such archive"):
        extract(tmp_path / "none.tar", tmp_path / "out")


def test_any_number_of_zeros_after_the_end_mark_is_padding(tmp_path):
    members = tar_bytes([("a", bytes(512))])[:1024]
    for zeros in (512, 1024, 3 * 2**20):
        (tmp_path / "x").write_bytes(members + bytes(zeros))
        whole_archive(tmp_path / "x")
