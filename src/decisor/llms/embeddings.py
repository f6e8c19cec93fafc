"""Any OpenAI-compatible embeddings endpoint, as a ``documents.passage.Embedder``."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from decisor.errors import LLMError, SetupError
from decisor.llms.choose import key_for_url, parse_spec
from decisor.llms.endpoint import build_api_url, open_endpoint
from decisor.llms.providers import OPENAI
from decisor.llms.retry import Retries, RetryableError
from decisor.system.tasks import map_concurrently

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AT_ONCE = 64
LONGEST = 8_000
MAX_BYTES = 64 * 2**20


class EndpointEmbedder:
    """An embedding model behind ``POST {base_url}/embeddings``.

    Its methods block: its connections live in a thread of its own.

    ``longest``: characters of a text that are sent. ``seconds``: wall clock for 64 texts with all retries.
    """

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI.base_url,
        key: str | None = None,
        seconds: float = 300.0,
        longest: int = LONGEST,
        retries: Retries | None = None,
    ) -> None:
        self.name, self.seconds, self.longest = model, seconds, longest
        url = build_api_url(base_url, "/embeddings")
        self.endpoint = open_endpoint(url, key, max_bytes=MAX_BYTES, retries=retries)
        self._loop: asyncio.AbstractEventLoop | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector of length 1 for each text, shape (len(texts), width).

        Not to be called from a running event loop.

        Raises:
            LLMError: no usable reply within ``seconds``.
        """
        import numpy as np

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="embeddings", daemon=True)
            self._thread.start()
        # A loop of its own: the caller is a thread of an index, and connections belong to the loop that opened them.
        vectors = np.concatenate(asyncio.run_coroutine_threadsafe(self._all(texts), self._loop).result())
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths == 0, 1, lengths), np.float32)

    def close(self) -> None:
        """Close the connections to the endpoint and their thread."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self.endpoint.close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None

    async def _all(self, texts: Sequence[str]) -> Sequence[NDArray[np.float64]]:
        batches = [texts[at : at + AT_ONCE] for at in range(0, len(texts), AT_ONCE)]
        return await map_concurrently(self._batch, batches)

    async def _batch(self, texts: Sequence[str]) -> NDArray[np.float64]:
        # OpenAI refuses a whole batch for one empty text.
        body = {"model": self.name, "input": [text[: self.longest] or " " for text in texts]}
        read = partial(parse_vectors, count=len(texts), where=self.endpoint.where)
        try:
            async with asyncio.timeout(self.seconds):
                return await self.endpoint.post(body, read, time.monotonic() + self.seconds, [])
        except TimeoutError:
            pass
        raise LLMError(f"{self.endpoint.where} gave no embeddings within {self.seconds:g} s.", "timeout")


def parse_vectors(reply: Any, count: int, where: str) -> NDArray[np.float64]:
    """Parse the vectors of an embeddings reply, in the order of the texts.

    >>> parse_vectors({"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]}, 2, "there")
    array([[1., 0.],
           [0., 1.]])

    Raises:
        LLMError: the reply does not hold one vector of numbers for each text.
    """
    import numpy as np

    try:
        # The API gives an index with each vector, so their order is not promised.
        rows = sorted(reply["data"], key=lambda row: row["index"])
        vectors = np.array([row["embedding"] for row in rows], np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise RetryableError(f"{where} sent no embeddings.") from error
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        raise LLMError(f"{where} sent {len(vectors)} embeddings for {count} texts, or not numbers alone.")
    return vectors


def open_embedder(spec: str, environ: Mapping[str, str] = os.environ) -> EndpointEmbedder:
    """Open the embedder of MODEL@BASE_URL; without a URL at OPENAI_BASE_URL or OpenAI. Keys as for an LLM.

    Raises:
        SetupError: no model is named, or OpenAI's has no key.
    """
    model, url = parse_spec(spec)
    url = url or environ.get("OPENAI_BASE_URL") or OPENAI.base_url
    key = key_for_url(url, environ)
    if url == OPENAI.base_url and not key:
        raise SetupError(f"Where is the embedder {model}? Name it: {model}@http://localhost:11434/v1, or set a key.")
    return EndpointEmbedder(model, url, key)
