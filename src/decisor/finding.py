"""One thing that a check says of a file: of a decision model, or of definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """``number``: of the check, 0 where they have none. ``line``: in the file, 0 where it has none. A ``doubt`` may be
    right as it is."""

    number: int
    line: int
    words: str
    kind: Literal["error", "doubt"] = "error"

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line and not self.words.startswith("line ") else ""
        check = f" (check {self.number})" if self.number else ""
        return f"{place}{'' if self.kind == 'error' else 'doubt: '}{self.words}{check}"
