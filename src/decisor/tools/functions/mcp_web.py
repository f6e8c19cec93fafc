"""An MCP server at an address: streamable HTTP, with caps on what it may send. No key goes to another server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
from mcp.client.streamable_http import streamable_http_client

from decisor.tools.functions.mcp_pipe import Meter

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


class Metered(httpx2.AsyncByteStream):
    """A body that ends with an error where it is more than a meter lets through."""

    def __init__(self, stream: httpx2.AsyncByteStream, meter: Meter) -> None:
        self.stream, self.meter = stream, meter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.stream:
            if not self.meter.take(len(chunk)):
                raise httpx2.ReadError("The server sends more than it may.")
            yield chunk

    async def aclose(self) -> None:
        await self.stream.aclose()


class MeteredTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.ReadError("The server sends a body that is packed, which was not asked for.")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=Metered(response.stream, self.meter),
            extensions=response.extensions,
        )  # fmt: skip


@asynccontextmanager
async def web(url: str, key: str, meter: Meter, seconds: float) -> AsyncIterator[TransportStreams]:
    """A transport of the SDK. ``key``: '' for none."""
    headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
    async with (
        httpx2.AsyncClient(
            headers=headers, transport=MeteredTransport(meter), timeout=seconds, trust_env=False
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=meter.line) as streams,
    ):
        yield streams
