"""The parts of a method that `torch.compile` compiles, by the setting `training.compile`."""

import logging
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn

from manymatch.losses.pseudo_labels import Queue
from manymatch.methods.shared.method import Method
from manymatch.networks.encoders.bert import BertEncoder
from manymatch.networks.encoders.cnn import CNN
from manymatch.networks.encoders.scene_graph import SceneGraphEncoder
from manymatch.networks.pooling.gaussian import GaussianHead
from manymatch.networks.pooling.set_modules import SetModule
from manymatch.util.errors import ConfigError, first_line
from manymatch.util.progress import say

WORTH = 30_000
"""The number of steps from which `auto` compiles the loss on a GPU. A loss takes half a minute or
more to compile, and saves 0.2 to 2 ms a step (estimates, by the kernels of each method)."""


def compile_parts(
    method: Method,
    setting: bool | Literal["auto"],
    device: torch.device,
    steps: int,
    processes: int = 1,
    backend: str = "inductor",
) -> None:
    """Compile parts of `method` for training. Evaluation uses none of them.

    `True`: the loss, modules of sets and Gaussians, graph attention, BERT and CNNs. "auto": the
    loss of a training of `WORTH` or more steps on a GPU, else nothing. The loss of several
    `processes` is never compiled, because the processes exchange shares of it. A size that changes
    from batch to batch is a variable of one compiled function.

    Args:
        steps: the number of steps of the whole training.
        backend: the compiler that torch uses.
    """
    every = setting is True
    if not every and (not setting or device.type != "cuda" or steps < WORTH):
        return
    from torch import _logging  # the compiler takes a second to import

    _logging.set_logs(dynamo=logging.ERROR)  # functions that torch leaves as they are
    parts: list[tuple[Any, str]] = [(method, "loss")] if processes == 1 else []
    inside: set[nn.Module] = set()
    for module in method.modules() if every else ():
        if isinstance(module, CNN):
            parts.append((module.network, "forward"))
        elif isinstance(module, BertEncoder | GaussianHead):
            parts.append((module, "forward"))
            inside.update(module.modules())
        elif isinstance(module, SetModule) and module not in inside:
            parts.append((module, "_sets"))
        elif isinstance(module, SceneGraphEncoder):
            parts += [(module, "_two_steps"), (module, "_joint")]  # without the phrases' encoder
    for module in method.modules():
        if isinstance(module, Queue):  # each length of a queue that grows would be compiled anew
            module.push = torch.compiler.disable(module.push)  # type: ignore[method-assign]
    for owner, name in parts:
        title = f"{type(owner).__name__}.{name}"
        setattr(owner, name, _compiled(getattr(owner, name), title, every, backend))


def _compiled(
    function: Callable[..., Any], title: str, required: bool, backend: str
) -> Callable[..., Any]:
    """`function`, compiled for calls with gradients. If that fails, one line says so, and the
    function is called as it is."""
    compiled: Any = torch.compile(function, backend=backend)

    def call(*args: Any, **options: Any) -> Any:
        nonlocal compiled
        if compiled is None or not torch.is_grad_enabled():
            return function(*args, **options)
        from torch._dynamo.exc import TorchDynamoException
        from torch._functorch import config

        try:
            # The backward pass is compiled now, so that a failure can be answered now.
            with config.patch(force_non_lazy_backward_lowering=True):
                return compiled(*args, **options)
        except TorchDynamoException as fault:
            cause = first_line(getattr(fault, "inner_exception", fault))
            why = f"{title} cannot be compiled ({cause})"
            if required:
                raise ConfigError(
                    f"training.compile: {why}. Set training.compile: auto or false."
                ) from fault
            say(f"warning: training.compile: {why}. The training goes on without.")
            compiled = None
            return function(*args, **options)

    return call
