"""Pickles as data: what people have is read, and what could do harm is one line."""

import pickle
import struct
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from manymatch.util import pickles
from manymatch.util.errors import DataError
from manymatch.util.pickles import read_pickle

ARRAYS = [
    np.arange(6, dtype="<f4").reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=">f8").reshape(2, 3)),
    np.array([b"a/b.jpg", b"c.jpg"]),
    np.array(["übel", "d"]),
    np.array([True, False]),
    np.zeros((0, 4), np.int16),
]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data.pkl"


def test_arrays_and_plain_data_of_every_protocol(file):
    value = {"a": [1, 2.5, None, True], ("b",): "c", "n": np.float32(0.5), "o": OrderedDict(x=1)}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        file.write_bytes(pickle.dumps([value, *ARRAYS], protocol))
        plain, *arrays = read_pickle(file)
        assert plain == value
        for read, array in zip(arrays, ARRAYS, strict=True):
            assert np.asarray(read).dtype == array.dtype
            np.testing.assert_array_equal(np.asarray(read), array)
    file.write_bytes(pickle.dumps({"c"}, 5))
    assert read_pickle(file) == {"c"}


class Calls:
    """What calls something when it is unpickled."""

    def __init__(self, call, *arguments):
        self.parts = call, arguments

    def __reduce__(self):
        return self.parts


def long_binput(number):
    return b"\x80\x02]r" + struct.pack("<I", number) + b"."


def test_code_is_not_run(file, tmp_path):
    trace = tmp_path / "trace"
    for call, arguments in ((Path.touch, (trace,)), (eval, (f"open({str(trace)!r}, 'w')",))):
        file.write_bytes(pickle.dumps([Calls(call, *arguments)]))
        with pytest.raises(DataError, match="it would call") as fault:
            read_pickle(file)
        assert not trace.exists() and "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pickle.dumps(np.array([object, print], object)), "an array of 'O8'"),
        (pickle.dumps(np.zeros(3), 4)[:-20], "not a pickle"),
        (pickle.dumps(list(range(99)))[:50], "not a pickle"),
        (b"", "not a pickle"),
        (b"{}", "not a pickle"),
        (long_binput(2**31), "memo number"),
        (b"\x80\x04\x96" + struct.pack("<Q", 2**40) + b"x.", "not a pickle"),
        (pickle.dumps(np.zeros(2, "M8[s]")), "not of numbers or text"),
    ],
    ids=["objects", "cut", "cut list", "empty", "text", "memo", "length", "dates"],
)
def test_a_damaged_or_hostile_pickle_is_one_line(file, content, reason):
    file.write_bytes(content)
    with pytest.raises(DataError, match=reason) as fault:
        read_pickle(file)
    assert "\n" not in str(fault.value) and str(fault.value).startswith(str(file))


def test_an_array_longer_than_its_bytes_takes_no_memory(file):
    honest = pickle.dumps(np.zeros(3, np.float32), 4)
    state = b"K\x01K\x03\x85"
    assert state in honest
    huge = b"K\x01\x8a\x06" + (2**44).to_bytes(6, "little") + b"\x85"
    file.write_bytes(b"\x80\x04" + honest[11:].replace(state, huge))
    with pytest.raises(DataError, match=r"shape \(17592186044416,\) in 12 B"):
        read_pickle(file)


def test_missing_files_and_pickles_larger_than_allowed_are_refused(file, monkeypatch):
    with pytest.raises(DataError, match="no such file"):
        read_pickle(file)
    file.write_bytes(pickle.dumps(bytes(2000)))
    monkeypatch.setattr(pickles, "MAX_BYTES", 1000)
    with pytest.raises(DataError, match="at most 1,000 B"):
        read_pickle(file)
