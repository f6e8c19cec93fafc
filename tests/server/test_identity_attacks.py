"""Tokens that nobody should believe, and headers that anybody can send: each is refused with a line that says why."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from decisor.errors import SetupError
from decisor.server.identity import keys_of
from decisor.server.settings import ServerSettings
from decisor.server.users import digest_of_token, read_users
from server.serving import Served, served, sources
from servers.identity_provider import free_port, identity_provider, jwk, lying_provider, new_key, sign_in

pytest.importorskip("authlib")
KEY, OTHER = new_key(), new_key()
PUBLIC = KEY.public_key()
PEM = PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
GROUP = '[group.sales]\nconnections = ["sql"]\n'
Claims = dict[str, Any]


def claims(issuer: str, **changes: Any) -> Claims:
    now = int(time.time())
    own = {"iss": issuer, "aud": "decisor", "sub": "ann", "groups": ["sales"], "iat": now, "exp": now + 300}
    return {name: value for name, value in (own | changes).items() if value is not None}


def signed(content: Claims, key: Any = KEY, algorithm: str = "RS256", **headers: Any) -> str:
    return jwt.encode(content, key, algorithm, {"kid": "one", **headers})


def by_hand(header: Claims, content: Claims, secret: bytes | None = None) -> str:
    """What PyJWT does not sign: no algorithm, or a public key as the secret of HS256."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, content)]
    mac = hmac.digest(secret, b".".join(parts), hashlib.sha256) if secret is not None else b""
    return b".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=")]).decode()


def with_changed_claims(token: str) -> str:
    head, body, mac = token.split(".")
    content = json.loads(base64.urlsafe_b64decode(body + "==")) | {"sub": "boss"}
    return ".".join([head, base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("="), mac])


def signed_with_a_key_of_its_own(content: Claims) -> str:
    own = jwk(OTHER.public_key(), "one")
    return signed(content, OTHER, jwk=own, jku="http://127.0.0.1:1/jwks", x5u="http://127.0.0.1:1/x")


