"""Identity providers on this machine: oidc-provider for node, where it is installed, and one that lies.

``tests/servers/databases.sh start identity`` installs the first; each test starts one of its own:

    with identity_provider(tmp_path, address, key) as issuer: ... sign_in(client, "ann") ...
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jwt.algorithms import RSAAlgorithm

from servers.sql_databases import lacking

# Tests have a home of their own: that of the account is in the system's list.
TREES = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "decisor-servers"
HOME = Path(os.environ.get("DECISOR_TREES", TREES)) / "oidc-provider-9"
SCRIPT = Path(__file__).with_suffix(".mjs")


def free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def new_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


def jwk(key: Any, kid: str) -> dict[str, Any]:
    """Of a private or a public key."""
    fields = {name: value for name, value in json.loads(RSAAlgorithm.to_jwk(key)).items() if name != "key_ops"}
    return fields | {"kid": kid, "use": "sig", "alg": "RS256"}


@contextmanager
def identity_provider(folder: Path, address: str, key: RSAPrivateKey, kid: str = "one", port: int = 0) -> Iterator[str]:
    """Gives its issuer. ``address``: of the server that people sign in to."""
    node = shutil.which("node")
    if node is None or not HOME.is_dir():
        lacking("identity provider (oidc-provider)", FileNotFoundError(HOME))
    keys = folder / f"keys-{kid}.json"
    keys.write_text(json.dumps({"keys": [jwk(key, kid)]}), "utf-8")
    port = port or free_port()
    # Threads of node have no room for a larger stack.
    environ = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    words = [str(node), str(SCRIPT), str(HOME), str(port), address, str(keys)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"listening\n"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def to_the_end(client: httpx.Client, response: httpx.Response, name: str, stop: str = "\n") -> httpx.Response:
    """Follows redirects and fills in the provider's forms, as a person in a browser. stop: part of an address that is
    not fetched."""
    for _ in range(12):
        if response.is_redirect:
            address = str(response.next_request.url) if response.next_request else ""
            if stop in address:
                return response
            response = client.get(address)
        elif form := re.search(r'<form[^>]*action="([^"]+)"[^>]*>(.*?)</form>', response.text, re.S):
            fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[2]))
            if "login" in form[2]:
                fields |= {"login": name, "password": "any"}
            if "logoutForm" in response.text:  # its button stands beside the form
                fields["logout"] = "yes"
            response = client.post(str(response.url.join(unescape(form[1]))), data=fields)
        else:
            break
    return response


def sign_in(client: httpx.Client, name: str, after: str = "/") -> httpx.Response:
    return to_the_end(client, client.get("/login", params={"next": after}), name)


@contextmanager
def lying_provider(public: Any, token: Callable[[dict[str, str]], str]) -> Iterator[str]:
    """Gives the issuer of one that answers each code with the token that is made of the code's fields."""
    content: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def answer(self, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.answer(content["/" + self.path.rpartition("/")[2]])

        def do_POST(self) -> None:
            fields = dict(httpx.QueryParams(self.rfile.read(int(self.headers["content-length"])).decode()))
            self.answer({"access_token": "a", "token_type": "Bearer", "id_token": token(fields)})

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = f"http://127.0.0.1:{server.server_address[1]}"
    ends = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "jwks"}
    content["/openid-configuration"] = {"issuer": issuer} | {end: f"{issuer}/{path}" for end, path in ends.items()}
    content["/jwks"] = {"keys": [jwk(public, "one")]}
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
