"""Where people's models are: what each provider is sent, checked by a server of its form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from decisor.errors import LMError, SetupError
from decisor.lms import choose
from decisor.lms.providers import EndpointLM
from decisor.lms.sigv4 import AwsKey, signed
from decisor.types import Message, Sampling
from servers.fault_server import KEY
from servers.openai_server import completion, serve_app

ALONE = {"DECISOR_OLLAMA_PORT": "0", "DECISOR_LLAMACPP_PORT": "0"}
TALK = [Message("system", "Be brief."), Message("user", "Where?")]
ID, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
THEN = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Lyon"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 5, "outputTokens": 2, "cacheReadInputTokens": 3, "totalTokens": 10},
}


class Heard:
    """What a server was sent, last."""

    origin = ""
    path = ""
    headers: Mapping[str, str] = {}
    body: Any = None
    payload = b""
    tokens = 0


@asynccontextmanager
async def hearing(reply: dict[str, Any] | None = None, status: int = 200) -> AsyncIterator[Heard]:
    """Answers any POST with ``reply``, else as an OpenAI-compatible endpoint does; ``/token`` as Google's server."""
    seen = Heard()

    async def answer(request: web.Request) -> web.Response:
        payload = await request.read()
        if request.path == "/token":
            seen.tokens += 1
            seen.body = parse_qs(payload.decode())
            return web.json_response({"access_token": f"ya29.token{seen.tokens}", "expires_in": 3600})
        seen.path, seen.headers, seen.payload = request.raw_path, request.headers, payload
        seen.body = json.loads(payload)
        return web.json_response(reply or completion(seen.body, "Lyon", "m"), status=status)

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    async with serve_app(app) as seen.origin:
        yield seen


def chosen(spec: str, **environ: str) -> EndpointLM:
    lm = choose.lm(spec, ALONE | environ)
    assert lm is not None
    return lm


async def said_by(lm: EndpointLM, sampling: Sampling = Sampling()) -> str:
    try:
        return (await lm.complete(TALK, sampling)).text
    finally:
        await lm.endpoint.close()


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({}, "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"),
        ({"OPENAI_API_VERSION": "2025-01-01-preview"},
         "/openai/deployments/my-gpt/chat/completions?api-version=2025-01-01-preview"),
        ({"AZURE_OPENAI_BASE_URL": "{origin}/openai/v1"}, "/openai/v1/chat/completions"),
    ],
)  # fmt: skip
async def test_azure_gets_the_deployment_the_version_and_the_key_in_its_header(more: dict[str, str], path: str) -> None:
    async with hearing() as seen:
        more = {name: value.format(origin=seen.origin) for name, value in more.items()}
        lm = chosen("azure/my-gpt", AZURE_OPENAI_ENDPOINT=f"{seen.origin}/", AZURE_OPENAI_API_KEY=KEY, **more)
        assert await said_by(lm) == "Lyon"
    assert (seen.path, seen.headers["api-key"], seen.body["model"]) == (path, KEY, "my-gpt")
    assert "Authorization" not in seen.headers
    assert KEY not in repr(lm)


async def test_openrouter_gets_its_key_and_tells_the_cost() -> None:
    reply = completion({}, "Lyon", "m")
    reply["usage"]["cost"] = 0.25
    async with hearing(reply) as seen:
        lm = chosen("openrouter/org/model:free", OPENROUTER_BASE_URL=f"{seen.origin}/api/v1", OPENROUTER_API_KEY=KEY)
        lm.price = None
        assert (await lm.complete(TALK)).usage.dollars == 0.25
        await lm.endpoint.close()
    assert (seen.path, seen.body["model"]) == ("/api/v1/chat/completions", "org/model:free")
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert chosen("openrouter/a/b", OPENROUTER_API_KEY=KEY).endpoint.url == (
        "https://openrouter.ai/api/v1/chat/completions"
    )


@pytest.mark.parametrize("server", ["vLLM", "LM Studio", "Ollama", "llama.cpp"])
async def test_servers_of_ones_own_are_named_by_their_address_and_get_no_key(server: str) -> None:
    async with hearing() as seen:
        lm = chosen(f"org/model:8b@{seen.origin.removeprefix('http://')}", OPENAI_API_KEY=KEY)
        assert await said_by(lm, Sampling(("\n",), max_tokens=9)) == "Lyon"
    assert (seen.path, seen.body["model"]) == ("/v1/chat/completions", "org/model:8b")
    assert "Authorization" not in seen.headers
    assert (seen.body["stop"], seen.body["max_tokens"]) == (["\n"], 9)