FORGED: dict[str, tuple[Callable[[Claims], str], str]] = {
    "another issuer": (lambda own: signed(own | {"iss": "https://evil.example"}), "'iss'"),
    "no issuer": (lambda own: signed({**own} | {"iss": ""}), "'iss'"),
    "issuer with a slash": (lambda own: signed(own | {"iss": own["iss"] + "/"}), "'iss'"),
    "another audience": (lambda own: signed(own | {"aud": "other"}), "'aud'"),
    "audiences without this one": (lambda own: signed(own | {"aud": ["other", "third"]}), "'aud'"),
    "no audience": (lambda own: signed({k: v for k, v in own.items() if k != "aud"}), "'aud'"),
    "expired": (lambda own: signed(own | {"exp": int(time.time()) - 61}), "expired"),
    "without an end": (lambda own: signed({k: v for k, v in own.items() if k != "exp"}), "'exp'"),
    "an end that is no number": (
        lambda own: by_hand({"alg": "RS256", "kid": "one"}, own | {"exp": "later"}),
        "signature",
    ),
    "not yet valid": (lambda own: signed(own | {"nbf": int(time.time()) + 120}), "not yet valid"),
    "issued in the future": (lambda own: signed(own | {"iat": int(time.time()) + 120}), "in the future"),
    "algorithm none": (lambda own: by_hand({"alg": "none"}, own), "lgorithm"),
    "algorithm NoNe with a key's name": (lambda own: by_hand({"alg": "NoNe", "kid": "one"}, own), "lgorithm"),
    "HS256 with the public key (PEM)": (lambda own: by_hand({"alg": "HS256", "kid": "one"}, own, PEM), "lgorithm"),
    "HS256 with the modulus": (
        lambda own: by_hand({"alg": "HS256", "kid": "one"}, own, jwk(PUBLIC, "one")["n"].encode()),
        "lgorithm",
    ),
    "HS256 with an empty secret": (lambda own: by_hand({"alg": "HS256", "kid": "one"}, own, b""), "lgorithm"),
    "no algorithm": (lambda own: by_hand({"kid": "one"}, own), "'alg'"),
    "signed by another key": (lambda own: signed(own, OTHER), "signature"),
    "a key of its own in its head": (signed_with_a_key_of_its_own, "refused"),
    "an unknown name of a key": (lambda own: signed(own, OTHER, kid="two"), "No key"),
    "a path as the name of a key": (lambda own: signed(own, OTHER, kid="../../dev/null"), "No key"),
    "another person written in": (lambda own: with_changed_claims(signed(own)), "signature"),
    "the signature cut off": (lambda own: signed(own).rpartition(".")[0] + ".", "signature"),
    "critical extensions": (lambda own: signed(own, crit=["evil"], evil=1), "refused"),
    "too long": (lambda own: signed(own | {"more": "x" * 20_000}), "16,384"),
    "no token": (lambda own: "ann", "refused"),
    "five parts, as an encrypted one": (lambda own: "a.b.c.d.e", "refused"),
    "claims that are a list": (lambda own: jwt.api_jws.encode(b"[1]", KEY, "RS256", {"kid": "one"}), "refused"),
    "claims nested without end": (
        lambda own: jwt.api_jws.encode(b"[" * 7_000 + b"]" * 1, KEY, "RS256", {"kid": "one"}),
        "refused",
    ),
    "no name": (lambda own: signed({k: v for k, v in own.items() if k != "sub"}), "name of a person"),
    "a name with a line of its own": (lambda own: signed(own | {"sub": "ann\nX-Admin: 1"}), "name of a person"),
    "a name that looks like another": (lambda own: signed(own | {"sub": "\u0430nn"}), "name of a person"),
    "a name without end": (lambda own: signed(own | {"sub": "a" * 129}), "name of a person"),
    "groups that are a table": (lambda own: signed(own | {"groups": {"sales": True}}), "list of names"),
    "a group of another case": (lambda own: signed(own | {"groups": ["Sales"]}), "in no group"),
    "no group": (lambda own: signed(own | {"groups": []}), "in no group"),
}


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server behind a proxy that signs, and the issuer of its tokens."""
    folder = tmp_path_factory.mktemp("proxied")
    with lying_provider(PUBLIC, lambda fields: "") as issuer:
        file = folder / "users.toml"
        table = f'issuer = "{issuer}"\naudience = "decisor"\nkeys = "{issuer}/jwks"\n'
        file.write_text(f'[jwt]\nheader = "X-Signed-Identity"\n{table}{GROUP}', "utf-8")
        with served(ServerSettings(sources(folder), users=read_users(file, ["sql"]))) as place:
            yield place, issuer


def answer_to(place: Served, token: str) -> tuple[int, str]:
    reply = place.client.get("/api/choices", headers={"X-Signed-Identity": token})
    return reply.status_code, reply.text


def test_a_token_of_the_proxy_is_believed(proxied: tuple[Served, str]) -> None:
    place, issuer = proxied
    for content in (claims(issuer), claims(issuer, aud=["other", "decisor"]), claims(issuer, groups="sales")):
        status, text = answer_to(place, signed(content))
        assert (status, '"user":"ann"' in text) == (200, True), text
    assert place.client.get("/api/choices").status_code == 401
    twice = place.client.get("/api/choices", headers=[("X-Signed-Identity", signed(claims(issuer)))] * 2)
    assert twice.status_code == 400


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_is_refused_in_the_header_of_a_proxy(proxied: tuple[Served, str], name: str) -> None:
    place, issuer = proxied
    forge, words = FORGED[name]
    status, text = answer_to(place, forge(claims(issuer)))
    assert (status in (401, 403), words in json.loads(text)["error"]) == (True, True), text


LOGIN_ONLY: dict[str, tuple[Callable[[Claims], str], str]] = {
    "another nonce": (lambda own: signed(own | {"nonce": "of another sign-in"}), "'nonce'"),
    "no nonce": (lambda own: signed({k: v for k, v in own.items() if k != "nonce"}), "nonce"),
    "a token of another client": (lambda own: signed(own | {"azp": "other"}), "another client"),
    "a token for two clients": (lambda own: signed(own | {"aud": ["decisor", "other"]}), "another client"),
    "no token at all": (lambda own: "", "refused"),
}


@pytest.fixture(scope="module")
def told() -> dict[str, Callable[[Claims], str]]:
    """What makes the next ID token of the provider, under "forge"."""
    return {}


@pytest.fixture(scope="module")
def lied_to(
    tmp_path_factory: pytest.TempPathFactory, told: dict[str, Callable[[Claims], str]]
) -> Iterator[tuple[Served, dict[str, Callable[[Claims], str]]]]:
    """A server whose people sign in at a provider that answers with any token. The code of a sign-in is its nonce."""
    folder, port = tmp_path_factory.mktemp("lied"), free_port()
    place: list[str] = []
    with lying_provider(PUBLIC, lambda fields: told["forge"](claims(place[0], nonce=fields["code"]))) as issuer:
        place.append(issuer)
        file = folder / "users.toml"
        table = f'issuer = "{issuer}"\nclient_id = "decisor"\naddress = "http://127.0.0.1:{port}"\n'
        file.write_text(f"[login]\n{table}{GROUP}", "utf-8")
        users = read_users(file, ["sql"])
        with served(ServerSettings(sources(folder), users=users), port=port) as server:
            yield server, told


def come_back(place: Served, client: httpx.Client, **changes: str) -> httpx.Response:
    """Begins a sign-in and comes back from the provider."""
    query = httpx.URL(client.get("/login").headers["location"]).params
    return client.get("/login/callback", params={"state": query["state"], "code": query["nonce"], **changes})


def test_a_true_token_begins_a_session(lied_to: tuple[Served, dict[str, Callable[[Claims], str]]]) -> None:
    place, told = lied_to
    told["forge"] = signed
    with httpx.Client(base_url=place.url, trust_env=False) as ann:
        assert come_back(place, ann).status_code == 303
        assert ann.get("/api/choices").json()["user"] == "ann"


@pytest.mark.parametrize("name", [*FORGED, *LOGIN_ONLY])
def test_a_forged_token_begins_no_session(
    lied_to: tuple[Served, dict[str, Callable[[Claims], str]]], name: str
) -> None:
    place, told = lied_to
    told["forge"], words = (FORGED | LOGIN_ONLY)[name]
    with httpx.Client(base_url=place.url, trust_env=False) as client:
        reply = come_back(place, client)
        assert reply.status_code in (400, 401, 403), reply.text
        assert words in reply.text.replace("&#x27;", "'"), reply.text
        assert client.get("/api/choices").status_code == 401
        assert not client.cookies


def test_an_answer_of_another_provider_or_with_markup_is_refused(
    lied_to: tuple[Served, dict[str, Callable[[Claims], str]]],
) -> None:
    place, told = lied_to
    told["forge"] = signed
    with httpx.Client(base_url=place.url, trust_env=False) as client:
        assert "another identity provider" in come_back(place, client, iss="https://evil.example").text
        state = httpx.URL(client.get("/login").headers["location"]).params["state"]
        reply = client.get("/login/callback", params={"state": state, "error": "<script>alert(1)</script>"})
        assert (reply.status_code, "<script>" in reply.text) == (403, False)
        assert client.get("/login/callback", params={"state": "", "code": "x"}).status_code == 400
        client.cookies.set(f"decisor-{httpx.URL(place.url).port}-login", "", path="/login")
        assert client.get("/login/callback", params={"state": "", "code": "x"}).status_code == 400
        assert client.get("/api/choices").status_code == 401


def test_an_email_that_is_not_verified_names_nobody(tmp_path: Path) -> None:
    with lying_provider(PUBLIC, lambda fields: "") as issuer:
        file = tmp_path / "users.toml"
        table = f'issuer = "{issuer}"\naudience = "decisor"\nkeys = "{issuer}/jwks"\nname = "email"\n'
        file.write_text(f'[jwt]\nheader = "X-Signed-Identity"\n{table}{GROUP}', "utf-8")
        with served(ServerSettings(sources(tmp_path), users=read_users(file, ["sql"]))) as place:
            own = claims(issuer, email="ann@shop.example")
            assert answer_to(place, signed(own))[0] == 200
            assert answer_to(place, signed(own | {"email_verified": True}))[0] == 200
            for verified in (False, "false", 0, None):
                status, text = answer_to(place, signed(own | {"email_verified": verified}))
                assert (status, "not verified" in text) == (403, True)


def test_keys_that_the_provider_changes_are_read_again_and_old_ones_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, at = free_port(), free_port()
    address, issuer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{at}"
    monkeypatch.setenv("DECISOR_TEST_SECRET", "secret-of-decisor")
    file = tmp_path / "users.toml"
    table = f'issuer = "{issuer}"\nclient_id = "decisor"\nclient_secret = "${{DECISOR_TEST_SECRET}}"\n'
    file.write_text(f'[login]\n{table}address = "{address}"\n{GROUP}', "utf-8")
    keys = keys_of(f"{issuer}/jwks")
    with served(ServerSettings(sources(tmp_path), users=read_users(file, ["sql"])), port=port) as place:
        for kid, key in (("one", KEY), ("two", OTHER)):
            with (
                identity_provider(tmp_path, address, key, kid, at),
                httpx.Client(base_url=place.url, trust_env=False, timeout=30) as ann,
            ):
                sign_in(ann, "ann")
                assert ann.get("/api/choices").json()["user"] == "ann"
            # A forged name of a key makes nobody ask the provider again at once: later it does.
            keys.at -= 60
        assert keys.keys is not None
        assert [one.kid for one in keys.keys] == ["two"]


def test_a_provider_of_another_name_is_not_believed_and_one_that_is_gone_is_told(tmp_path: Path) -> None:
    port = free_port()
    with lying_provider(PUBLIC, lambda fields: "") as issuer:
        for place, words in (
            (f"{issuer}/realm", "calls itself"),
            (f"http://127.0.0.1:{free_port()}", "does not answer"),
        ):
            file = tmp_path / "users.toml"
            table = f'issuer = "{place}"\nclient_id = "decisor"\naddress = "http://127.0.0.1:{port}"\n'
            file.write_text(f"[login]\n{table}{GROUP}", "utf-8")
            with served(ServerSettings(users=read_users(file, ["sql"])), port=port) as server:
                reply = server.client.get("/login")
                assert (reply.status_code, words in reply.text) == (502, True), reply.text


@pytest.mark.parametrize(("addresses", "status"), [('["127.0.0.1"]', 200), ('["10.0.0.0/8", "::1"]', 403)])
def test_a_header_is_believed_from_the_proxy_alone(tmp_path: Path, addresses: str, status: int) -> None:
    file = tmp_path / "users.toml"
    token = f'[robot]\ntoken = "{digest_of_token("r")}"\n'
    file.write_text(f"[proxy]\naddresses = {addresses}\n{GROUP}{token}", "utf-8")
    with served(ServerSettings(sources(tmp_path), users=read_users(file, ["sql"]))) as place:
        heads = [("X-Forwarded-User", "ann"), ("X-Forwarded-Groups", "other, sales")]
        reply = place.client.get("/api/choices", headers=heads)
        assert reply.status_code == status, reply.text
        if status == 200:
            assert reply.json()["user"] == "ann"
            assert place.client.get("/api/choices", headers=[*heads, ("X-Forwarded-User", "boss")]).status_code == 400
            assert place.client.get("/api/choices", headers=heads[:1]).status_code == 403
            assert (
                place.client.get("/api/choices", headers=[("X-Forwarded-User", "robot"), heads[1]]).status_code == 403
            )
        # An address that a header names is nobody's address.
        spoofed = [*heads, ("X-Forwarded-For", "10.0.0.1"), ("X-Real-IP", "10.0.0.1"), ("Forwarded", "for=10.0.0.1")]
        assert place.client.get("/api/choices", headers=spoofed).status_code == status
        assert place.client.get("/api/choices").status_code == 401
        assert place.client.get("/api/choices", headers={"authorization": "Bearer r"}).status_code == 200


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"[login]\nissuer = 'https://a'\nclient_id = 'x'\naddress = 'https://b'\n{GROUP}", ""),
        ("[login]\nissuer = 'https://a'\nclient_id = 'x'\naddress = 'https://b'\n", "line 1: login lets nobody in"),
        (
            f"[login]\nissuer = 'http://a.example'\nclient_id = 'x'\naddress = 'https://b'\n{GROUP}",
            "line 2: login.issuer",
        ),
        (
            f"[login]\nissuer = 'http://localhost.evil.example'\nclient_id = 'x'\naddress = 'https://b'\n{GROUP}",
            "line 2: login.issuer",
        ),
        (
            f"[login]\nissuer = 'https://me@evil.example'\nclient_id = 'x'\naddress = 'https://b'\n{GROUP}",
            "line 2: login.issuer",
        ),
        (
            f"[login]\nissuer = 'https://a'\nclient_id = 'x'\nalgorithms = ['HS256']\naddress = 'https://b'\n{GROUP}",
            "line 4: login.algorithms",
        ),
        (
            f"[login]\nissuer = 'https://a'\nclient_id = 'x'\nalgorithms = ['none']\naddress = 'https://b'\n{GROUP}",
            "line 4: login.algorithms",
        ),
        (
            f"[login]\nissuer = 'https://a'\nclient_id = 'x'\nadmins = ['ann']\naddress = 'https://b'\n{GROUP}",
            "line 4: login.admins is not known",
        ),
        (f"[login]\nissuer = 'https://a'\naddress = 'https://b'\n{GROUP}", "line 1: login needs client_id"),
        (
            f"[login]\nissuer = 'https://a'\nclient_id = 'x'\nclient_secret = '${{NOT_SET}}'\naddress = 'https://b'\n{GROUP}",
            "NOT_SET is not set",
        ),
        (f"[proxy]\naddresses = ['all']\n{GROUP}", "line 2: proxy.addresses"),
        (
            f"[proxy]\naddresses = ['::1']\n[jwt]\nheader = 'X'\nissuer = 'a'\naudience = 'b'\nkeys = 'https://c'\n{GROUP}",
            "jwt stands beside proxy",
        ),
        (
            f"[jwt]\nheader = 'Authorization'\nissuer = 'a'\naudience = 'b'\nkeys = 'https://c'\n{GROUP}",
            "line 2: jwt.header",
        ),
        ("[group.a]\nconnections = ['sqll']\n", "line 2: group.a.connections has 'sqll', and there is sql"),
        ("[group.a]\ntechniques = ['agnet']\n", "line 2: group.a.techniques has 'agnet'"),
        ("[group.a]\nllms = ['n']\n", "line 2: group.a.llms has 'n', and there is m"),
        ("[group.a]\nrow = {}\n", "line 2: group.a.row is not known"),
        ("[group.a.budget.day]\ndollar = 1\n", "line 2: group.a.budget.day.dollar is not known"),
        ("[group.a.budget]\nday = { dollars = -1 }\n", "line 2: group.a.budget.day"),
        ("group = 3\n", "line 1: group is to be a table"),
        (f"{GROUP}[r]\ntoken = '{digest_of_token('r')}'\ngroups = ['it']\n", "line 5: r.groups has 'it'"),
        (
            f"{GROUP}[r]\ntoken = '{digest_of_token('r')}'\ngroups = ['sales']\nreveal = true\n",
            "line 5: r.groups gives all rights",
        ),
    ],
)
def test_a_file_with_what_is_not_known_is_refused_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "users.toml"
    file.write_text(text, "utf-8")
    if not complaint:
        assert read_users(file, ["sql"], ["m"]).login
        return
    with pytest.raises(SetupError, match=complaint):
        read_users(file, ["sql"], ["m"])
