"""Which items a part has, and which parts are joined."""

import pytest

from manymatch.util.errors import ConfigError
from manymatch.util.parts import Part, Parts, identity_of


def fixed(part):
    return "0123456789abcdef0123"


def joined(parts, identity=fixed):
    with parts.joining(identity) as result:
        return [path.name for path in result]


def made(folder, *texts, identity=fixed):
    """The parts of `texts` as empty files."""
    folder.mkdir(exist_ok=True)
    for text in texts:
        with Parts(folder, Part.read(text)).making(identity) as path:
            path.touch()
    return Parts(folder)


def test_every_item_is_in_one_part():
    parts = [Part.read(f"{number}/3") for number in (1, 2, 3)]
    items = list(range(8))
    assert [list(part.of(items)) for part in parts] == [[0, 3, 6], [1, 4, 7], [2, 5]]
    for part in parts:
        assert [item for item in items if part.takes(item)] == list(part.of(items))


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "1/0", "a/4", "1/4/2", "-1/4", "1/" * 99])
def test_other_texts_and_parts_without_items_are_refused(text):
    with pytest.raises(ConfigError, match="expected K/N"):
        Part.read(text)
    with pytest.raises(ConfigError, match="fewer images than parts"):
        Part.read("3/3").refuse_empty(Part.read("3/3").of("ab"), "images")


def test_all_parts_are_joined_in_order_and_then_removed(tmp_path):
    parts = made(tmp_path / "parts", "2/3", "1/3", "3/3", "1/2")
    with pytest.raises(ZeroDivisionError), parts.joining(fixed):
        raise ZeroDivisionError
    assert len(list(parts.folder.iterdir())) == 4
    assert [name[:6] for name in joined(parts)] == ["1-of-3", "2-of-3", "3-of-3"]
    assert [path.name[:6] for path in parts.folder.iterdir()] == ["1-of-2"]


def test_a_missing_or_unfinished_part_is_told(tmp_path, capsys):
    parts = made(tmp_path / "parts", "1/2")
    (parts.folder / "2-of-2-0123456789abcdef.partial").touch()
    assert joined(parts) == []
    assert "ignored" in capsys.readouterr().err
    assert joined(Parts(tmp_path / "none")) == [] and capsys.readouterr().err == ""


def test_parts_of_other_inputs_are_no_parts(tmp_path):
    parts = made(tmp_path / "parts", "1/2", "2/2")
    assert joined(parts, lambda part: "f" * 64) == []
    assert joined(parts, lambda part: fixed(part) if part.number == 1 else "f" * 64) == []
    assert len(list(parts.folder.iterdir())) == 2


def test_a_part_that_another_did_not_finish_is_made_and_a_finished_one_is_not(tmp_path):
    with pytest.raises(ZeroDivisionError), Parts(tmp_path, Part(1, 2)).making(fixed):
        raise ZeroDivisionError
    assert made(tmp_path, "1/2") and len(list(tmp_path.iterdir())) == 1
    with Parts(tmp_path, Part(1, 2)).making(fixed) as path:
        assert path is None


def test_a_link_to_nowhere_is_refused(tmp_path):
    (tmp_path / "parts").symlink_to(tmp_path / "not mounted")
    parts = Parts(tmp_path / "parts" / "features", Part(1, 2))
    with pytest.raises(ConfigError, match="features: cannot be created"), parts.making(fixed):
        pass


def test_the_identity_tells_code_and_settings():
    first = identity_of("code", "lite0", 3)
    assert identity_of("code", "lite0", 3) == first != identity_of("code", "lite0", 4)
    assert identity_of("other code", "lite0", 3) != first
