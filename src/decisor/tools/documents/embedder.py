"""What turns texts into vectors, and what may rank again: protocols, for code of your own too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from decisor.types import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Texts to vectors. An index remembers the ``name``, and is only searched by the embedder that built it."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), width), rows of length 1. Called from worker threads. Raises LMError or SetupError."""
        ...


class Reranker(Protocol):
    """Looks at the best records again, with the query beside each."""

    async def score(self, query: str, records: Sequence[Record]) -> Sequence[float]:
        """A score for each record, higher is better."""
        ...
