"""The policy plays all three techniques, over HTTP, on real databases with the released content."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
