"""Where a trained model is: a folder, in this package, or on the Hugging Face hub."""

import re
from contextlib import suppress
from pathlib import Path

from manymatch.config.layout import Layout
from manymatch.model.facts import FACTS
from manymatch.model.versions import in_production
from manymatch.util.errors import CheckpointError, first_line

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
"""OWNER/MODEL or OWNER/MODEL@REVISION."""
_PACKAGED = Path(__file__).parent / "packaged"


def packaged() -> dict[str, Path]:
    """Name -> folder of each model that comes with this package, sorted by name."""
    return {path.parent.name: path.parent for path in sorted(_PACKAGED.glob(f"*/{FACTS}"))}


def resolve_model(name: str) -> Path:
    """The folder of the model `name`: a folder, a packaged model, the version in production of a
    data set, or a name on the hub.

    Raises:
        CheckpointError: there is no such model, or the hub does not answer.
        StorageError: DVC cannot give the weights of the version in production.
    """
    if Path(name, FACTS).is_file():
        return Path(name)
    # A folder without a model may have the name of a data set and hold its pictures.
    if here := packaged().get(name) or ("/" not in name and in_production(Layout(), name)):
        return here
    return Path(name) if Path(name).is_dir() else download_model(name)


def download_model(name: str, *, local_files_only: bool = False) -> Path:
    """The folder of the model `name` on the hub, copied to this machine, or with `local_files_only`
    there already.

    Raises:
        CheckpointError: there is no such model, or the hub does not answer.
    """
    advice = "Name the folder of a trained model, such as models/scenes/cora"
    if names := ", ".join(packaged()):
        advice += f", a model of the package ({names})"
    if not _NAME.fullmatch(name):
        raise CheckpointError(f"{name}: no such folder. {advice}, or OWNER/MODEL on the hub.")
    from huggingface_hub import snapshot_download

    from manymatch.model.checkpoint import FILES

    repository, _, revision = name.partition("@")
    try:
        folder = snapshot_download(
            repository,
            revision=revision or None,
            allow_patterns=FILES,
            local_files_only=local_files_only,
        )
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{name}: neither a folder nor available from the hub ({first_line(error)}). {advice}."
        ) from None
    return Path(folder)


def local_copy(name: str) -> Path | None:
    """The folder of a packaged model, or of a hub model in the cache of this machine; else None."""
    if name in packaged():
        return packaged()[name]
    with suppress(CheckpointError):
        return download_model(name, local_files_only=True)
    return None


def upload_model(folder: Path, name: str, private: bool) -> str:
    """Upload the model in `folder` to the hub as `name`; return its address.

    Raises:
        CheckpointError: the name is not valid, or the hub refuses the model or does not answer.
    """
    if not _NAME.fullmatch(name) or "@" in name:
        raise CheckpointError(f"{name}: not a name on the hub. Write OWNER/MODEL.")
    from huggingface_hub import HfApi

    from manymatch.model.checkpoint import FILES

    hub = HfApi()
    try:
        hub.create_repo(name, private=private, exist_ok=True)
        commit = hub.upload_folder(repo_id=name, folder_path=folder, allow_patterns=FILES)
    except Exception as error:  # the hub's client passes errors of other libraries on
        raise CheckpointError(f"{name}: not uploaded to the hub: {first_line(error)}") from None
    return commit.commit_url
