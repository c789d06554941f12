"""`prefect deployment run train-cora`: a deployment by its own name, without its flow's.

A plug-in of Prefect (entry point in the group `prefect.plugins`, switched on in `prefect.toml`). In
the command `prefect deployment run`, and nowhere else, the client looks a name without "/" up among
all deployments. Where Prefect no longer has the method that is wrapped here, nothing is changed and
the command behaves as Prefect's own.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from prefect.plugins import HookContext, register_hook

from manymatch.system.errors import first_line, nearest

_METHOD = "read_deployment_by_name"


@register_hook
def setup_environment(*, ctx: HookContext) -> None:
    """Called by Prefect when any of its commands starts."""
    if ("deployment", "run") not in zip(sys.argv, sys.argv[1:], strict=False):
        return
    if not accept_bare_names(_client()):
        log = ctx.logger_factory(__name__)
        log.warning("this Prefect wants FLOW/DEPLOYMENT: its client has no %s", _METHOD)


def _client() -> type:
    from prefect.client.orchestration import PrefectClient

    return PrefectClient


def accept_bare_names(client: type) -> bool:
    """Make the class `client` find deployments by their own names; whether that was possible."""
    inner = getattr(client, _METHOD, None)
    if not inspect.iscoroutinefunction(inner):
        return False
    setattr(client, _METHOD, _resolving(inner))
    return True


def _resolving(inner: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(inner)
    async def read(self: Any, name: str) -> Any:
        if "/" not in name:
            name = await _full_name(self, name)
        return await inner(self, name)

    return read


async def _full_name(client: Any, name: str) -> str:
    """FLOW/DEPLOYMENT of the one deployment called `name`; else the command ends with one line."""
    import httpx
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName

    # A server gives out so many deployments at a time: those of the name are asked for.
    called_so = DeploymentFilter(name=DeploymentFilterName(any_=[name]))
    try:
        deployments = await client.read_deployments(deployment_filter=called_so)
        full = sorted(
            [
                f"{(await client.read_flow(deployment.flow_id)).name}/{name}"
                for deployment in deployments
            ]
        )
        others = [] if full else await client.read_deployments()
    except httpx.ConnectError:
        raise SystemExit(f"error: no server at {client.api_url}; 'make serve' starts one") from None
    except (httpx.HTTPError, ValueError, ExceptionGroup) as error:
        # A port that cannot be comes as a group of one.
        cause = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        reason = first_line(cause)
        raise SystemExit(
            f"error: {client.api_url} does not answer as Prefect's server does ({reason}): see "
            "PREFECT_API_URL, or api.url in prefect.toml"
        ) from None
    if len(full) == 1:
        return full[0]
    if full:
        raise SystemExit(f"error: '{name}' is ambiguous, give one of: {', '.join(full)}")
    raise SystemExit(f"error: no deployment '{name}'{nearest(name, {o.name for o in others})}")
