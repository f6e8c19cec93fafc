"""A retriever of somebody's own, named by its import path: ``--docs module:Class``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from decisor.errors import SetupError, ToolError
from decisor.outside import quoted
from decisor.secrets import redact
from decisor.settings import build, import_class
from decisor.types import Record, Retriever


@dataclass(frozen=True, eq=False)
class OwnRetriever:
    """Trusted code that a person named; a model writes the query only. What it raises, and what takes longer than
    ``seconds``, is said to the model. Satisfies ``types.Retriever``."""

    retriever: Retriever
    name: str
    seconds: float = 30.0

    @property
    def about(self) -> str:
        """The first line of its docstring, for the model."""
        return (inspect.getdoc(type(self.retriever)) or "").partition("\n")[0].strip().rstrip(".")

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        try:
            async with asyncio.timeout(self.seconds):
                records = tuple(await self.retriever.find(query, limit))
        except TimeoutError as error:
            raise ToolError(f"{self.name} took longer than {self.seconds:g} s.", outage=True) from error
        except ToolError:
            raise
        except Exception as error:
            why = redact(f"{type(error).__name__}: {quoted(str(error))}")
            raise ToolError(f"{self.name} failed: {why}", outage=isinstance(error, OSError)) from error
        if strange := [record for record in records if not isinstance(record, Record)]:
            raise ToolError(f"{self.name} gave {type(strange[0]).__name__} where a Record is due.")
        return records[:limit]

    async def close(self) -> None:
        """Its own ``close``, where it has one."""
        close = getattr(self.retriever, "close", None)
        if callable(close) and inspect.isawaitable(ending := close()):
            await ending


def open_own(path: str, settings: Mapping[str, str] = {}, folder: str = "") -> OwnRetriever:
    """An object of the class that ``module:Class`` names, of a module in ``folder`` first; its fields are its settings.
    Only for what a person typed.

    Raises:
        SetupError: there is no such class, it cannot be made with these settings, or it finds nothing.
    """
    kind = import_class(path, folder)
    if not inspect.iscoroutinefunction(getattr(kind, "find", None)):
        raise SetupError(f"{path} is no retriever: it needs async def find(self, query, limit) to give Records.")
    try:
        return OwnRetriever(build(kind, path, settings), path)
    except SetupError:
        raise
    except Exception as error:
        why = redact(f"{type(error).__name__}: {error}")
        raise SetupError(f"{path}() cannot be made: {why}. It is made with its settings alone.") from error
