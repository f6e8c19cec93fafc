"""Server-sent events as they come, in pieces of any size."""

from __future__ import annotations

import re
from collections.abc import Iterator

LINE_END = re.compile(rb"\r\n|\n|\r")
MARK = b"\xef\xbb\xbf"


class EventStream:
    """Takes bytes, gives the data of each event that is whole. Comments, which keep a connection alive, are no events.

    An event of the name ``error``, or a field of that name (llama.cpp), comes as an object that has ``error``.

    >>> stream = EventStream()
    >>> pieces = b": hello\\r\\n\\r\\ndata: {", b'"a":\\r\\ndata: 1}\\r', b"\\n\\r\\n"
    >>> [data for piece in pieces for data in stream.feed(piece)]
    ['{"a":\\n1}']
    """

    def __init__(self) -> None:
        self.rest = b""
        self.name = b""
        self.data: list[bytes] = []
        self.is_first = True

    def feed(self, piece: bytes) -> Iterator[str]:
        text = self.rest + piece
        held_back = b"\r" if text.endswith(b"\r") else b""  # its line feed may be on the way
        *lines, rest = LINE_END.split(text.removesuffix(b"\r"))
        if held_back:
            rest += held_back
        self.rest = rest
        for line in lines:
            yield from self._line(line)

    def end(self) -> Iterator[str]:
        """What was not ended by an empty line: some leave out the last one."""
        for line in (self.rest.removesuffix(b"\r"), b""):
            yield from self._line(line)
        self.rest = b""

    def _line(self, line: bytes) -> Iterator[str]:
        if self.is_first:
            line, self.is_first = line.removeprefix(MARK), False
        if not line:
            if self.data:
                data = b"\n".join(self.data).decode("utf-8", "replace")
                is_error = self.name == b"error" and '"error"' not in data
                yield f'{{"error": {data}}}' if is_error else data
            self.name, self.data = b"", []
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self.data.append(value)
        elif name == b"event":
            self.name = value
        elif name == b"error":
            self.data.append(b'{"error": %b}' % value)