JSON = {"Content-Type": "application/json"}
# AWS's own test suite for signatures (get-vanilla), then what botocore 1.44.5 makes of such requests.
SIGNATURES = [
    ("GET", "https://example.amazonaws.com/", b"", "", "us-east-1", "service", {},
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    ("POST", "https://bedrock-runtime.eu-west-1.amazonaws.com/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/"
     "converse", b'{"messages": []}', "a/token+with=signs", "eu-west-1", "bedrock", JSON,
     "94db94a9f435088d7724b22fcac1740ae95003cf7e202fecdbfa8a357c5119f8"),
    ("POST", "http://127.0.0.1:8080/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/converse", b"{}",
     "", "us-east-1", "bedrock", JSON,
     "1b347f7751a7142087a0e66495a46a759229295f09c9ecf51ea552adb0766c26"),
    ("POST", "https://h.example.com/a/b?z=1&a=%20x&a=", b"", "", "us-east-1", "bedrock",
     JSON, "c7c4936e6e3ae4ad6d6d1133f117d1933488df052e08962000187f1bbf512a8f"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "url", "body", "token", "region", "service", "headers", "signature"), SIGNATURES)
def test_signatures_are_those_that_aws_makes(
    method: str, url: str, body: bytes, token: str, region: str, service: str, headers: dict[str, str], signature: str
) -> None:
    own = signed(method, url, body, AwsKey(ID, SECRET, token), region, service, THEN, headers)
    assert own["Authorization"].endswith(f"Signature={signature}")
    assert f"Credential={ID}/20150830/{region}/{service}/aws4_request" in own["Authorization"]
    assert SECRET not in str(own) and SECRET not in repr(AwsKey(ID, SECRET))


AWS = {"AWS_ACCESS_KEY_ID": ID, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-west-1"}


@pytest.mark.parametrize("token", ["", "session/token+="])
async def test_bedrock_gets_a_signed_request_in_its_own_form(token: str) -> None:
    model = "eu.anthropic.claude-x-v1:0"
    async with hearing(CONVERSE) as seen:
        environ = AWS | {"BEDROCK_BASE_URL": seen.origin} | ({"AWS_SESSION_TOKEN": token} if token else {})
        lm = chosen(f"bedrock/{model}", **environ)
        reply = await lm.complete(TALK, Sampling(("\n", "Observation:"), 0.5, max_tokens=7))
        await lm.endpoint.close()
    assert (reply.text, reply.finish, reply.model) == ("Lyon", "stop", model)
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cache_reads) == (8, 2, 3)
    assert seen.path == "/model/eu.anthropic.claude-x-v1%3A0/converse"
    assert seen.body == {
        "system": [{"text": "Be brief."}], "messages": [{"role": "user", "content": [{"text": "Where?"}]}],
        "inferenceConfig": {"maxTokens": 7, "temperature": 0.5, "stopSequences": ["Observation:"]},
    }  # fmt: skip
    when = datetime.strptime(seen.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - when).total_seconds()) < 60
    again = signed("POST", f"{seen.origin}{seen.path}", seen.payload, AwsKey(ID, SECRET, token), "eu-west-1", "bedrock",
                   when, {"Content-Type": seen.headers["Content-Type"]})  # fmt: skip
    assert seen.headers["Authorization"] == again["Authorization"]
    assert seen.headers.get("X-Amz-Security-Token", "") == token
    assert SECRET not in repr(lm)


async def test_bedrock_takes_its_own_keys_schemas_and_says_why_it_stopped() -> None:
    tool = {"output": {"message": {"content": [{"toolUse": {"name": "reply", "input": {"city": "Lyon"}}}]}},
            "stopReason": "max_tokens"}  # fmt: skip
    async with hearing(tool) as seen:
        lm = chosen("bedrock/m", BEDROCK_BASE_URL=seen.origin, AWS_BEARER_TOKEN_BEDROCK=KEY, **AWS)
        reply = await lm.complete(TALK, Sampling(schema={"type": "object"}))
        await lm.endpoint.close()
    assert (reply.text, reply.finish, reply.usage.estimates) == ('{"city": "Lyon"}', "length", 1)
    assert seen.headers["Authorization"] == f"Bearer {KEY}" and "X-Amz-Date" not in seen.headers
    assert seen.body["toolConfig"]["toolChoice"] == {"tool": {"name": "reply"}}
    assert chosen("bedrock/m", **AWS).endpoint.url == (
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse"
    )


