"""Connections of clients that may be slow or silent."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_SECONDS = 20.0


class Connection(H11Protocol):
    """Closes a connection whose client sends no whole request within 20 to 40 s.

    uvicorn waits without end for the first request, and for the rest of a request's head.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(_SECONDS, self._close_if_idle, None)

    def _close_if_idle(self, before: Any) -> None:
        """Close if no request runs, and none has run since the request `before`."""
        if self.transport.is_closing():
            return
        if self.cycle is before and (before is None or before.response_complete):
            self.transport.close()
        else:
            self.loop.call_later(_SECONDS, self._close_if_idle, self.cycle)
