"""The text part of any model of transformers: its tokeniser, its network, its layers.

A trained model holds the weights, the configuration and the tokeniser, from which the network is
built again.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from manymatch.batch.pieces import Pieces, Special, make_sure
from manymatch.config.strict import validate
from manymatch.networks.backbones.hub_model import (
    CONFIG,
    TEXT_FILES,
    TOKENIZER,
    auto_class,
    check_config,
    checked_config,
    model_folder,
    open_model,
    quiet,
    read_bounded,
)
from manymatch.util.errors import ConfigError, first_line

_UNLIMITED = 2**20
"""A tokeniser without a limit of its own names a larger number."""
_USUAL_LENGTH = 512
_CLASS = "tokenizer_config.json"
_MOST_BYTES = 2**27
"""Limit of a file of a tokeniser."""


def hub_pieces(name: str, prompt: str = "{}") -> Pieces:
    """The pieces of the text model `name`, which lead to its network and weights.

    Args:
        name: a folder, or NAME@REVISION on the hub.
        prompt: each text takes the place of "{}".

    Raises:
        ConfigError: there is no such model, or its tokeniser cannot be used.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    folder, _ = model_folder(name, TEXT_FILES, TOKENIZER)
    config = checked_config(folder)
    for path in folder.glob("*.*"):
        whole = path.is_file() and path.stat().st_size <= _MOST_BYTES
        if path.suffix in (".json", ".txt") and not whole:
            raise ConfigError(
                f"{path}: no regular file of at most {_MOST_BYTES:,} bytes. Name another model"
            )
    arguments: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    is_siglip = config["model_type"] == "siglip"
    usual = "SiglipTokenizer" if is_siglip else None
    named = (folder / _CLASS).exists() and read_bounded(folder / _CLASS).get("tokenizer_class")
    is_plain = str(named or usual).startswith("SiglipTokenizer")
    # That class needs the package sentencepiece, and reads no tokenizer.json.
    loader: Any = PreTrainedTokenizerFast if is_plain else AutoTokenizer
    with quiet():
        try:
            tokenizer = loader.from_pretrained(folder, **arguments)
            backend = tokenizer.backend_tokenizer
            make_sure(backend)
            backend.no_padding()
            encoded = backend.encode("a")
            is_text = [not special for special in encoded.special_tokens_mask]
            start, end = is_text.index(True), len(is_text) - is_text[::-1].index(True)
            text = backend.to_str()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the code of hundreds of tokenisers, which may also panic
            raise ConfigError(
                f"{folder}: no tokeniser that can be used ({first_line(error)}). Name a folder "
                "or a model of the hub with tokenizer.json"
            ) from None
    with torch.device("meta"):
        network: Any = text_structure(config, folder / CONFIG)
    network = getattr(network, "text_model", network)
    pad = tokenizer.pad_token_id
    if pad is None:
        pad = getattr(network.config, "pad_token_id", None) or 0
    special = {
        "first": encoded.ids[:start],
        "last": encoded.ids[end:],
        "pad": pad,
        "unknown": tokenizer.unk_token_id,
        "mask": tokenizer.mask_token_id,
        "length": _length(network, tokenizer.model_max_length),
        "filled": tokenizer.padding_side if is_siglip else None,
        "cleaning": "plain" if is_plain else "lower" if is_siglip else "none",
        "prompt": prompt,
    }
    where = f"{folder}: the tokeniser"
    try:
        return Pieces(text, config, folder, validate(Special, special, where))
    except ValueError as error:
        raise ConfigError(f"{where}: {error}. Name another model") from None


def _length(network: Any, tokens: int) -> int:
    """The most pieces that a text model reads, of which its tokeniser allows `tokens`."""
    limits = [tokens, getattr(network.config, "max_position_embeddings", None)]
    for name, part in network.named_modules():
        if isinstance(part, nn.Embedding) and "position" in name:
            # RoBERTa and its kin count positions from the one behind the padding's.
            limits.append(
                part.num_embeddings - (-1 if part.padding_idx is None else part.padding_idx) - 1
            )
    known = [limit for limit in limits if isinstance(limit, int) and 0 < limit < _UNLIMITED]
    return min(known, default=_USUAL_LENGTH)


def text_network(pieces: Pieces) -> tuple[Any, str | None]:
    """The network that reads `pieces`: pretrained, with the hash of its weights, or fresh if a
    trained model's weights follow.

    Raises:
        ConfigError: the network cannot be used.
    """
    where, identity = pieces.pretrained or Path("vocabulary.json"), None
    if pieces.pretrained is None:
        network: Any = text_structure(pieces.network, where)
    else:
        model = open_model(str(where), texts=True)
        network, identity = model.network, model.weights_sha256
    tower = getattr(network, "text_model", network)
    length = pieces.special.length
    if (most := _length(tower, length)) < length:
        raise ConfigError(
            f"{where}: a network for texts of {most:,} pieces cannot read {length:,}. Name a "
            "folder whose files belong to one model"
        )
    rows = tower.get_input_embeddings().num_embeddings
    if len(pieces) > rows:
        raise ConfigError(
            f"{where}: a network of {rows:,} pieces cannot read the {len(pieces):,} of its "
            "tokeniser. Name a folder whose files belong to one model"
        )
    return network, identity


def text_structure(config: dict[str, Any], path: Path) -> nn.Module:
    """The network of texts that the configuration in the file `path` describes, with any weights.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    import transformers
    from transformers.initialization import no_init_weights

    check_config(config, path)
    try:
        described = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(config)
        with torch.device("meta"):  # the network of pictures takes no memory
            network: Any = auto_class(described, texts=True).from_config(described)
        with no_init_weights():  # drawing weights takes seconds, and a trained model's follow
            if not hasattr(network, "text_model"):
                whole: Any = type(network)(network.config)
                whole.tie_weights()
                return whole
            network.text_model = type(network.text_model)(network.text_model.config)
        keep_text_tower(network)
        for name, part in network.named_children():
            if name != "text_model":
                part.to_empty(device=torch.get_default_device())
    except Exception as error:  # a model's own code raises almost anything
        raise ConfigError(
            f"{path}: no network of texts ({first_line(error)}). Name another model"
        ) from None
    two_towers: nn.Module = network
    return two_towers


def keep_text_tower(towers: Any) -> None:
    """Remove all parts of a two-tower model but those that read texts."""
    for name, _ in [*towers.named_children()]:
        if not name.startswith("text_"):
            setattr(towers, name, None)
    for name, _ in [*towers.named_parameters(recurse=False)]:
        setattr(towers, name, None)
