"""Protocols of evaluation. A module lists its protocols in `PROTOCOLS`, and `suite` finds them."""

from pkgutil import iter_modules


def protocol_modules() -> list[str]:
    """The names of the modules in this folder, which are entries of `util.code_hash`: what an
    evaluation computes depends on them."""
    return [f"{__name__}.{module.name}" for module in iter_modules(__path__)]
