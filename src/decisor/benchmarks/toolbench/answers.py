"""Who answers the calls: what was recorded, a live server, or an LM that simulates. Each says who it was.

StableToolBench (Guo et al., Findings of ACL 2024) answers from a cache, then live, then simulated; so does
``AnswersInOrder``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from string import Template
from typing import TYPE_CHECKING, Literal, Protocol

from decisor.benchmarks.toolbench.functions import Api, schema, standardize
from decisor.benchmarks.toolbench.load import Call
from decisor.benchmarks.toolbench.statuses import BAD_INPUT, FAILED, NOT_RECORDED, reply_of
from decisor.errors import LMError
from decisor.secrets import Secret, redact_known
from decisor.types import LM, Message, Sampling, Usage, Value

if TYPE_CHECKING:
    import aiohttp

By = Literal["recorded", "live", "simulated", "nobody"]
MAX_BYTES, EXAMPLES, EXAMPLE_CHARS = 1_000_000, 5, 2048
REFUSALS = ("404", "500", "rate limit", "not authorized", "unauthorized", "authentication", "internal error")


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, and from whom."""

    error: str
    response: str
    by: By = "nobody"


class Answers(Protocol):
    @property
    def lm_usage(self) -> Usage:
        """What an LM has cost to answer."""
        ...

    async def answer(self, api: Api, arguments: Mapping[str, Value]) -> Reply | None:
        """None where it has nothing to say."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class RecordedAnswers:
    """Answers exactly the calls that were recorded: the same API with the same arguments, 5 and "5" being the same."""

    calls: Sequence[Call]
    lm_usage: Usage = field(default_factory=Usage)

    @cached_property
    def outputs(self) -> dict[tuple[str, str, str], dict[str, Value]]:
        outputs_of: dict[tuple[str, str, str], dict[str, Value]] = {}
        for call in self.calls:
            if (arguments := read(call.input)) is not None:
                outputs_of.setdefault((call.category, call.tool, call.api), {})[same(arguments)] = call.output
        return outputs_of

    async def answer(self, api: Api, arguments: Mapping[str, Value]) -> Reply | None:
        outputs_of_api = self.of(api)
        key = same(arguments)
        return Reply(*reply_of(outputs_of_api[key]), "recorded") if key in outputs_of_api else None

    def of(self, api: Api) -> dict[str, Value]:
        """What is recorded of an API, by arguments. Its names there were standardized with and without ``get_``."""
        tool = standardize(api.tool)
        for name in (tool, tool.removeprefix("get_")):
            for pure in (api.pure_name, api.pure_name.removeprefix("get_"), api.pure_name[:64]):
                if outputs_of_api := self.outputs.get((api.category, f"{name}_for_{api.category}", pure)):
                    return outputs_of_api
        return {}

    async def close(self) -> None:
        """Holds nothing open."""


@dataclass
class LiveAnswers:
    """A server with ToolBench's own interface. ``key`` is sent as toolbench_key, and never comes back."""

    url: str
    key: Secret = field(default_factory=lambda: Secret(""))
    seconds: float = 15.0
    session: aiohttp.ClientSession | None = None
    lm_usage: Usage = field(default_factory=Usage)

    async def answer(self, api: Api, arguments: Mapping[str, Value]) -> Reply:
        import aiohttp

        body = {
            "category": api.category, "tool_name": standardize(api.tool), "api_name": api.pure_name,
            "tool_input": json.dumps(arguments, ensure_ascii=False), "strip": "truncate",
            "toolbench_key": self.key.reveal(),
        }  # fmt: skip
        if self.session is None:
            self.session = aiohttp.ClientSession()
        headers = {"toolbench_key": self.key.reveal()}
        try:
            async with (
                asyncio.timeout(self.seconds),
                self.session.post(self.url, json=body, headers=headers, allow_redirects=False) as reply,
            ):
                body_bytes = b""
                while len(body_bytes) <= MAX_BYTES and (more := await reply.content.read(65_536)):
                    body_bytes += more
        except TimeoutError:
            return Reply("Timeout error...", "", "live")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Reply(f"{FAILED}: {redact_known(str(error), [self.key])}", "", "live")
        if reply.status != 200:
            return Reply(f"{FAILED}: status {reply.status}", "", "live")
        text = redact_known(body_bytes[:MAX_BYTES].decode("utf-8", "replace"), [self.key])
        return Reply(*reply_of(text), "live")

    async def close(self) -> None:
        if self.session is not None:
            await self.session.close()


