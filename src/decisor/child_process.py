"""Python processes of our own: what they need to find the same modules."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def module_path() -> str:
    """For PYTHONPATH: this package and all that is imported here, but not the folder that happens to be the current."""
    return os.pathsep.join([str(Path(__file__).resolve().parents[1]), *filter(None, sys.path)])
