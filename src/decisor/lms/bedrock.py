"""Models on Amazon Bedrock, by its Converse API: signed with a key of AWS, or with a Bedrock API key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlsplit

from decisor.calls.settings import LMSettings
from decisor.lms.anthropic import alternating
from decisor.lms.counts import mapping, usage_with
from decisor.lms.endpoint import Endpoint, parse_address, within
from decisor.lms.postprocess import postprocess, tidy
from decisor.lms.prices import Price
from decisor.lms.retry import Again, Retries
from decisor.lms.sigv4 import AwsKey, signed
from decisor.secrets import Secret
from decisor.types import Completion, Message, Sampling, Usage

REGION = "us-east-1"
JSON = {"Content-Type": "application/json"}
FINISH = {"max_tokens": "length", "guardrail_intervened": "content_filter", "content_filtered": "content_filter",
          "model_context_window_exceeded": "length"}  # fmt: skip


def access(environ: Mapping[str, str]) -> tuple[str, str]:
    """Address and key: BEDROCK_API_KEY or AWS_BEARER_TOKEN_BEDROCK, else AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
    AWS_SESSION_TOKEN, a line each. Where: AWS_REGION or AWS_DEFAULT_REGION, or BEDROCK_BASE_URL."""
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or REGION
    url = environ.get("BEDROCK_BASE_URL") or f"https://bedrock-runtime.{region}.amazonaws.com"
    key = environ.get("BEDROCK_API_KEY") or environ.get("AWS_BEARER_TOKEN_BEDROCK") or ""
    if not key and environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        key = "\n".join([*(environ.get(name, "") for name in names), region])
    return url, key


class Bedrock:
    """One LM behind ``POST {base_url}/model/{model}/converse``. Fields as in OpenAICompatible.

    ``key``: a Bedrock API key, or the lines of ``access``. A schema is asked for as the input of a tool that must be
    used. ``n`` texts are ``n`` calls; a seed is not offered.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        key: str | None,
        seconds: float = 300.0,
        max_bytes: int = 8 * 2**20,
        price: Price | None = None,
        retries: Retries | None = None,
    ) -> None:
        self.name = model
        self.seconds = seconds
        self.price = price
        self.settings = LMSettings()
        id_, _, rest = (key or "").strip("\n").partition("\n")
        secret, token, region = (*rest.split("\n"), "", "", "")[:3]
        headers: dict[str, Secret | str] = {"User-Agent": "decisor"}
        if not rest:
            headers["Authorization"] = Secret(f"Bearer {id_.strip()}")
        url = f"{parse_address(base_url).geturl().rstrip('/')}/model/{quote(model, safe='')}/converse"
        self.endpoint = Endpoint(url, headers, max_bytes, retries or Retries())
        self.endpoint.secrets += [Secret(word) for word in (secret, token) if word] if rest else [Secret(id_.strip())]
        if rest:
            aws = AwsKey(id_.strip(), secret.strip(), token.strip())
            region = region or region_of(base_url)

            async def authorize(url: str, payload: bytes) -> Mapping[str, str]:
                return signed("POST", url, payload, aws, region, "bedrock", headers=JSON)

            self.endpoint.authorize = authorize

    def __repr__(self) -> str:
        return f"Bedrock({self.name!r} at {self.endpoint.where})"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        """One text, whatever ``sampling.n`` is, cut at the stop words.

        Raises:
            LMError: no usable reply within ``seconds``.
        """

        def read(reply: object) -> Completion:
            completion = parse_converse(reply, messages, self.endpoint.where)
            return postprocess(completion, sampling, self.endpoint.secrets, self.price, self.name)

        async def ask(ends: float, bill: list[Usage]) -> Completion:
            return await self.endpoint.post(request(messages, sampling), read, ends, bill)

        return await within(self.seconds, ask, self.endpoint.where, self.price)

    async def close(self) -> None:
        await self.endpoint.close()


def region_of(url: str) -> str:
    """
    >>> region_of("https://bedrock-runtime.eu-west-1.amazonaws.com"), region_of("http://127.0.0.1:80")
    ('eu-west-1', 'us-east-1')
    """
    labels = (urlsplit(url).hostname or "").split(".")
    return labels[1] if labels[-1] == "com" and len(labels) > 3 else REGION


def request(messages: Sequence[Message], sampling: Sampling) -> dict[str, object]:
    """The body of a Converse request."""
    system = [{"text": message.content} for message in messages if message.role == "system" and message.content]
    turns = alternating([message for message in messages if message.role != "system"])
    if not turns:
        turns = [{"role": "user", "content": "\n\n".join(part["text"] for part in system)}]
        system = []
    limits = {
        "maxTokens": sampling.max_tokens,
        "temperature": min(1.0, sampling.temperature),
        "stopSequences": [stop for stop in sampling.stop if stop.strip()][:4] or None,
    }
    body: dict[str, object] = {
        "messages": [{"role": turn["role"], "content": [{"text": turn["content"]}]} for turn in turns],
        "inferenceConfig": {name: value for name, value in limits.items() if value is not None},
    }
    if system:
        body["system"] = system
    if sampling.schema is not None:
        tool = {"name": "reply", "description": "Give the reply.", "inputSchema": {"json": sampling.schema}}
        body["toolConfig"] = {"tools": [{"toolSpec": tool}], "toolChoice": {"tool": {"name": "reply"}}}
    return body


def parse_converse(reply: object, messages: Sequence[Message], where: str) -> Completion:
    """A Converse reply as a Completion; a used tool's input is the text, as JSON. Raises Again where it is none."""
    blocks = mapping(mapping(mapping(reply).get("output")).get("message")).get("content")
    reason = str(mapping(reply).get("stopReason"))
    counts = mapping(mapping(reply).get("usage"))
    finish = FINISH.get(reason, "stop")
    texts = [block_text(block) for block in blocks] if isinstance(blocks, list) else []
    text = "".join(texts)
    reads, writes = (whole(counts.get(f"cache{way}InputTokens")) for way in ("Read", "Write"))
    fresh = counts.get("inputTokens")
    prompt = fresh + reads + writes if isinstance(fresh, int) else None
    usage = usage_with(prompt, counts.get("outputTokens"), reads, writes, messages, [text])
    if not texts and finish == "stop" and reason != "stop_sequence":
        raise Again(f"{where} sent a message without content.", used=usage_with(
            prompt, counts.get("outputTokens"), reads, writes, messages, [], calls=0))  # fmt: skip
    return Completion((text,), usage, finish)


def whole(count: object) -> int:
    return count if isinstance(count, int) and count > 0 else 0


def block_text(block: object) -> str:
    tool = mapping(mapping(block).get("toolUse"))
    if tool:
        return tidy(json.dumps(tool.get("input"), ensure_ascii=False))
    return tidy(str(mapping(block).get("text") or ""))
