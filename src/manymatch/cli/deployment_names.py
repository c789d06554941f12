"""`prefect deployment run train-cora --watch`: what Prefect's command lacks.

A plug-in of Prefect (entry point in the group `prefect.plugins`, switched on in `prefect.toml`). In
the command `prefect deployment run`, and nowhere else,

- the client looks a name without "/" up among all deployments;
- a new run is named after what it runs, `train-cora scenes/cora 1`, unless it is given a name;
- `--watch` shows the progress of the run (`run_watch.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from prefect.plugins import HookContext, register_hook

from manymatch.cli.run_watch import watch_flow_run
from manymatch.util.errors import first_line, nearest
from manymatch.util.progress import say

READ, CREATE = "read_deployment_by_name", "create_flow_run_from_deployment"
"""The methods of Prefect's client that are replaced."""
_ALL = "all"
"""The value of the parameter `dataset` that names no data set."""


@register_hook
def setup_environment(*, ctx: HookContext) -> None:
    """Called by Prefect when any of its commands starts.

    If Prefect lacks one of the functions, nothing is replaced and a line says so.
    """
    if ("deployment", "run") not in zip(sys.argv, sys.argv[1:], strict=False):
        return
    from prefect.cli import deployment
    from prefect.client.orchestration import PrefectClient

    replaced = [(PrefectClient, READ), (PrefectClient, CREATE), (deployment, "watch_flow_run")]
    if missing := [name for owner, name in replaced if not hasattr(owner, name)]:
        say(
            f"Prefect has no '{missing[0]}': give FLOW/DEPLOYMENT as name, and see runs on the page"
        )
        return
    for name, wrapper in ((READ, resolving), (CREATE, naming)):
        setattr(PrefectClient, name, wrapper(getattr(PrefectClient, name)))
    deployment.watch_flow_run = watch_flow_run


def run_title(deployment: str, parameters: Mapping[str, Any]) -> str:
    """What a run runs: `train-cora scenes/cora`, `prepare-data scenes`, `report`."""
    names = [str(parameters[key]) for key in ("dataset", "preset") if parameters.get(key)]
    return " ".join([deployment, "/".join(name for name in names if name != _ALL)]).strip()


def earlier_runs(title: str) -> dict[str, Any]:
    """The filter of the runs that have this title."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName

    return {"flow_run_filter": FlowRunFilter(name=FlowRunFilterName(like_=f"{title} "))}


def naming(inner: Callable[..., Any]) -> Callable[..., Any]:
    """The creation of a run that gets its title and a number as its name."""

    async def create(self: Any, deployment_id: Any, **options: Any) -> Any:
        if options.get("name") is None:
            deployment = await self.read_deployment(deployment_id)
            schema = (deployment.parameter_openapi_schema or {}).get("properties", {})
            values = {key: field.get("default") for key, field in schema.items()}
            values |= deployment.parameters | (options.get("parameters") or {})
            title = run_title(deployment.name, values)
            number = await self.count_flow_runs(**earlier_runs(title)) + 1
            options["name"] = f"{title} {number}"
        return await inner(self, deployment_id, **options)

    return create


def resolving(inner: Callable[..., Any]) -> Callable[..., Any]:
    """The look-up of a deployment that also knows a name without its flow."""

    async def read(self: Any, name: str) -> Any:
        return await inner(self, name if "/" in name else await _full_name(self, name))

    return read


async def _full_name(client: Any, name: str) -> str:
    """FLOW/DEPLOYMENT of the one deployment called `name`; else the command ends with one line."""
    import httpx
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName

    # A server gives out so many deployments at a time: those of the name are asked for.
    called_so = DeploymentFilter(name=DeploymentFilterName(any_=[name]))
    try:
        found = await client.read_deployments(deployment_filter=called_so)
        flows = [(await client.read_flow(deployment.flow_id)).name for deployment in found]
        others = [] if found else await client.read_deployments()
    except httpx.ConnectError:
        raise SystemExit(f"error: no server at {client.api_url}; 'make serve' starts one") from None
    except (httpx.HTTPError, ValueError, ExceptionGroup) as error:
        # An invalid port raises a group of one exception.
        cause = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        if isinstance(cause, httpx.HTTPStatusError) and cause.response.status_code == 401:
            raise SystemExit(
                f"error: the server at {client.api_url} asks for a password. Run the command in "
                "the folder of 'make serve', without PREFECT_API_AUTH_STRING and PREFECT_PROFILE"
            ) from None
        raise SystemExit(
            f"error: {client.api_url} does not answer as Prefect's server does "
            f"({first_line(cause)}): see PREFECT_API_URL, or api.url in prefect.toml"
        ) from None
    full = sorted(f"{flow}/{name}" for flow in flows)
    if len(full) == 1:
        return full[0]
    if full:
        raise SystemExit(f"error: '{name}' is ambiguous, give one of: {', '.join(full)}")
    raise SystemExit(f"error: no deployment '{name}'{nearest(name, {o.name for o in others})}")
