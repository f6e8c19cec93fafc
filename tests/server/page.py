"""The page of a real server in a real Chromium: what a person does there, and pictures of it in build/pictures."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import web

from decisor.history.recorder import update_past_run
from decisor.history.store import History, PastRun
from decisor.lab.evaluation_pages import router
from decisor.server.app import WebServer, bind_socket, make_web_server
from decisor.server.live import LiveRun
from decisor.server.settings import ServerSettings
from decisor.trace.events import TraceEntry
from decisor.types import Question
from report.browser import Browser, browser
from servers.openai_server import Reply, completion, serve_app

SOON, AT_ONCE = 30.0, 10
PICTURES = Path(__file__).parent.parent.parent / "build" / "pictures"
KEYS = {
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Space": " ",
    "Down": "\ue015",
    "Control": "\ue009",
    "Shift": "\ue008",
}
Entries = Sequence[TraceEntry]
Live = Iterable[TraceEntry | None]  # None: nothing happens, for as long as an entry takes


@dataclass(frozen=True)
class Page:
    """One window on one server."""

    browser: Browser
    url: str

    def open(self, path: str = "/") -> None:
        self.browser.open(self.url + path)
        self.until("document.querySelector('main h1')")

    def run(self, script: str) -> Any:
        return self.browser.run(script)

    def until(self, condition: str) -> None:
        """Waits until a piece of JavaScript holds."""
        end = time.monotonic() + SOON
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < end, f"{condition}\n{self.text('main')[:2000]}"
            time.sleep(0.05)

    def see(self, words: str, where: str = "main") -> None:
        """Waits until the words can be read there."""
        self.until(f"document.querySelector('{where}')?.innerText.includes({json.dumps(words)})")

    def text(self, where: str = "main") -> str:
        return str(self.run(f"return document.querySelector('{where}')?.innerText ?? ''"))

    def click(self, words: str, where: str = "main") -> None:
        """A button, link or summary, by its words or its label."""
        find = f"""[...document.querySelectorAll('{where} :is(button, a, summary, label)')].find((one) =>
            one.checkVisibility() && (one.innerText.trim() === {json.dumps(words)}
            || one.getAttribute('aria-label') === {json.dumps(words)}))"""
        self.until(find)
        self.run(f"{find}.click()")

    def write(self, field: str, text: str) -> None:
        """Into the field of that id."""
        self.run(f"""const field = document.getElementById('{field}'); field.value = {json.dumps(text)};
            field.dispatchEvent(new Event('input', {{ bubbles: true }}));
            field.dispatchEvent(new Event('change', {{ bubbles: true }}))""")

    def press(self, *keys: str, hold: str = "") -> None:
        """Real keys, as a keyboard sends them."""
        letters = [KEYS.get(key, key) for key in keys]
        presses = [{"type": kind, "value": one} for one in letters for kind in ("keyDown", "keyUp")]
        if hold:
            presses = [{"type": "keyDown", "value": KEYS[hold]}, *presses, {"type": "keyUp", "value": KEYS[hold]}]
        self.browser.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": presses}]})

    def ask(self, question: str = "Which supplier should we drop?", technique: str = "plan_rag", llm: str = "") -> None:
        self.open()
        self.until("document.querySelector('.start #question')")
        self.write("question", question)
        self.write("technique", technique)
        if llm:
            self.write("llm", llm)
        self.click("Decide")

    def answered(self) -> None:
        self.until("document.querySelector('.run.over .result > .decision, .run.over .result > p')")

    def colours(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.browser.cdp("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, name: str, width: int = 1280, height: int = 900, at: str = "") -> None:
        """Light and dark, from the top of the page or from an element."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.browser.size(width, height)
        for scheme in ("light", "dark"):
            self.colours(scheme)
            self.run(f"document.querySelector('{at}').scrollIntoView()" if at else "scrollTo(0, 0)")
            time.sleep(0.15)
            self.browser.screenshot(PICTURES / f"{name}-{scheme}.png")
        self.colours("light")
        self.browser.size(1280, 900)

    def sideways(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.run("return document.documentElement.scrollWidth - innerWidth"))


