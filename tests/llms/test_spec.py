"""Everything that is set for one LLM, in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import decisor
from decisor.errors import SetupError
from decisor.llms import choose
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.prices import Price
from decisor.llms.providers import LLMSpec, read_spec
from decisor.runtime.call import ContextLength, llm_settings_of, read_refused_sizes
from decisor.tools.toolbox import Toolbox
from servers.llama_server import llama
from servers.openai_server import serve_threaded

ALONE = {"DECISOR_OLLAMA_PORT": "0", "DECISOR_LLAMACPP_PORT": "0"}
FULL = "m@http://llm.example.com/v1 timeout=900 context=8192 max_tokens=800 temperature=0.1 price=0.4,1.6"


def llm_of(spec: str | LLMSpec | None, **environ: str) -> OpenAICompatible:
    llm = choose.choose_llm(spec, ALONE | environ)
    assert isinstance(llm, OpenAICompatible)
    return llm


def test_a_text_and_an_object_set_the_same() -> None:
    spec = LLMSpec("m", "http://llm.example.com/v1", 900, 8192, 800, 0.1, "0.4,1.6")
    for llm in (llm_of(FULL), llm_of(spec), llm_of(None, DECISOR_LLM=FULL)):
        assert (llm.name, llm.seconds, llm.price) == ("m", 900, Price(0.4, 1.6))
        settings = llm_settings_of(llm)
        assert (settings.context, settings.max_tokens, settings.temperature) == (8192, 800, 0.1)


def test_what_is_named_goes_before_what_the_environment_says_of_the_same_llm() -> None:
    llm = llm_of("timeout=60", DECISOR_LLM=FULL)
    assert (llm.name, llm.seconds, llm_settings_of(llm).context) == ("m", 60, 8192)
    other = llm_of("other@http://llm.example.com/v1", DECISOR_LLM=FULL)
    assert (other.name, other.seconds, other.price) == ("other", 300, None)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("m@http://h/v1 speed=9", "An LLM has no speed; it has .*timeout, context, max_tokens, temperature, price"),
        ("m@http://h/v1 timeout=soon", "timeout is a number"),
        ("m@http://h/v1 context=0", "context of an LLM is above 0"),
        ("m@http://h/v1 temperature=9", "temperature of an LLM is from 0 to 2"),
        ("m price=cheap", "0.4,1.6"),
        ("m model=n", "written MODEL@URL"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SetupError, match=complaint):
        choose.choose_llm(text, ALONE)


def test_a_name_with_signs_in_it_stays_whole() -> None:
    assert read_spec("org/m@v2@https://h/v1?key=x timeout=5")[0] == "org/m@v2@https://h/v1?key=x"


def test_an_address_alone_is_the_only_model_there() -> None:
    with serve_threaded(lambda request: "Lyon", model="only-one") as url:
        assert llm_of(f"@{url} timeout=7").name == "only-one"
    with pytest.raises(SetupError, match="lists no models: name one, as --llm MODEL@"):
        llm_of("@http://127.0.0.1:9/v1")


async def test_an_address_with_several_models_is_refused_with_their_names() -> None:
    from aiohttp import web

    from servers.openai_server import serve_app

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": f"m{n}"} for n in range(10)]})

    app = web.Application()
    app.router.add_get("/v1/models", models)
    async with serve_app(app) as origin:
        import asyncio

        with pytest.raises(SetupError, match=r"has m0, m1, .*m7 and 2 more: name one of them, as --llm MODEL@"):
            await asyncio.to_thread(llm_of, f"@{origin}/v1")


def test_a_model_on_this_machine_costs_nothing_unless_a_price_is_set() -> None:
    assert llm_of("m@localhost:8000").price == llm_of("m@http://127.0.0.1:9/v1").price == Price(0, 0)
    assert llm_of("m@localhost:8000", DECISOR_PRICE="1,2").price == llm_of("m@localhost:8000 price=1,2").price
    assert llm_of("big:120b-cloud@localhost:8000").price is None
    assert llm_of("m@https://llm.example.com/v1").price is None


async def test_the_settings_reach_every_call() -> None:
    from decisor.runtime.budget import Budget
    from decisor.runtime.run import Run

    async with llama() as server:
        llm = choose.choose_llm(f"m@{server.origin}/v1 max_tokens=77 temperature=0.3", ALONE)
        assert llm is not None
        await Run(llm, Toolbox([]), Budget()).ask("Hi", str)
        await llm.close()
    assert (server.bodies[0]["max_tokens"], server.bodies[0]["temperature"]) == (77, 0.3)


def test_python_takes_the_object(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def reply(request: dict[str, Any]) -> str:
        seen.append(request)
        return "Final answer: none"

    (tmp_path / "a.txt").write_text("Lyon is a town.")
    with serve_threaded(reply) as url:
        result = decisor.ask(
            "Where?", docs=tmp_path / "a.txt", technique="rag", llm=decisor.LLMSpec("m", url, max_tokens=55)
        )
    assert result.llm == "m" and seen[0]["max_tokens"] == 55


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, "
            "you requested 9121 tokens (8865 in the messages, "
            "256 in the completion). Please reduce the length of the messages or completion.",
            (8192, 8865),
        ),
        (
            "This model's maximum context length is 4096 tokens. However, your request has 5012 input tokens. "
            "Please reduce the length of the input messages.",
            (4096, 5012),
        ),
        ("the request exceeds the available context size (1024 tokens), try increasing it", (1024, 0)),
        ("request (1545 tokens) exceeds the available context size (1024 tokens), try increasing it", (1024, 1545)),
        ("prompt is too long: 210000 tokens > 200000 maximum", (200000, 210000)),
        ("input length exceeds maximum context length of 2048 tokens", (2048, 0)),
        ("The model is overloaded.", (0, 0)),
    ],
)
def test_both_numbers_of_a_refusal_are_read(words: str, sizes: tuple[int, int]) -> None:
    assert read_refused_sizes(words) == sizes


async def test_a_context_is_looked_for_at_most_twice() -> None:
    looks: list[int] = []

    def look() -> int:
        looks.append(1)
        return 0

    context = ContextLength(look)
    assert [await context.find() for _ in range(5)] == [0] * 5 and len(looks) == 2
    context.learn(512)
    assert await context.find() == 512
