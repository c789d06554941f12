"""The published sources of a data set with web addresses on this machine: the last address of a
file gives the file, those before it something else."""

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

from manymatch import datasets


def served_sources(dataset, folder, url, spoil):
    """The default settings of `dataset`. What is served from `folder` at `url` is at `folder/good`,
    by the names of the last addresses; `spoil` makes of its bytes what the other addresses give."""
    model = datasets.dataset(dataset).settings_model()
    return _replaced(model.model_dump(mode="json", exclude_none=True), folder, url, spoil)


def _replaced(value, *served):
    if isinstance(value, list):
        return [_replaced(entry, *served) for entry in value]
    if isinstance(value, dict) and "url" in value:
        return _source(value, *served)
    if isinstance(value, dict):
        return {key: _replaced(entry, *served) for key, entry in value.items()}
    return _source({"url": value}, *served) if str(value).startswith("http") else value


def _source(value, folder, url, spoil):
    *others, last = (_name(address) for address in (value["url"], *value.get("mirrors", ())))
    content = (folder / "good" / last).read_bytes()
    addresses = []
    for number, name in enumerate(others):
        bad = folder / "bad" / str(number) / name
        bad.parent.mkdir(parents=True, exist_ok=True)
        bad.write_bytes(spoil(content))
        addresses.append(f"{url}/bad/{number}/{name}")
    first, *mirrors = [*addresses, f"{url}/good/{last}"]
    known = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    kept = {key: known[key] for key in known if key in value}
    return value | {"url": first, "mirrors": mirrors} | kept


def _name(address):
    return Path(urlsplit(address).path).name
