"""An automation of Prefect that reports runs which do not end well to a web address.

The address is in the variable MANYMATCH_WEBHOOK when `make serve` runs, because addresses often
hold secrets. The server keeps the address in its database. The message is JSON: `text`, as chat
services expect it, and `run`, `state` and `reason`.
"""

import os
from datetime import timedelta

import httpx
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import PrefectClient
from prefect.events.actions import CallWebhook
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.types import SecretDict
from pydantic import SecretStr

from manymatch.util.errors import ConfigError

VARIABLE = "MANYMATCH_WEBHOOK"
AUTOMATION, BLOCK = "manymatch: a run did not end well", "manymatch-alerts"
_HEADERS = {"content-type": "application/json"}
_STATES = ("Failed", "Crashed", "TimedOut")
_PAYLOAD = """\
{
  "text": {{ ("ManyMatch: " ~ flow_run.name ~ ": " ~ flow_run.state.name ~ ". "
              ~ (flow_run.state.message or "")) | tojson }},
  "run": {{ flow_run.name | tojson }},
  "state": {{ flow_run.state.name | tojson }},
  "reason": {{ (flow_run.state.message or "") | tojson }}
}"""


async def set_alerts(client: PrefectClient) -> bool:
    """Let the server report to the address in `MANYMATCH_WEBHOOK`; without it, to nobody.

    Returns:
        Whether there is an address.

    Raises:
        ConfigError: the variable holds no web address.
    """
    for automation in await client.read_automations_by_name(AUTOMATION):
        await client.delete_automation(automation.id)
    address = os.environ.get(VARIABLE, "")
    if not address:
        return False
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(f"{VARIABLE}: expected an address such as https://example.org/hook")
    await Webhook.register_type_and_schema(client=client)
    block = Webhook(url=SecretStr(address), headers=SecretDict(_HEADERS))
    identity = await block.save(BLOCK, overwrite=True, client=client)
    await client.create_automation(
        AutomationCore(
            name=AUTOMATION,
            description=f"Reports to the address that {VARIABLE} had at `make serve`",
            trigger=EventTrigger(
                expect={f"prefect.flow-run.{state}" for state in _STATES},
                match={"prefect.resource.id": "prefect.flow-run.*"},
                for_each={"prefect.resource.id"},
                posture=Posture.Reactive,
                threshold=1,
                within=timedelta(),
            ),
            actions=[CallWebhook(block_document_id=identity, payload=_PAYLOAD)],
        )
    )
    return True
