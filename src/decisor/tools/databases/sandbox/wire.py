"""Frames between parent and worker: four bytes of length, big-endian, then a JSON object in UTF-8."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from functools import lru_cache
from typing import Any, BinaryIO

from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.policy import Policy
from decisor.types import Table

HEAD = struct.Struct(">I")
Frame = dict[str, Any]
"""A JSON object."""
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def pack(frame: Frame) -> bytes:
    """Lone surrogates become question marks: what a database holds must never break the pipe."""
    return framed(ENCODER.encode(frame))


def framed(text: str) -> bytes:
    body = text.encode("utf-8", "replace")
    return HEAD.pack(len(body)) + body


def request(op: str, statement: str, parameters: Frame, caps: Caps, trusted: bool) -> bytes:
    """The frame that asks a worker for something; the caps, which seldom change, are written once.

    >>> json.loads(request("run", "SELECT 1", {}, Caps(), False)[HEAD.size:])["op"]
    'run'
    """
    text = ENCODER.encode({"op": op, "statement": statement, "parameters": parameters, "trusted": trusted})
    return framed(f'{text[:-1]},"caps":{caps_json(caps)}}}')


def receive(pipe: BinaryIO) -> Frame | None:
    """The next frame, None at the end of the pipe."""
    head = pipe.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    body = pipe.read(HEAD.unpack(head)[0])
    frame: Frame = json.loads(body)
    return frame


def send(pipe: BinaryIO, frame: Frame) -> None:
    pipe.write(pack(frame))
    pipe.flush()


@lru_cache(maxsize=256)
def caps_to(caps: Caps) -> Frame:
    return asdict(caps)


@lru_cache(maxsize=256)
def caps_json(caps: Caps) -> str:
    return ENCODER.encode(caps_to(caps))


def caps_of(data: Frame) -> Caps:
    """
    >>> caps_of(caps_to(Caps(rows=3, deny=("secret",)))) == Caps(rows=3, deny=("secret",))
    True
    """
    policy = data["policy"]
    rows = tuple((table, condition) for table, condition in policy["rows"])
    own = Policy(rows, tuple(policy["mask"]), policy["key"], policy["reveal"])
    return Caps(**{**data, "deny": tuple(data["deny"]), "only": tuple(data["only"]), "policy": own})


def table_to(table: Table) -> Frame:
    return {"columns": table.columns, "rows": table.rows, "truncated": table.truncated, "note": table.note}


def table_of(data: Frame) -> Table:
    return Table(tuple(data["columns"]), tuple(map(tuple, data["rows"])), data["truncated"], data["note"])
