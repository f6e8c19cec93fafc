"""Where data of tests and measurements lie: ours in ``tests/security``, other people's in a folder of their own."""

import json
import os
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("DECISOR_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
"""Other people's: $DECISOR_DATA, else ../shared/data beside the project. What needs them is skipped without."""
SECURITY = Path(__file__).parent / "security"
"""Ours: hostile and harmless statements, malformed replies, attacks of the web and of rows, secrets to redact."""


def read_security_rows(name: str) -> list[dict[str, Any]]:
    """Read ``name``.jsonl; called in tests, not at import, so that one missing file ends one test."""
    return [json.loads(line) for line in (SECURITY / f"{name}.jsonl").read_text("utf-8").split("\n") if line]
