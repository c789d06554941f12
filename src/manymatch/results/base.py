"""The base of all result files: reading with checks, writing, and where each kind of file lies."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from manymatch.util import files
from manymatch.util.errors import DataError, first_fault
from manymatch.util.regular_file import read_regular

Count = Annotated[int, Field(ge=1)]

EVALUATED = (
    "Run 'manymatch evaluate {dataset} {preset}' again; or, if the result is not that of a trained "
    "model, the 'manymatch score', 'rerank' or 'ensemble' that made it."
)
"""The remedy of the files that an evaluation writes."""
_MAX_BYTES = 256 * 1024**2
"""A larger file is not a result file, and is not read into memory."""


class Record(BaseModel):
    """A group of values in a result file. Unknown keys are kept."""

    model_config = ConfigDict(
        extra="allow", frozen=True, allow_inf_nan=False, populate_by_name=True
    )

    def to_json(self) -> dict[str, Any]:
        """The values as a JSON file holds them; values that nobody set are left out."""
        return self.model_dump(exclude_unset=True, by_alias=True)

    def numbers(self) -> dict[str, float]:
        """All numbers under dotted names: `i2t.r1`, `multi.t2i.map_at_r`."""
        return dict(_flattened(self.model_dump(exclude_none=True)))


class Result(Record):
    """A whole result file."""

    path: ClassVar[str]
    """Where a file of this kind lies below the folder `reports`. The parts in braces are also the
    names of fields, if the class has such fields."""
    remedy: ClassVar[str]
    """How to make a faulty file again: a sentence with the parts of `path` in braces."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read and check a file. It is a `DataError` if the file is missing or malformed, or if its
        content belongs to another path: one line with file, key, and how to make the file again."""
        keys = Path(cls.path).with_suffix("").parts
        parts = path.with_suffix("").absolute().parts[-len(keys) :]
        # The parts of the path by the names that `cls.path` gives them.
        pairs = zip(keys, parts, strict=True)
        names = {key[1:-1]: part for key, part in pairs if key.startswith("{")}
        remedy = cls.remedy.format(**names)
        try:
            result = cls.model_validate_json(read_regular(path, _MAX_BYTES))
        except FileNotFoundError:
            raise DataError(f"{path}: the file is missing. {remedy}") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise DataError(f"{path}: {first_fault(error)}. {remedy}") from None
        expected = {key: name for key, name in names.items() if key in cls.model_fields}
        actual = {key: getattr(result, key) for key in expected}
        if actual != expected:
            raise DataError(
                f"{path}: the content belongs to '{'/'.join(actual.values())}'. {remedy}"
            )
        return result

    @classmethod
    def read_all(cls, reports: Path) -> list[Self]:
        """All files of this kind below the folder `reports`, sorted by path."""
        return [cls.read(path) for path in cls.paths(reports)]

    @classmethod
    def paths(cls, reports: Path) -> list[Path]:
        """The files of this kind below the folder `reports`, sorted."""
        pattern = re.sub(r"\{\w+\}", "*", cls.path)
        return sorted(reports.glob(pattern), key=lambda path: path.with_suffix("").parts)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        files.write_json(path, self.to_json())


def _flattened(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        elif isinstance(value, int | float):
            yield prefix + key, value
