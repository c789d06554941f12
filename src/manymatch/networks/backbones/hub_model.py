"""Models of transformers that read pictures or texts, from a folder or the Hugging Face hub.

The files may come from anybody. Weights are read from safetensors alone, no code of a repository
runs, and a configuration that names code, kernels or quantisation is refused.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

from manymatch.util.errors import ConfigError, DataError, first_line
from manymatch.util.files import sha256
from manymatch.util.json_file import read_object
from manymatch.util.regular_file import open_regular

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
_FILES = [CONFIG, *PROCESSORS, WEIGHTS, "model-*.safetensors", INDEX]
TOKENIZER = ("tokenizer.json", "vocab.txt", "vocab.json")
TEXT_FILES = [*_FILES, *TOKENIZER, "merges.txt", "tokenizer_config.json", "special_tokens_map.json"]
_MOST_BYTES = 2**23
"""Limit of a JSON file. The index of a large model has about 200 KB."""
_UNSUPPORTED = frozenset(
    ["kernel_config", "quantization_config", "transformers_weights", "use_pretrained_backbone"]
)
"""Keys of a configuration by which transformers reads further files or runs other code."""
_KERNELS, _OWN = ("attn_implementation", "experts_implementation"), (None, "eager", "sdpa")
"""Keys whose other values can stand for kernels, which are code from the hub."""
_COUNTS = ("layers", "layer", "depths", "depth", "blocks", "groups", "experts")
_MOST = {**dict.fromkeys(_COUNTS, 1000), "num_labels": 100_000}
"""Ending of a key that says how many parts or labels a network has -> the largest number."""
_TRAINED_ELSEWHERE = ("pooler.", "pooler_")
"""Weights that a classifier's checkpoint lacks: `AutoModel` gives its network a pooler."""
_VIDEOS = "it reads videos. Name a model of pictures"
_REFUSED = {
    "siglip2": "it reads patches of pictures of any shape. Name a SigLIP 2 of fixed size",
    "clipseg": "its vectors are made for segmentation. Name the CLIP that it is made of",
    "timm_backbone": "it needs the package timm. Name the model in transformers' own form",
    "timm_wrapper": "it needs the package timm. Name the model in transformers' own form",
    "vit_mae": "it hides a random 75% of each picture. Name another model",
    **dict.fromkeys(("timesformer", "videomae", "vivit", "vjepa2"), _VIDEOS),
}
"""Model type -> why its features cannot be used."""


@dataclass(frozen=True)
class HubModel:
    """An opened model.

    Attributes:
        name: the folder, or NAME@COMMIT of the hub.
        folder: the folder with the files.
        weights_sha256: the hash of the file of weights, or of all their names and hashes.
        network: in float32, in evaluation mode.
        missing: the weights that the file lacks, which are random. Only a pooler may lack weights.
    """

    name: str
    folder: Path
    weights_sha256: str
    network: "PreTrainedModel"
    missing: frozenset[str]


@contextmanager
def quiet() -> Iterator[None]:
    """Transformers prints nothing within the block."""
    from transformers import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        logging.enable_progress_bar()


@quiet()  # see `lacking`
def open_model(name: str, texts: bool = False, detects: bool = False) -> HubModel:
    """Open the model `name`, a folder or NAME@REVISION on the hub, which reads pictures or `texts`,
    or `detects` objects.

    The hub is asked once: afterwards the files of the cache are used. Without a revision, the
    first copy stays.

    Raises:
        ConfigError: there is no such model, or it cannot be used; one line says why.
    """
    import transformers

    folder, resolved = model_folder(name, TEXT_FILES if texts else _FILES)
    config = checked_config(folder)
    identity, size = _identity(folder)
    arguments: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        described = transformers.AutoConfig.from_pretrained(folder, **arguments)
        if detects and type(described) not in transformers.MODEL_FOR_OBJECT_DETECTION_MAPPING:
            raise ConfigError(f"{folder}: '{config['model_type']}' is no detector of objects")
        kind = transformers.AutoModelForObjectDetection if detects else auto_class(described, texts)
        with torch.device("meta"):
            empty = kind.from_config(described, trust_remote_code=False)
        tower = getattr(empty, "text_model" if texts else "vision_model", empty)
        wanted, what = ("input_ids", "texts alone") if texts else ("pixel_values", "pictures")
        if tower.main_input_name != wanted or (texts and tower.config.is_encoder_decoder):
            raise ConfigError(f"{folder}: '{config['model_type']}' is no model of {what}. Name one")
        parameters = sum(parameter.numel() for parameter in empty.parameters())
        if parameters > size:  # before memory is taken for them
            raise ConfigError(
                f"{folder / CONFIG}: a network of {parameters:,} parameters, but the weights have "
                f"{size:,} bytes. Name a folder whose files belong to one model"
            )
        network, report = kind.from_pretrained(
            folder,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            **arguments,
        )
    except ConfigError:
        raise
    except Exception as error:  # a model's own code raises almost anything on a wrong configuration
        raise ConfigError(
            f"{folder}: cannot be opened as '{config['model_type']}' ({first_line(error)}). Name a "
            "folder whose files belong to one model"
        ) from None
    lacking = sorted(
        key for key in report["missing_keys"] if not any(part in key for part in _TRAINED_ELSEWHERE)
    )
    if lacking or report["mismatched_keys"]:
        what = lacking[0] if lacking else report["mismatched_keys"]
        raise ConfigError(
            f"{folder}: the weights lack parts of the network, such as {what}. Name a folder whose "
            "files belong to one model"
        )
    return HubModel(resolved, folder, identity, network.eval(), frozenset(report["missing_keys"]))


