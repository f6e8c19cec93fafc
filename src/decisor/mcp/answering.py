"""What every tool does: looks who asks, answers in text, and turns our errors into the client's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError as Failure
from mcp_types import CallToolResult, TextContent

from decisor.errors import Error
from decisor.log import logger
from decisor.mcp.serving import Serving
from decisor.secrets import redact
from decisor.server.places import Full

Client = Context[Any, Any]


def as_asked(serving: Serving, context: Client) -> Serving:
    """What whoever asks may see: the guard says who it is, where there is one."""
    request = context.request_context.request
    return serving if request is None else replace(serving, user=request.scope["decisor_user"])


def has_person(context: Client) -> bool:
    """Whether the client can ask one."""
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


def reply_of(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)])


class telling:  # noqa: N801
    """Around a tool: our errors become the client's, in one line; a crash says its kind alone."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, frames: object) -> None:
        if isinstance(error, Error | Full):
            raise Failure(redact(str(error))) from error
        if isinstance(error, Exception) and not isinstance(error, Failure):
            logger.error("a tool crashed", exc_info=error)
            raise Failure(f"It crashed: {type(error).__name__}. The log of the server has more.") from error
