"""A provider of somebody else's: what one file of it has to hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from decisor.llms.endpoint import Endpoint, run_within
from decisor.llms.prices import Price
from decisor.llms.retry import RetryableError
from decisor.system.secrets import Secret
from decisor.types import Completion, Message, Sampling, Usage


class OwnLLM:
    """``POST {base_url}/say`` with the last message, answered by ``{"said": TEXT}``."""

    def __init__(self, model: str, base_url: str, key: str | None, price: Price | None = None) -> None:
        self.name, self.price = model, price
        self.endpoint = Endpoint(f"{base_url}/say", {"X-Key": Secret(key or "")})

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        async def ask(ends: float, bill: list[Usage]) -> Completion:
            return await self.endpoint.post({"text": messages[-1].content}, self.read, ends, bill)

        return await run_within(60.0, ask, self.endpoint.where, self.price)

    def read(self, reply: Any) -> Completion:
        if not isinstance(reply, Mapping) or "said" not in reply:
            raise RetryableError(f"{self.endpoint.where} said nothing.")
        return Completion((str(reply["said"]),), model=self.name)

    async def close(self) -> None:
        await self.endpoint.close()
