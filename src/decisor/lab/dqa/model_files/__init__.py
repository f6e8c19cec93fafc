"""The two worlds of Decision QA as model files: the printed rules, in SQL."""

from __future__ import annotations

from pathlib import Path

FILES = {name: Path(__file__).parent / f"{name}.toml" for name in ("building", "locating")}
