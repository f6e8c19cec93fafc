"""What a child of ours has at hand, as JSON: its environment, path, flags and working folder."""

import json
import os
import sys
from pathlib import Path


def main() -> None:
    folder = Path.cwd()
    told = {
        "environment": dict(os.environ),
        "path": sys.path,
        "isolated": sys.flags.isolated,
        "folder": str(folder),
        "in it": [path.name for path in folder.iterdir()],
        "input": sys.stdin.read(),
    }
    print(json.dumps(told))