@dataclass
class SimulatedAnswers:
    """An LM makes an answer up from the API's document and recorded examples. Marked as simulated wherever it is shown.

    ``recorded`` gives the examples. The calls are the environment's: the technique's budget does not count them, they
    are counted here.
    """

    lm: LM
    recorded: RecordedAnswers
    lm_usage: Usage = field(default_factory=Usage)

    async def answer(self, api: Api, arguments: Mapping[str, Value]) -> Reply | None:
        samples = list(self.recorded.of(api).items())[:EXAMPLES]
        examples = "\n".join(
            f"Input: {arguments_text}\nOutput: {json.dumps(output)[:EXAMPLE_CHARS]}"
            for arguments_text, output in samples
        )
        prompt = SIMULATE.substitute(
            document=json.dumps(schema(api), ensure_ascii=False), examples=examples or "(none)",
            input=json.dumps(arguments, ensure_ascii=False),
        )  # fmt: skip
        try:
            reply = await self.lm.complete([Message("user", prompt)], Sampling(max_tokens=1500))
        except LMError as error:
            if error.permanent:
                raise
            self.lm_usage = self.lm_usage + error.used
            return Reply(f"{FAILED}: the simulating model did not answer", "", "simulated")
        self.lm_usage = self.lm_usage + reply.usage
        text = reply.text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
        return Reply(*reply_of(text), "simulated")

    async def close(self) -> None:
        """The LM belongs to who made it."""


@dataclass(frozen=True)
class AnswersInOrder:
    """The first that has something to say; of a live server only what is an answer, if somebody follows it. A call
    without a parameter that the API needs is an error wherever no API was reached to say so."""

    sources: Sequence[Answers]

    @property
    def lm_usage(self) -> Usage:
        return sum((one.lm_usage for one in self.sources), Usage())

    async def answer(self, api: Api, arguments: Mapping[str, Value]) -> Reply:
        last: Reply | None = None
        missing = [name for name in schema(api)["parameters"]["required"] if name not in arguments]
        wrong = Reply(f"{BAD_INPUT}: {api.function} needs {', '.join(missing)}.", "") if missing else None
        for one in self.sources:
            if wrong and isinstance(one, SimulatedAnswers):
                return last or wrong
            reply = await one.answer(api, arguments)
            last = reply or last
            if reply and (reply.by != "live" or is_answer(reply)):
                return reply
        return last or wrong or Reply(f"{NOT_RECORDED}: this call was not made when answers were recorded.", "")

    async def close(self) -> None:
        for one in self.sources:
            await one.close()


def is_answer(reply: Reply) -> bool:
    """StableToolBench's check: no error, and nothing that looks like a refusal."""
    return not reply.error and not any(word in reply.response.lower() for word in REFUSALS)


def read(text: str) -> dict[str, Value] | None:
    """The arguments in an action's input; None where it is no JSON object."""
    try:
        value = json.loads(text, strict=False) if str(text).strip() else {}
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def same(arguments: Mapping[str, Value]) -> str:
    """One text for arguments that are the same call.

    >>> same({"b": 5, "a": " x "}) == same({"a": "x", "b": "5"})
    True
    """
    return json.dumps({str(name): plain(arguments[name]) for name in sorted(arguments)}, ensure_ascii=False)


def plain(value: Value) -> Value:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return str(value).strip()
    if isinstance(value, Mapping):
        return {str(name): plain(value[name]) for name in sorted(value, key=str)}
    return [plain(one) for one in value] if isinstance(value, list) else value


SIMULATE = Template("""\
You stand in for a web API that cannot be reached. From its document, and from examples of what it returned, write what
it would return for the input. If the input does not fit the document, return an error as the API would.

Document
$document

Examples
$examples

Input
$input

Write one JSON object and nothing else: {"error": "", "response": ...}
""")
