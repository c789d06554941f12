"""Arguments of public functions: a wrong one is an error of one line that names the argument."""

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from manymatch.util.errors import ConfigError, DataError, first_line, memory_fault
from manymatch.util.files import storage_error

_P = ParamSpec("_P")
_T = TypeVar("_T")
_KINDS = {
    "str": "a text",
    "Path": "a path",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "None": "None",
    "Tensor": "a tensor",
    "Model": "a model",
    "Image.Image": "a picture",
    "tuple[int, int]": "two whole numbers",
    "tuple[str, str]": "two texts",
    "tuple[Tensor, Tensor]": "two tensors",
}
"""The annotations that are compared, and their meaning."""
_ELSEWHERE = ("CUDA error", "NCCL", "DataLoader worker")
"""Words of errors that no argument causes: a GPU reports them in a later call, and a process that
prepares batches interrupts any call when it dies."""
_SHAPE = r"\(((?:\w+, ?)*\w+,?)\)"
_Shape = tuple[str, ...]


def checked(
    function: Callable[_P, _T], *, pure: bool = False, text: str | None = None
) -> Callable[_P, _T]:
    """`function`, which compares its arguments with their annotations and documented shapes first.

    Args:
        pure: the arguments alone decide whether the function fails, so that each error of Python
            or torch becomes a `DataError`. Whole numbers are sizes and counts of 1 or more, other
            numbers are finite, and those that `text` calls "> 0" are.
        text: the docstring that describes the arguments; None: that of the function.

    Raises:
        ConfigError: an argument has another type, or a number is out of its range.
        DataError: a tensor does not have the shape that the docstring states.
        StorageError: a path of the arguments cannot be used.
    """
    signature = inspect.signature(function)
    kinds = {
        name: known
        for name, annotation in function.__annotations__.items()
        if set(known := annotation.split(" | ")) <= _KINDS.keys()
    }
    shapes = documented_shapes(function)
    positives = re.findall(r"^ +(\w+(?:, \w+)*): [^\n]*> 0", text or function.__doc__ or "", re.M)
    positive = {name for names in positives for name in names.split(", ")}

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        given = signature.bind(*args, **kwargs).arguments
        sizes: dict[str, int] = {}
        for name, value in given.items():
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            for one in value if several else (value,):
                if name in kinds and not any(_is(one, kind) for kind in kinds[name]):
                    expected = " or ".join(_KINDS[kind] for kind in kinds[name])
                    raise ConfigError(
                        f"{function.__qualname__}: {name} = {_shown(one)}: expected {expected}."
                    )
                if pure and (lacks := _other_range(one, name in positive)):
                    raise ConfigError(f"{function.__qualname__}: {name} = {_shown(one)}: {lacks}")
                if name in shapes and (lacks := _other_shape(one, shapes[name], sizes, several)):
                    raise DataError(f"{function.__qualname__}: {name} = {_shown(one)}: {lacks}")
        try:
            return function(*args, **kwargs)
        except OSError as error:
            raise storage_error(error) from error
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            if not pure or memory_fault(error) or any(text in str(error) for text in _ELSEWHERE):
                raise
            shown = ", ".join(f"{name} = {_shown(value)}" for name, value in given.items())
            raise DataError(
                f"{function.__qualname__}: the arguments do not fit ({first_line(error)}): {shown}"
            ) from error

    return call


def check_all(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Put `checked` functions in place of those that a package exports. Of a module's class, the
    constructor and the call are checked."""
    for name in names:
        one = namespace[name]
        if not isinstance(one, type):
            namespace[name] = checked(one, pure=True)
            continue
        if "__init__" in vars(one):
            one.__init__ = checked(one.__init__, pure=True, text=one.__doc__)  # type: ignore[misc]
        one.forward = checked(one.forward, pure=True)  # type: ignore[attr-defined]


def documented_shapes(function: Callable[..., Any]) -> dict[str, list[_Shape]]:
    """The shapes of the tensors among a function's arguments, as its docstring states them.

    The docstring says "`images (n, K, D)`", or "images: `(n, K, D)`" in its list of arguments; a
    pair of tensors has two shapes there. One name of an axis has one size in all arguments. The
    tensors of `*args` are compared one by one. Python without docstrings (-OO) compares no shapes.
    """
    names, text = inspect.signature(function).parameters, inspect.getdoc(function) or ""
    stated = [(name, [shape]) for name, shape in re.findall(rf"`(\w+) {_SHAPE}", text)]
    for listed, line in re.findall(r"^ +(\w+(?:, \w+)*): (.*)", text, re.M):
        stated += [(name, re.findall(f"`{_SHAPE}`", line)) for name in listed.split(", ")]
    counts = {
        name: 1 + str(one.annotation).startswith("tuple")
        for name, one in names.items()
        if re.search(r"Tensor|Mask", str(one.annotation))
    }
    return {
        name: [tuple(re.findall(r"\w+", shape)) for shape in shapes]
        for name, shapes in stated
        if len(shapes) == counts.get(name)
    }


def _other_range(value: object, positive: bool) -> str | None:
    """What is wrong with a number out of its range; None for other values."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    number = int(value) if isinstance(value, Integral) else float(value)
    if isinstance(number, int) and not positive:
        return "expected 1 or more" if number < 1 else None
    if positive and not number > 0:
        return "expected a number greater than 0"
    return None if isinstance(number, int) or math.isfinite(number) else "expected a finite number"


def _other_shape(
    value: object, shapes: list[_Shape], sizes: dict[str, int], alone: bool
) -> str | None:
    """What is wrong with the shape of a tensor or of a pair of tensors; None if nothing is. `sizes`
    of axes in the arguments before gets those of `value`, unless the value stands `alone`."""
    known = {} if alone else sizes
    tensors = value if isinstance(value, tuple | list) else [value]
    for one, axes in zip(tensors, shapes, strict=True):
        if not hasattr(one, "shape"):  # None, or a mask in another form
            continue
        shape = tuple(one.shape)
        before = [f"{axis} = {known[axis]}" for axis in axes if axis in known]
        fits = len(shape) == len(axes) and all(
            size == (int(axis) if axis.isdigit() else known.setdefault(axis, size))
            for axis, size in zip(axes, shape, strict=True)
        )
        if not fits:
            expected = f"expected the shape ({', '.join(axes)}{',' * (len(axes) == 1)})"
            return f"{expected} with {', '.join(before)}" if before else expected
    return None


def _is(value: object, kind: str) -> bool:
    """Whether a value is of a kind. Classes are known by name, because torch takes a second."""
    if kind == "None":
        return value is None
    if kind.startswith("tuple["):
        parts = kind[6:-1].split(", ")
        return (
            isinstance(value, tuple | list)
            and len(value) == len(parts)
            and all(map(_is, value, parts))
        )
    names = {base.__name__ for base in type(value).__mro__}
    if kind in ("int", "float") and "bool" not in names:
        return isinstance(value, Integral if kind == "int" else Real)
    return kind.rpartition(".")[2] in names


def _shown(value: object) -> str:
    """A value in a message; of an array or tensor, its type and shape."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__} {tuple(value.shape)} {value.dtype}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{type(value).__name__} {shown[:60]}..."
