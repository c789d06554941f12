"""What of a pretrained network of transformers learns: nothing, the last layers, LoRA, or all."""

from typing import Annotated, Any

from pydantic import Field
from torch import nn

from manymatch.config.preset import Count, Positive
from manymatch.config.strict import Strict
from manymatch.networks.layers.lora import add_lora
from manymatch.util.errors import ConfigError


class Learning(Strict):
    """What of a network learns."""

    train: Annotated[str, Field(pattern=r"^(none|all|lora|last [1-9]\d{0,2})$")] = "all"
    """`none`: nothing learns, and the network's dropout is off. `last 2`: the last two layers and
    the norms behind them. `all`: the whole network. `lora`: a product of two narrow matrices beside
    each linear layer of the stack (LoRA). A layer of a network with stages is a stage."""
    rank: Count = 8
    """LoRA: the number of columns of the narrow matrices."""
    alpha: Positive = 16.0
    """LoRA: the product is multiplied by alpha / rank."""


def set_learning(network: Any, settings: Learning) -> None:
    """Freeze the parameters of `network` that do not learn, or add LoRA.

    Raises:
        ConfigError: the network has no such layers.
    """
    train = settings.train
    if train != "all":
        network.requires_grad_(False)
    if train == "lora":
        add_lora(layer_stack(network), settings.rank, settings.alpha)
    elif train.startswith("last"):
        thaw_last(network, int(train.removeprefix("last ")))


def layer_stack(
    network: Any, key: str = "train", mend: str = "Set train: all or none"
) -> nn.ModuleList:
    """The layers of a transformer, or the stages of a network whose layers are in stages.

    Args:
        key: the setting that needs the layers, for messages, as is `mend`.

    Raises:
        ConfigError: there is no list of as many layers as the configuration says, or several lists
            hold parts of each layer, as in XLM.
    """
    config = network.config
    depth = getattr(config, "num_hidden_layers", None) or len(getattr(config, "depths", ()))
    for part in network.modules():  # a list inside a layer comes later
        lists = [child for child in part.children() if isinstance(child, nn.ModuleList)]
        stacks = [child for child in lists if len(child) == depth]
        if len(stacks) == 1:
            return stacks[0]
        if stacks:
            break
    raise ConfigError(f"{key}: '{config.model_type}' has no list of whole layers. {mend}")


def thaw_last(network: Any, count: int) -> None:
    """Let the last `count` layers and the norms behind them learn."""
    stack = layer_stack(network)
    if count > len(stack):
        raise ConfigError(f"train: last {count}, but the model has {len(stack)} layers. Lower it")
    stack[-count:].requires_grad_(True)
    order, members = [*network.modules()], {*stack.modules()}
    end = 1 + max(place for place, part in enumerate(order) if part in members)
    for part in order[end:]:
        if "norm" in type(part).__name__.lower():
            part.requires_grad_(True)


def parameter_depths(network: Any) -> dict[nn.Parameter, int]:
    """How far each parameter is from the end: 0 behind the layers, 1 in the last one, and so on.

    Embeddings outside the layers are before them, wherever the network registers them (DeBERTa's
    and MPNet's relative positions).

    Raises:
        ConfigError: the network has no list of whole layers.
    """
    key = "training.parameter_groups: layer_decay"
    stack, parameters = layer_stack(network, key, "Leave layer_decay out"), [*network.parameters()]
    count = len(stack)
    depths = {p: count - n for n, layer in enumerate(stack) for p in layer.parameters()}
    places = [place for place, parameter in enumerate(parameters) if parameter in depths]
    before = dict.fromkeys(parameters[: places[0]], count + 1)
    embeddings = (part for part in network.modules() if isinstance(part, nn.Embedding))
    before |= {p: count + 1 for part in embeddings for p in part.parameters()}
    return dict.fromkeys(parameters, 0) | before | depths