def model_folder(
    name: str, files: Sequence[str] = _FILES, needed: Sequence[str] = (CONFIG,)
) -> tuple[Path, str]:
    """The folder with the files of the model `name`, and its name with the hub's commit.

    Args:
        name: a folder or NAME@REVISION on the hub.
        files: the patterns of the files that are fetched. Code is never fetched.
        needed: a copy in the cache is used if it has weights and one of these files.

    Raises:
        ConfigError: there is no such model, or the hub cannot be reached or refuses.
    """
    if Path(name).is_dir():
        return Path(name), name
    repository, _, revision = name.partition("@")
    for local in (True, False):
        try:
            folder = Path(
                snapshot_download(
                    repository,
                    revision=revision or None,
                    allow_patterns=list(files),
                    local_files_only=local,
                )
            )
            whole = _weight_files(folder) and any((folder / file).is_file() for file in needed)
            if not local or whole:
                return folder, f"{repository}@{folder.name}"
        except GatedRepoError:
            fault = "the hub asks for a consent. Accept its conditions there, and set HF_TOKEN"
        except RevisionNotFoundError:
            fault = f"the hub has no revision '{revision}' of it. Correct the part after @"
        except RepositoryNotFoundError:
            fault = "neither a folder nor a model that the hub shows. Correct the name"
        except (OSError, ValueError) as error:
            fault = (
                f"neither a folder nor available from the hub ({first_line(error)}). Correct the "
                "name, or connect to the network"
            )
    raise ConfigError(f"model '{name}': {fault}")


def checked_config(folder: Path) -> dict[str, Any]:
    """The content of the configuration, from which a network may be built.

    Raises:
        ConfigError: the configuration is missing, too large or names what cannot be used.
    """
    config = read_bounded(folder / CONFIG)
    check_config(config, folder / CONFIG)
    return config


def check_config(config: dict[str, Any], path: Path) -> None:
    """Check the configuration in the file `path`; see `checked_config`."""
    folder, kind = path.parent, config.get("model_type")
    if not isinstance(kind, str):
        raise ConfigError(f"{path}: no 'model_type'. Name a model in transformers' form")
    if kind in _REFUSED:
        raise ConfigError(f"{folder}: '{kind}' cannot be used, because {_REFUSED[kind]}")
    from transformers import CONFIG_MAPPING

    if kind not in CONFIG_MAPPING:
        reason = (
            "needs the code of its repository, which never runs here"
            if "auto_map" in config
            else "is unknown to this version of transformers"
        )
        raise ConfigError(f"{folder}: the model type '{kind}' {reason}. Name another model")
    for key, value in _members(config):
        kernel = key.strip("_").startswith(_KERNELS) and value not in _OWN
        asks_hub = key == "backbone" and isinstance(value, str)  # also in a folder
        if kernel or asks_hub or (key in _UNSUPPORTED and value):
            raise ConfigError(f"{path}: '{key}' is not supported. Name the model without it")
        most = next((most for ending, most in _MOST.items() if key.endswith(ending)), None)
        numbers = value if isinstance(value, list) else [value]
        if most and any(isinstance(one, int | float) and one > most for one in numbers):
            raise ConfigError(f"{path}: '{key}' is above {most}. Name another model")


def auto_class(described: Any, texts: bool) -> Any:
    """The class of transformers that opens a model; of T5 and its kin only the encoder is read."""
    from transformers import MODEL_FOR_TEXT_ENCODING_MAPPING, AutoModel, AutoModelForTextEncoding

    has_encoder = texts and type(described) in MODEL_FOR_TEXT_ENCODING_MAPPING
    return AutoModelForTextEncoding if has_encoder else AutoModel


def read_bounded(path: Path) -> dict[str, Any]:
    """The object in a small JSON file of a stranger.

    Raises:
        ConfigError: the file is missing, too large or not JSON.
    """
    try:
        with open_regular(path) as file:
            if len(file.read(_MOST_BYTES + 1)) > _MOST_BYTES:
                raise ConfigError(f"{path}: larger than {_MOST_BYTES:,} bytes. Name another model")
        return read_object(path)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file. Name a folder or a model of the hub with the file"
        ) from None
    except DataError as error:
        raise ConfigError(f"{error}. Name another model") from None


def _members(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys and values of `value` and of all objects in it."""
    waiting: list[Any] = [value]
    while waiting:  # no recursion: a stranger's lists may be nested deeply
        part = waiting.pop()
        if isinstance(part, dict):
            yield from part.items()
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _weight_files(folder: Path) -> list[Path]:
    """The safetensors files of the model; none if one is missing."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        return []
    places = read_bounded(folder / INDEX).get("weight_map")
    names = sorted(set(map(str, places.values()))) if isinstance(places, dict) else []
    if any(PurePosixPath(name).name != name or not name.endswith(".safetensors") for name in names):
        raise ConfigError(f"{folder / INDEX}: names a file elsewhere. Name another model")
    files = [folder / name for name in names]
    return files if all(file.is_file() for file in files) else []


def _identity(folder: Path) -> tuple[str, int]:
    """The hash of the weights, and the bytes of their files."""
    files = _weight_files(folder)
    if not files:
        pickled = any(folder.glob("pytorch_model*.bin"))
        raise ConfigError(
            f"{folder}: no complete {WEIGHTS}"
            + (", only a pickle (.bin), which is never read" if pickled else "")
            + ". Name a folder or a revision with safetensors"
        )
    size = sum(file.stat().st_size for file in files)
    if len(files) == 1:
        return sha256(files[0]), size
    lines = "".join(f"{file.name} {sha256(file)}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest(), size
