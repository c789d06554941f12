"""Tiny text models and two-tower models of transformers with random weights and tokenisers of their
own, saved into folders."""

import json

import hub_models
import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from manymatch.networks.encoders.hub_text import HubTextEncoder, HubTextSettings

TEXTS = [
    "A big red dog runs, and a cat sleeps beside the boat.",
    "two birds",
    "the dog's t-shirt is blue; it isn't red!",
    "Ein Hund läuft über die Wiese",
    "鳥が飛ぶ",
    "a dog " * 30,
]
_SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
}
_KINDS = {
    "bert": (models.WordPiece, ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"]),
    "bytes": (models.BPE, ["<s>", "</s>", "<pad>", "<unk>", "<mask>"]),
    "clip": (models.BPE, ["<|startoftext|>", "<|endoftext|>"]),
    "sentences": (models.Unigram, ["<s>", "</s>", "<pad>", "<unk>", "<mask>"]),
    "t5": (models.Unigram, [None, "</s>", "<pad>", "<unk>"]),
}
"""Tokeniser -> its model, and the pieces before and behind a text, of padding, unknown, masked."""


def tokenizer(kind):
    """A tokeniser that has learnt `TEXTS`."""
    model, named = _KINDS[kind]
    first, last, pad, unknown, mask = [*named, *[None] * (5 - len(named))]
    special = [piece for piece in named if piece]
    if kind == "bert":
        made = Tokenizer(model(unk_token=unknown))
        made.normalizer, made.pre_tokenizer = (
            normalizers.BertNormalizer(),
            pre_tokenizers.BertPreTokenizer(),
        )
        trainer = trainers.WordPieceTrainer(vocab_size=90, special_tokens=special)
    elif kind in ("bytes", "clip"):
        ending = {"end_of_word_suffix": "</w>"} if kind == "clip" else {}
        made = Tokenizer(model(**ending))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        if kind == "clip":
            made.normalizer = normalizers.Lowercase()
            made.pre_tokenizer = pre_tokenizers.Sequence(
                [pre_tokenizers.Whitespace(), made.pre_tokenizer]
            )
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=340,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            **ending,
        )
    else:
        made = Tokenizer(model())
        made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token=unknown)
    made.train_from_iterator(TEXTS, trainer)
    pieces = [(piece, made.token_to_id(piece)) for piece in special]
    around = f"{first} $A {last}" if first else f"$A {last}"
    made.post_processor = processors.TemplateProcessing(single=around, special_tokens=pieces)
    length = {"clip": 20}.get(kind, 30)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token=first,
        eos_token=last,
        pad_token=pad or last,
        unk_token=unknown or last,
        mask_token=mask,
        model_max_length=length,
    )


FAMILIES = {
    "bert": ("Bert", "bert", _SIZES),
    "roberta": ("Roberta", "bytes", _SIZES),
    "distilbert": (
        "DistilBert",
        "bert",
        {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 24, "max_position_embeddings": 40},
    ),
    "mpnet": ("MPNet", "bert", _SIZES),
    "xlm-roberta": ("XLMRoberta", "sentences", _SIZES),
    "electra": ("Electra", "bert", _SIZES | {"embedding_size": 8}),
    "deberta-v2": (
        "DebertaV2",
        "sentences",
        _SIZES
        | {
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
        },
    ),
    "modernbert": (
        "ModernBert",
        "bytes",
        _SIZES | {"global_attn_every_n_layers": 2, "local_attention": 8},
    ),
    "qwen3": ("Qwen3", "bytes", _SIZES | {"num_key_value_heads": 2, "head_dim": 8}),
    "t5": ("T5", "t5", {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 3, "num_heads": 2}),
    "mt5": ("MT5", "t5", {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 3, "num_heads": 2}),
}
"""Model type -> name of its classes, its tokeniser, and its settings."""
TOWERS = {
    "clip": ("CLIP", "clip", {"projection_dim": 12}),
    "siglip": ("Siglip", "t5", {}),
    "chinese_clip": ("ChineseCLIP", "bert", {"projection_dim": 12}),
    "altclip": ("AltCLIP", "sentences", {"projection_dim": 12}),
    "align": ("Align", "bert", {"projection_dim": 16}),
}
"""The same for two-tower models."""


def save(folder, family, recipe=hub_models.CROP):
    """Save a model with its tokeniser; return the folder."""
    name, kind, sizes = (FAMILIES | TOWERS)[family]
    words = tokenizer(kind)
    ids = {
        "vocab_size": len(words),
        "pad_token_id": words.pad_token_id,
        "bos_token_id": words.bos_token_id,
        "eos_token_id": words.eos_token_id,
    }
    settings = sizes | ids
    if family in TOWERS:
        text = _SIZES | ids
        if family == "siglip":
            text |= {"max_position_embeddings": 30, "projection_size": 16}
        if family == "altclip":
            text |= {"project_dim": 16}
        vision = dict(hub_models._VIT)
        if family == "align":
            vision = {
                "width_coefficient": 0.05,
                "depth_coefficient": 0.1,
                "hidden_dim": 16,
                "image_size": 32,
            }
        settings = sizes | {"text_config": text, "vision_config": vision}
    config = getattr(transformers, f"{name}Config")(**settings)
    torch.manual_seed(1)
    model = getattr(
        transformers,
        f"{name}{'EncoderModel' if kind == 't5' and family not in TOWERS else 'Model'}",
    )(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # also norms and biases, which begin as 1 and 0
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    (folder / hub_models.PROCESSOR).write_text(json.dumps(recipe))
    return folder


def built(folder, train="none", **given):
    """The encoder of the text model in `folder`, in evaluation mode."""
    torch.manual_seed(0)
    settings = HubTextSettings(model=str(folder), train=train, **given)
    return HubTextEncoder(settings, settings.vocabulary()).eval()
