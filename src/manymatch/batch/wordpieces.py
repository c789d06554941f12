"""A BERT's wordpieces, and reading the vocabulary of any trained model."""

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from manymatch.batch.pieces import Pieces, Special
from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.strict import validate
from manymatch.util.errors import ConfigError, DataError, repeated
from manymatch.util.files import write_json
from manymatch.util.json_file import read_object
from manymatch.util.regular_file import read_regular

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
NETWORK = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "initializer_range",
)
"""The keys of a BERT's `config.json` that define the network."""

_MOST_BYTES = 2**27
"""The largest size of the file of a vocabulary. A quarter of a million pieces take 35 MB."""


class WordPieces(Pieces):
    """A BERT's wordpieces. `network` holds the keys `NETWORK` of its configuration."""

    def _special(self, pieces: dict[str, int]) -> Special:
        if not isinstance(self._tokenizer.model, WordPiece):
            raise ValueError("not a wordpiece tokeniser")
        if missing := [piece for piece in SPECIAL if piece not in pieces]:
            raise ValueError(f"the special piece {missing[0]} is missing")
        pad, unknown, first, last, mask = (pieces[piece] for piece in SPECIAL)
        length = self.network.get("max_position_embeddings", 512)
        named = {"pad": pad, "unknown": unknown, "mask": mask, "length": length}
        return validate(Special, {**named, "first": [first], "last": [last]}, "config.json")

    @classmethod
    def from_folder(cls, folder: Path) -> "WordPieces":
        """Read the wordpieces of the BERT in `folder`, which has `config.json`, and
        `tokenizer.json` or `vocab.txt`.

        Raises:
            ConfigError: the wordpieces are unusable, or the network is not a BERT.
            DataError: a JSON file is missing or damaged.
        """
        config = read_object(folder / "config.json")
        if config.get("model_type") != "bert":
            raise ConfigError(
                f"{folder}: a network of type '{config.get('model_type')}', not a BERT"
            )
        network = {key: config[key] for key in NETWORK if key in config}
        tokenizer = folder / "tokenizer.json"
        try:
            text = tokenizer.read_text("utf-8") if tokenizer.is_file() else _tokenizer_text(folder)
            return cls(text, network, folder)
        except (OSError, TypeError, ValueError, ConfigError) as error:
            raise ConfigError(f"{folder}: the wordpieces cannot be used: {error}") from None

    def save(self, path: Path) -> None:
        """Write the JSON file that `load_vocabulary` reads, completely or not at all."""
        write_json(path, {"wordpieces": json.loads(self._json), "network": self.network})

    def shown(self, ids: Sequence[int]) -> list[str]:
        """The wordpieces with these ids."""
        return [self.words[number] for number in ids]


AnyVocabulary = Vocabulary | Pieces
"""What maps captions to ids."""


def load_vocabulary(path: Path) -> AnyVocabulary:
    """Load the vocabulary or the pieces in the file `path` of a trained model; a `DataError` if the
    file is missing or damaged."""
    try:
        value = read_object(path, _MOST_BYTES)
        if not {"wordpieces", "pieces"} & value.keys():
            return Vocabulary.from_json(value, path, trained=True)
        network = dict(value["network"])
        if "wordpieces" in value:
            return WordPieces(json.dumps(value["wordpieces"]), network)
        special = validate(Special, value["special"], "special")
        return Pieces(json.dumps(value["pieces"]), network, None, special)
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        raise DataError(
            f"{path}: cannot be read as wordpieces ({error}). Train the model again"
        ) from None
    except DataError as error:
        raise DataError(f"{error}. Train the model again") from None


def _tokenizer_text(folder: Path) -> str:
    """Return the tokeniser of a folder with `vocab.txt`; it is lower-casing by default."""
    lines = read_regular(folder / "vocab.txt").decode().replace("\r\n", "\n")
    pieces = lines.rstrip("\n").split("\n")
    settings = folder / "tokenizer_config.json"
    lowercase = not settings.is_file() or read_object(settings).get("do_lower_case", True)
    ids = {piece: number for number, piece in enumerate(pieces)}
    if len(ids) < len(pieces):
        twice = repeated(pieces)
        raise DataError(f"{folder / 'vocab.txt'}: the piece {twice!a:.60} occurs twice")
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=bool(lowercase))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    text: str = tokenizer.to_str()
    return text