@pytest.mark.parametrize(
    ("reply", "status", "kind"),
    [
        ({"message": f"The security token {SECRET} is invalid."}, 403, "auth"),
        ({"message": "Too many tokens, please wait."}, 429, "rate"),
        ({"output": {}, "stopReason": "end_turn"}, 200, "protocol"),
        ({"Message": "Malformed input request"}, 400, "request"),
    ],
)
async def test_faults_of_bedrock_are_sorted_out_without_the_secret(
    reply: dict[str, Any], status: int, kind: str
) -> None:
    async with hearing(reply, status) as seen:
        lm = chosen("bedrock/m", BEDROCK_BASE_URL=seen.origin, **AWS)
        lm.endpoint.retries.attempts = lm.endpoint.retries.rate_attempts = 1
        with pytest.raises(LMError) as caught:
            await said_by(lm)
    assert caught.value.kind == kind
    assert SECRET not in str(caught.value)


async def test_vertex_gets_an_access_token_and_the_project_in_its_address() -> None:
    async with hearing() as seen:
        url = f"{seen.origin}/v1/projects/p/locations/us-central1/endpoints/openapi"
        lm = chosen("vertex/gemini-x", VERTEX_BASE_URL=url, VERTEX_API_KEY=KEY)
        assert await said_by(lm) == "Lyon"
    assert seen.path == "/v1/projects/p/locations/us-central1/endpoints/openapi/chat/completions"
    assert (seen.headers["Authorization"], seen.body["model"]) == (f"Bearer {KEY}", "google/gemini-x")
    there = {"GOOGLE_CLOUD_PROJECT": "p", "VERTEX_API_KEY": KEY}
    assert chosen("vertex/meta/llama-x", **there).name == "meta/llama-x"
    for place, host in (("global", ""), ("europe-west4", "europe-west4-")):
        assert chosen("vertex/g", **there, GOOGLE_CLOUD_LOCATION=place).endpoint.url == (
            f"https://{host}aiplatform.googleapis.com/v1/projects/p/locations/{place}/endpoints/openapi/chat/completions"
        )


async def test_a_service_account_signs_for_its_token_and_keeps_it(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    async with hearing() as seen:
        row = {"client_email": "me@p.iam", "private_key_id": "k1", "private_key": pem}
        row["token_uri"] = f"{seen.origin}/token"
        path = tmp_path / "account.json"
        path.write_text(json.dumps(row))
        environ = {"VERTEX_BASE_URL": f"{seen.origin}/v1", "GOOGLE_APPLICATION_CREDENTIALS": str(path)}
        lm = chosen("vertex/g", **environ)
        await lm.complete(TALK)
        assert (await lm.complete(TALK)).text == "Lyon"
        assert seen.headers["Authorization"] == "Bearer ya29.token1" and seen.tokens == 1
        await lm.endpoint.close()
        lm = chosen("vertex/g", **environ)
        assert lm.endpoint.authorize is not None
        await lm.endpoint.authorize("", b"")
        await lm.endpoint.close()
    assert seen.body["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    head, claims, signature = seen.body["assertion"][0].split(".")
    assert json.loads(decoded(head)) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    terms = json.loads(decoded(claims))
    assert (terms["iss"], terms["aud"], terms["exp"] - terms["iat"]) == ("me@p.iam", f"{seen.origin}/token", 3600)
    key.public_key().verify(decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())


def decoded(part: str) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


@pytest.mark.parametrize("text", ["", "[]", '{"client_email": "me"}'])
def test_a_file_that_is_no_service_account_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "account.json"
    path.write_text(text)
    for place in (path, tmp_path / "none.json"):
        with pytest.raises(SetupError, match=r"service account|Cannot read"):
            chosen("vertex/g", GOOGLE_CLOUD_PROJECT="p", GOOGLE_APPLICATION_CREDENTIALS=str(place))


def test_keys_of_a_cloud_alone_choose_no_lm() -> None:
    """Where nothing is named, nobody is billed for it."""
    keys = AWS | {"OPENROUTER_API_KEY": KEY, "GOOGLE_CLOUD_PROJECT": "p", "VERTEX_API_KEY": KEY}
    assert choose.lm(None, ALONE | keys) is None
    assert not any(row.chosen for row in choose.places_of_lms(ALONE | keys))
    assert chosen("", **keys, BEDROCK_MODEL="m").endpoint.where == "bedrock-runtime.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("spec", "variable"),
    [("azure/x", "AZURE_OPENAI"), ("bedrock/x", "BEDROCK"), ("vertex/x", "VERTEX"), ("openrouter/x/y", "OPENROUTER")],
)
def test_a_provider_without_a_key_says_which_is_missing(spec: str, variable: str) -> None:
    with pytest.raises(SetupError, match=f"Set {variable}_API_KEY"):
        choose.lm(spec, ALONE)
