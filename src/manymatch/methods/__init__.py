"""The methods: every module of this folder is one, and its name is the method's.

What methods share stands in the package `shared`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manymatch.config.names import method_names
from manymatch.config.schedule import check_schedule
from manymatch.config.strict import Strict, validate
from manymatch.util.arguments import checked
from manymatch.util.errors import ConfigError
from manymatch.util.packages import importing, registered

if TYPE_CHECKING:
    from manymatch.batch.vocabulary import Vocabulary
    from manymatch.batch.wordpieces import AnyVocabulary
    from manymatch.config.preset import Preset
    from manymatch.methods.shared.method import Method

METHODS = {name: f"manymatch.methods.{name}" for name in method_names()}
"""Method -> its module."""
_OF_GRAPHS = (
    "object_drop",
    "attribute_drop",
    "relation_drop",
    "phrase_word_mask",
    "phrase_word_delete",
)
"""The augmentation of scene graphs."""


@checked
def entry_point(name: str, where: str = "") -> str:
    """The module of the method `name`, which may be one of another installed package. `where`
    begins a message.

    Raises:
        ConfigError: no method has this name; the message names the nearest one.
    """
    return registered("methods", name, METHODS, f"{where}method").partition(":")[0]


def method_class(name: str, where: str = "") -> type[Method]:
    """The class of the method `name`, the only `Method` that its module defines. The module is
    imported by this call."""
    place = entry_point(name, where)
    with importing(place, f"{where}method '{name}'"):
        module = import_module(place)
    from manymatch.methods.shared.method import Method

    defined = (one for one in vars(module).values() if isinstance(one, type))
    classes = [
        one for one in defined if issubclass(one, Method) and one.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise ConfigError(
            f"method '{name}': {module.__name__} defines {len(classes)} subclasses of Method. "
            "Define one in this module"
        )
    return classes[0]


def check_model(name: str, settings: dict[str, Any], preset: Path | None = None) -> Strict:
    """The mapping `model:` of a preset as the settings of the method `name`.

    Raises:
        ConfigError: no method has this name, or a setting is wrong. The message names the file of
            the `preset`.
    """
    where = f"{preset}: " if preset else ""
    return validate(
        method_class(name, where).Settings, settings, f"{where}model of method '{name}'"
    )


def check_read(preset: Preset, where: str = "") -> None:
    """Refuse settings of a preset that nothing reads. `where` begins a message.

    Raises:
        ConfigError: a key belongs to another schedule, or is an augmentation of scene graphs, which
            the method does not read.
    """
    check_schedule(preset.training.schedule, where)
    for key in _OF_GRAPHS:
        if (
            getattr(preset.augmentation, key)
            and not method_class(preset.method, where).reads_graphs
        ):
            raise ConfigError(
                f"{where}augmentation.{key}: the method '{preset.method}' reads no scene graphs, "
                "so nothing would change. Set it to 0"
            )


def vocabulary_of(
    name: str, settings: dict[str, Any], words: Vocabulary, captions: Iterable[str] = ()
) -> AnyVocabulary:
    """The vocabulary that numbers captions for the method `name`: the `words` of the training
    captions, or wordpieces. A method whose word vectors are not learned also takes the words of
    `captions`, the captions of all splits."""
    return method_class(name).vocabulary(check_model(name, settings), words, captions)


def build_method(
    name: str, settings: dict[str, Any], *, vocabulary: AnyVocabulary, feature_width: int
) -> Method:
    """The method `name` with fresh weights, which torch's seed determines.

    Args:
        settings: the mapping `model:` of a preset.
        vocabulary: see `vocabulary_of`.
        feature_width: F of the image features `(n, R, F)`.
    """
    return method_class(name)(check_model(name, settings), vocabulary, feature_width)
