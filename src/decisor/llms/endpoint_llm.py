"""An LLM behind one endpoint, whatever its API: a call at once or streamed, asked again without refused settings.

``OpenAICompatible`` and ``Anthropic`` say how their API asks and answers; deadlines, streams, the memory of what an
endpoint refused, prices and redaction are the same for both, and live here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Protocol

from decisor.errors import LLMError
from decisor.llms.endpoint import Endpoint, run_within
from decisor.llms.facts import context_length_at
from decisor.llms.prices import Price
from decisor.llms.streaming import Send, StreamParts, stream_reply
from decisor.llms.turns import cut_at_stop_words, postprocess_reply, replace_call_ids, separate_users_from_results
from decisor.parsing.prompting import Way, Ways
from decisor.runtime.call import ContextLength, LLMSettings
from decisor.system.secrets import redact_known
from decisor.trace.events import OnText
from decisor.types import Completion, Message, Sampling, Usage

PARALLEL = "parallel_tool_calls"
MENDS: Mapping[str, tuple[re.Pattern[str], Callable[[Sequence[Message]], list[Message]]]] = {
    "call_ids": (re.compile(r"tool[_ ](?:call|use)[\w.\[\] ]*\bid\b|\bcall_id\b", re.I), replace_call_ids),
    "order": (re.compile(r"role '?user'? after role '?tool|roles must alternate", re.I), separate_users_from_results),
}
"""What an endpoint may refuse of a conversation, in ``dropped`` then: how its refusal names it, and who mends it."""


class EndpointLLM(Protocol):
    """An LLM behind one endpoint. An API defines ``build_request``, ``parse_reply`` and ``find_refused``."""

    stream_fields: ClassVar[Mapping[str, object]]
    """Fields of a body that ask for a stream."""
    ways_of_field: ClassVar[Mapping[str, tuple[Way, ...]]]
    """Ways of asking for a form that are lost when a field is refused."""

    name: str
    endpoint: Endpoint
    seconds: float
    """Wall clock for one completion with all its retries; of a stream the longest time without an event."""
    price: Price | None
    """None means unknown."""
    settings: LLMSettings
    ways: Ways
    dropped: set[str]
    """Parts of a request that the endpoint refused, and is not sent any more."""
    context: ContextLength

    def connect(self, name: str, endpoint: Endpoint, seconds: float, price: Price | None) -> None:
        """Set all fields. A class calls it in its constructor."""
        self.name, self.endpoint, self.seconds, self.price = name, endpoint, seconds, price
        self.settings, self.ways, self.dropped = LLMSettings(), Ways(), set()
        self.context = context_length_at(endpoint, name)

    def build_request(self, messages: Sequence[Message], sampling: Sampling) -> tuple[dict[str, object], str]:
        """Build the body of a request without the dropped parts, and its address ('' for the endpoint's)."""
        ...

    def adapt(self, body: Mapping[str, object], sampling: Sampling) -> Mapping[str, object]:
        """Return a body as the server of another API takes it."""
        return body

    def parse_reply(self, reply: object, messages: Sequence[Message], sampling: Sampling) -> Completion:
        """Parse a reply; raise RetryableError or LLMError if it is unusable."""
        ...

    def open_parts(self) -> StreamParts:
        """Return an empty reply that the events of a stream are added to."""
        ...

    def find_refused(self, error: LLMError, body: Mapping[str, object]) -> str:
        """Return the part of a request that a refusal names and the LLM can do without; '' if it names none."""
        ...

    def guess_refused(self, error: LLMError, body: Mapping[str, object]) -> str:
        """Return the part of a request that a refusal may be about although it names none; '' for no guess."""
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self.endpoint.where})"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        """Ask for at most ``sampling.n`` texts, cut at the stop words.

        An endpoint may give one only, or ignore the stop words.

        Raises:
            LLMError: no usable reply within ``seconds``; of the kind ``tools`` if ``sampling.tools`` are refused.
        """
        # One deadline over all requests of the call, those without refused parts included.
        ask = partial(self._ask, messages, sampling, self.endpoint.post, {})
        reply = await run_within(self.seconds, ask, self.endpoint.where, self.price)
        if len(reply.texts) <= sampling.n:
            return reply
        return replace(reply, texts=reply.texts[: sampling.n], logprobs=reply.logprobs[: sampling.n])

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        """Ask as ``complete`` does, and show the text as it is written. Several texts are not streamed.

        Raises:
            LLMError: no usable reply.
        """
        if sampling.n > 1 or "stream" in self.dropped:
            return await self.complete(messages, sampling)
        clock, now = asyncio.timeout(self.seconds), asyncio.get_running_loop().time

        def show(text: str) -> None:
            # What is shown while it is written is cut and redacted as the whole reply will be.
            on_text(redact_known(cut_at_stop_words(text, sampling.stop), self.endpoint.secrets))

        send = partial(
            stream_reply, self.endpoint, self.open_parts, show, lambda: clock.reschedule(now() + self.seconds)
        )
        ask = partial(self._ask, messages, sampling, send, self.stream_fields)
        return await run_within(self.seconds, ask, self.endpoint.where, self.price, clock)

    async def close(self) -> None:
        await self.endpoint.close()

    async def _ask(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        send: Send,
        fields: Mapping[str, object],
        ends: float,
        bill: list[Usage],
    ) -> Completion:
        """Send requests until one is not refused, each without the parts that were.

        ``fields``: further ones of the body, as far as the endpoint takes them.
        """

        def read(reply: object) -> Completion:
            completion = self.parse_reply(reply, messages, sampling)
            return postprocess_reply(completion, sampling, self.endpoint.secrets, self.price, self.name)

        guess = ""
        if sampling.tools and "tools" in self.dropped:
            raise LLMError(f"{self.endpoint.where} takes no tools.", "tools")
        while True:
            now = messages
            for name, (_, mend) in MENDS.items():
                now = mend(now) if name in self.dropped else now
            body, url = self.build_request(now, sampling)
            body |= {name: value for name, value in fields.items() if name not in self.dropped}
            sent = self.adapt(body, sampling)
            try:
                reply = await send(sent, read, ends, bill, url)
                break
            except LLMError as error:
                about = [name for name, (words, _) in MENDS.items() if words.search(str(error))]
                if error.kind == "request" and {*about} - self.dropped:
                    self.dropped.update(about)
                    continue
                refused = self.find_refused(error, {**body, **sent})
                # A field that was dropped may still be sent in another form: refused twice, the call has failed.
                refused = "" if refused in self.dropped else refused
                likely = "" if refused or guess not in ("", PARALLEL) else self.guess_refused(error, body)
                if sampling.tools and "tools" in (refused, likely):
                    # Where calls were taken before, the complaint is about something else of the conversation.
                    if any(message.calls for message in messages):
                        refused = likely = ""
                    else:
                        self.dropped |= {refused} - {""}
                        self.dropped.discard(guess)
                        self.note_refusals()
                        raise LLMError(str(error), "tools", used=error.used) from None
                if not refused and not likely:
                    # The guess was wrong: later calls shall send the part again.
                    self.dropped.discard(guess)
                    raise
                guess = guess or likely
                self.dropped.add(refused or likely)
        self.note_refusals()
        return reply

    def note_refusals(self) -> None:
        for field, ways in self.ways_of_field.items():
            if field in self.dropped:
                self.ways.against |= {way: self.ways.against.get(way, f"it refused {field}") for way in ways}
