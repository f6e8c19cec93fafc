"""LMs by what names them: each is opened once, and closed with the data."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field

from decisor.errors import SetupError
from decisor.lms.spec import LMSpec, read_spec
from decisor.secrets import without_password
from decisor.types import LM


@dataclass(eq=False)
class LMs:
    """``by_spec``: those opened here. An LM that is given as an object is used as it is, and left open."""

    by_spec: dict[str, LM] = field(default_factory=dict)
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self, lm: LM | LMSpec | str | None) -> LM | None:
        """The LM that is named or given, else that of the environment (``DECISOR_LM`` and so on); None for none.

        Raises:
            SetupError: what was named cannot be used.
        """
        if isinstance(lm, LMSpec):
            return await self.open(repr(lm), lm, dict(os.environ))
        if lm is not None and not isinstance(lm, str):
            return lm
        return await self.open(lm or "", lm or "", dict(os.environ))

    async def part(self, setting: str, lm: LM | str) -> LM:
        """The LM of a part of a technique: MODEL[@URL], with its settings. DECISOR_PRICE is not its price.

        Raises:
            SetupError: it names no LM.
        """
        if not isinstance(lm, str):
            return lm
        is_name = bool(read_spec(lm)[0])
        opened = await self.open(f"part {lm}", lm, {**os.environ, "DECISOR_PRICE": ""}) if is_name else None
        if opened is None:
            raise SetupError(f"{setting} takes MODEL or MODEL@URL, not {without_password(lm)!r}.")
        return opened

    async def open(self, key: str, spec: str | LMSpec, environ: dict[str, str]) -> LM | None:
        from decisor.lms import choose

        async with self.opening:
            if key not in self.by_spec:
                lm = await asyncio.to_thread(choose.lm, spec, environ)  # it may look for servers on this machine
                if lm is None:
                    return None
                self.by_spec[key] = lm
        return self.by_spec[key]

    async def close(self) -> None:
        from decisor.lms.closing import close_lm

        while self.by_spec:
            await close_lm(self.by_spec.popitem()[1])
