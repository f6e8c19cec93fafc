"""Which LLM is chosen, and whose key goes where."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from aiohttp import web

from decisor.errors import SetupError
from decisor.llms import choose
from decisor.llms.anthropic import Anthropic
from decisor.llms.choose import probe_llm
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.prices import Price
from decisor.llms.providers import PROVIDERS, Provider
from servers.fault_plays import echoes_key
from servers.fault_server import KEY, faulty
from servers.openai_server import serve, serve_app, serve_threaded

ALONE = {"DECISOR_OLLAMA_PORT": "0", "DECISOR_LLAMACPP_PORT": "0"}
OLLAMA = b'{"models": [{"name": "nomic-embed-text:latest"}, {"name": "qwen3:8b"}, {"name": "big:120b-cloud"}]}'
LLAMACPP = b'{"object": "list", "data": [{"id": "qwen.gguf", "owned_by": "llamacpp"}]}'


@contextmanager
def local(reply: bytes) -> Iterator[str]:
    """A server on the loopback interface that answers each GET so; yields its port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield str(server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def chosen(spec: str | None, **environ: str) -> tuple[str, str, bool]:
    """Name, address, and whether a key is sent."""
    llm = choose.choose_llm(spec, ALONE | environ)
    assert isinstance(llm, OpenAICompatible | Anthropic)
    return llm.name, llm.endpoint.url, bool(llm.endpoint.secrets)


def test_nothing_set_and_nothing_running_is_no_llm() -> None:
    assert choose.choose_llm(None, ALONE) is None
    assert choose.choose_llm("none", ALONE | {"OPENAI_API_KEY": KEY}) is None
    assert not any(row.chosen for row in choose.list_llm_places(ALONE))


def test_the_flag_goes_before_the_environment_and_that_before_keys() -> None:
    there = "http://127.0.0.1:1/v1"
    full = f"{there}/chat/completions"
    assert chosen(f"a@{there}", DECISOR_LLM="b@http://127.0.0.1:2") == ("a", full, False)
    assert chosen(None, DECISOR_LLM=f"b@{there}", OPENAI_API_KEY=KEY) == ("b", full, False)
    assert chosen(None, OPENAI_API_KEY=KEY, ANTHROPIC_API_KEY="k")[1] == "https://api.openai.com/v1/chat/completions"
    assert chosen(None, ANTHROPIC_API_KEY=KEY)[1] == "https://api.anthropic.com/v1/messages"
    assert chosen("m@localhost:8000") == ("m", "http://localhost:8000/v1/chat/completions", False)


@pytest.mark.parametrize(
    ("spec", "sent"),
    [
        ("m", True),
        ("m@https://api.openai.com/v1", True),
        ("m@https://elsewhere.example/v1", False),
        ("m@https://api.openai.com.elsewhere.example/v1", False),
        ("m@http://localhost:8000/v1", False),
    ],
)
def test_a_key_goes_only_to_its_host(spec: str, sent: bool) -> None:
    assert chosen(spec, OPENAI_API_KEY=KEY)[2] is sent


def test_the_key_of_the_person_goes_to_the_address_they_name() -> None:
    assert chosen("m@https://elsewhere.example/v1", OPENAI_API_KEY="sk-other", DECISOR_LLM_KEY=KEY)[2]


def test_a_claude_goes_to_anthropic_where_there_is_a_key() -> None:
    assert chosen("claude-opus", OPENAI_API_KEY="k", ANTHROPIC_API_KEY=KEY)[1].endswith("/v1/messages")
    with pytest.raises(SetupError, match="ANTHROPIC_API_KEY"):
        choose.choose_llm("claude-opus@https://api.anthropic.com", ALONE)


@pytest.mark.parametrize(
    "spec",
    [
        "@http://h",
        "http://localhost:8000/v1",
        "gpt-4.1",
        "m@https://u:p@h.example/v1",
        "m@http://h:99999",
        "m@http://[::1",
    ],
)
def test_what_cannot_be_used_is_told(spec: str) -> None:
    with pytest.raises(SetupError):
        choose.choose_llm(spec, ALONE)


def test_a_running_ollama_is_found_with_its_first_model_that_talks() -> None:
    with local(OLLAMA) as port:
        llm = choose.choose_llm(None, ALONE | {"DECISOR_OLLAMA_PORT": port})
        by_name = choose.choose_llm("qwen3:8b", ALONE | {"DECISOR_OLLAMA_PORT": port})
        cloud = choose.choose_llm("big:120b-cloud", ALONE | {"DECISOR_OLLAMA_PORT": port})
    assert isinstance(llm, OpenAICompatible)
    assert (llm.name, llm.price) == ("qwen3:8b", Price(0.0, 0.0))
    assert isinstance(by_name, OpenAICompatible)
    assert by_name.name == "qwen3:8b"
    assert isinstance(cloud, OpenAICompatible)
    assert cloud.price is None


def test_a_running_llama_cpp_server_is_found_and_another_on_its_port_is_not() -> None:
    with local(LLAMACPP) as port:
        rows = choose.list_llm_places(ALONE | {"DECISOR_LLAMACPP_PORT": port})
    assert [row.model for row in rows if row.chosen] == ["qwen.gguf"]
    with local(b'{"data": [{"id": "something"}]}') as port:
        assert choose.choose_llm(None, ALONE | {"DECISOR_LLAMACPP_PORT": port}) is None


def test_the_model_of_a_base_url_is_asked_for() -> None:
    with serve_threaded(lambda _: "", "only-model") as base_url:
        assert chosen(None, OPENAI_BASE_URL=base_url)[0] == "only-model"
    with pytest.raises(SetupError, match="Name it"):
        choose.choose_llm(None, ALONE | {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})


@pytest.mark.parametrize(
    ("environ", "places"),
    [
        ({"DECISOR_LLM": "m@http://127.0.0.1:1"}, ["--llm or DECISOR_LLM"]),
        ({"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}, ["OPENAI_API_KEY or OPENAI_BASE_URL"]),
        ({"DECISOR_LLM": "none", "ANTHROPIC_API_KEY": KEY}, ["--llm or DECISOR_LLM"]),
        ({"DECISOR_LLM": "m"}, []),
    ],
)
def test_the_list_for_doctor_shows_what_is_chosen_and_no_key(environ: dict[str, str], places: list[str]) -> None:
    rows = choose.list_llm_places(ALONE | environ)
    assert [row.place for row in rows if row.chosen] == places
    assert KEY not in repr(rows)
    assert all(row.model or row.note for row in rows)


async def test_a_probe_tells_what_one_call_gave() -> None:
    async with serve(lambda _: "ready") as base_url:
        llm = OpenAICompatible("m", base_url)
        assert (await probe_llm(llm)).text == "ready"
        await llm.close()
    async with faulty(echoes_key) as server:
        llm = server.llm()
        answer = await probe_llm(llm)
        await llm.close()
    assert not answer.ok
    assert "Check the key" in answer.error
    assert KEY not in answer.error


async def test_a_provider_is_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent.parent / "examples" / "plugin"))

    async def say(request: web.Request) -> web.Response:
        assert request.headers["X-Key"] == KEY
        return web.json_response({"said": (await request.json())["text"].upper()})

    app = web.Application()
    app.router.add_post("/say", say)
    async with serve_app(app) as origin:
        providers = (*PROVIDERS, Provider("OWN", "decisor_example:SayLLM", origin, "own-large", "own-"))
        environ = ALONE | {"OWN_API_KEY": KEY, "DECISOR_PRICE": "1,2"}
        for spec in (None, "own-small", f"anything@{origin}"):
            llm = choose.choose_llm(spec, environ, providers)
            assert llm is not None and type(llm).__name__ == "SayLLM" and llm.price == Price(1.0, 2.0)
            assert llm.name == (spec or "own-large").partition("@")[0]
            assert (await probe_llm(llm)).text == "ANSWER WITH THE ONE WORD: READY"
            await llm.close()
        assert [row.place for row in choose.list_llm_places(environ, None, providers) if row.chosen] == ["OWN_API_KEY"]
        theirs = choose.choose_llm("own-small", environ | {"OPENAI_API_KEY": "sk-other"}, providers)
        assert type(theirs).__name__ == "SayLLM"
        with pytest.raises(SetupError, match="OWN_API_KEY"):
            choose.choose_llm(f"own-small@{origin}", ALONE, providers)