@contextmanager
def window(
    serving: ServerSettings,
    runs: Mapping[str, Entries] | None = None,
    live: Mapping[str, Live] | None = None,
    traced: str = "",
) -> Iterator[Page]:
    """On a server with these ``runs``, over already, and ``live`` ones, which happen as soon as somebody watches. Both
    end with the block. ``traced``: as of ``browser``."""
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        serving = replace(serving, history=History(Path(folder) / "history"))
        url = stack.enter_context(running(serving, runs or {}, live or {}))
        own = stack.enter_context(browser(traced))
        own.size(1280, 900)
        yield Page(own, url)


@contextmanager
def running(serving: ServerSettings, runs: Mapping[str, Entries], live: Mapping[str, Live]) -> Iterator[str]:
    listening = bind_socket(serving.host, 0)
    port = listening.getsockname()[1]
    ready = threading.Event()
    folder = TemporaryDirectory()
    history = History(Path(folder.name) / "history")
    loops: list[asyncio.AbstractEventLoop] = []

    def started() -> None:
        loops.append(asyncio.get_running_loop())
        ready.set()

    server: WebServer = make_web_server(replace(serving, port=port, history=history), started, [router])
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert ready.wait(SOON)
    for id, entries in runs.items():
        past = reduce(update_past_run, entries, PastRun(Question(f"Run {id}"), began=time.time()))
        server.state.runs.live[id] = LiveRun(past, id, state="finished", entries=list(entries))
    for id, happening in live.items():
        one = LiveRun(PastRun(Question(f"Run {id}"), began=time.time()), id, state="running")
        server.state.runs.live[id] = one
        asyncio.run_coroutine_threadsafe(play(one, happening), loops[0])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(SOON)
        folder.cleanup()
        assert not thread.is_alive()


async def play(live: LiveRun, entries: Live) -> None:
    """Some 500 entries a second."""
    while not live.watchers:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    rest = iter(entries)
    while batch := list(islice(rest, AT_ONCE)):
        for entry in filter(None, batch):
            live.hear(entry)
        await asyncio.sleep(AT_ONCE / 500)
    live.end("finished")


@contextmanager
def writing_llm(reply: Reply, gate: threading.Event | None = None) -> Iterator[str]:
    """An endpoint that streams where it is to: each reply in pieces, its second half only when the gate is open."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        text = reply(body)
        if not body.get("stream"):
            return web.json_response(completion(body, text, "m"))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        half = len(text) // 2
        for part in (text[:half], text[half:]):
            for at in range(0, len(part), 40):
                await send(response, {"choices": [choice({"content": part[at : at + 40]})]})
            if gate is not None:
                await asyncio.to_thread(gate.wait, SOON)
        usage = {"prompt_tokens": 900, "completion_tokens": len(text) // 4}
        await send(response, {"choices": [choice({}, "stop")]}, {"choices": [], "usage": usage}, "[DONE]")
        return response

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", chat)
    served = serve_app(app)
    origin = asyncio.run_coroutine_threadsafe(served.__aenter__(), loop).result(SOON)
    try:
        yield f"{origin}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(served.__aexit__(None, None, None), loop).result(SOON)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SOON)
        loop.close()


def choice(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


async def send(response: web.StreamResponse, *events: Any) -> None:
    for one in events:
        data = one if isinstance(one, str) else json.dumps({"model": "m", **one})
        await response.write(f"data: {data}\n\n".encode())


def by_turn(*replies: str) -> Callable[[dict[str, Any]], str]:
    """The reply to the records that the prompt holds: the first before there are any. No question is unclear to it."""

    def reply(body: dict[str, Any]) -> str:
        text = json.dumps(body["messages"])
        if "Unclear: none" in text:
            return "Unclear: none"
        return replies[max([0, *(at for at in range(1, len(replies)) if f"o{at}.r1" in text)])]

    return reply
