"""Which items a part has. The tests of joined parts show which parts are joined."""

import pytest

from manymatch.util.errors import ConfigError
from manymatch.util.parts import Part, Parts, identity_of


def fixed(part):
    return "0123456789abcdef0123"


def test_every_item_is_in_one_part():
    parts = [Part.read(f"{number}/3") for number in (1, 2, 3)]
    items = list(range(8))
    assert [list(part.of(items)) for part in parts] == [[0, 3, 6], [1, 4, 7], [2, 5]]
    for part in parts:
        assert [item for item in items if part.takes(item)] == list(part.of(items))
    for text in ("", "1", "0/4", "5/4", "1/0", "a/4", "1/4/2", "-1/4", "1/" * 99):
        with pytest.raises(ConfigError, match="expected K/N"):
            Part.read(text)
    with pytest.raises(ConfigError, match="fewer images than parts"):
        parts[2].refuse_empty(parts[2].of("ab"), "images")


def test_what_another_did_not_finish_is_made_and_parts_stay_until_they_are_joined(tmp_path, capsys):
    for text in ("2/2", "1/2", "1/3"):
        with pytest.raises(ZeroDivisionError), Parts(tmp_path, Part.read(text)).making(fixed):
            raise ZeroDivisionError
        with Parts(tmp_path, Part.read(text)).making(fixed) as path:
            path.touch()
        with Parts(tmp_path, Part.read(text)).making(fixed) as path:
            assert path is None
    (tmp_path / "2-of-3-0123456789abcdef.partial").touch()
    with pytest.raises(ZeroDivisionError), Parts(tmp_path).joining(fixed):
        raise ZeroDivisionError
    with Parts(tmp_path).joining(fixed) as joined:
        assert [path.name[:6] for path in joined] == ["1-of-2", "2-of-2"]
    with Parts(tmp_path).joining(fixed) as joined:
        assert joined == [] and "ignored" in capsys.readouterr().err


def test_a_link_to_nowhere_is_refused(tmp_path):
    (tmp_path / "parts").symlink_to(tmp_path / "not mounted")
    parts = Parts(tmp_path / "parts" / "features", Part(1, 2))
    with pytest.raises(ConfigError, match="features: cannot be created"), parts.making(fixed):
        pass


def test_the_identity_tells_code_and_settings():
    first = identity_of("code", "lite0", 3)
    assert identity_of("code", "lite0", 3) == first != identity_of("code", "lite0", 4)
    assert identity_of("other code", "lite0", 3) != first
