"""A server that keeps whatever anybody sends it: nobody should."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from servers.openai_server import completion


@contextmanager
def listening(reply: str = "yes") -> Iterator[tuple[str, list[str]]]:
    """Its base URL, and what came: request lines, heads and bodies. It answers as an OpenAI-compatible endpoint."""
    came: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            came.append(f"{self.requestline}\n{self.headers}\n{body.decode(errors='replace')}")
            said = json.dumps(completion(json.loads(body or b"{}"), reply, "m")).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_HEAD = answer  # noqa: N815 (names of the library's)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", came
    finally:
        server.shutdown()
        server.server_close()
