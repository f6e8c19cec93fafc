"""What an HTTP API replied, as an observation: records where it is JSON, else its text. A body is data: it stands in a
record or in quotes, and its texts hide nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass

from decisor.errors import ToolError
from decisor.outside import clean_text, one_line, quoted, text_codec
from decisor.tools.functions.results import Cut, clip, observe
from decisor.types import Observation, Record


def decode(data: bytes, charset: str | None) -> str:
    """By the charset that the reply names, where it is one of texts, else as UTF-8.

    >>> decode("Köln".encode("latin-1"), "ISO-8859-1"), decode(b"K\\xc3\\xb6ln", "hex"), decode(b"ok", None)
    ('Köln', 'Köln', 'ok')
    """
    return data.decode(text_codec(charset or "") or "utf-8", "replace")


@dataclass(frozen=True)
class Reply:
    """``text``: of the body, without keys, cut where the body is over the cap. ``size``: bytes that were read."""

    status: int
    media: str
    text: str
    size: int

    def observe(self, source: str, max_bytes: int, cut: Cut) -> Observation:
        """Raises ToolError where the status is none of success."""
        text = clean_text(self.text)
        if self.status >= 400:
            raise ToolError(f"{source} answered with status {self.status}: {quoted(text.strip())}")
        if not self.text.strip():
            return Observation(note=f"(status {self.status}, an empty reply)")
        whole = self.size <= max_bytes
        if whole and (self.media.endswith("json") or text.lstrip()[:1] in ("{", "[")):
            try:
                return observe(json.loads(self.text), source, cut)
            except (ValueError, RecursionError, ToolError):
                pass  # shown as it is
        if "\x00" in self.text[:1000] or (not self.media.startswith("text") and "\ufffd" in text[:1000]):
            return Observation(
                note=f"(status {self.status}, {self.size:,} bytes of {one_line(self.media, 80)}, which is no text)"
            )
        note = "" if whole else f"The reply is over {max_bytes:,} bytes: ask for less."
        return Observation((Record("r1", text=clip(text, cut.chars), source=source),), note, truncated=not whole)
