"""axe-core, which finds what keeps people from using a page. It is a tool of the tests alone and no part of Decisor.

    python tests/server/axe.py     fetches it from npm (MPL-2.0, 3 MB) into ~/.cache/decisor-axe

Tests that need it are skipped where it was not fetched; .ci/run fetches it where npm is there.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

VERSION = "4.10.3"
HOME = Path(os.environ.get("HOME_OF_PERSON") or Path.home()) / ".cache" / "decisor-axe"
FILE = HOME / f"axe-{VERSION}.min.js"


def missing() -> str:
    """Why it cannot be had, or ''."""
    return "" if FILE.is_file() else "needs axe-core: python tests/server/axe.py"


def fetch() -> None:
    HOME.mkdir(parents=True, exist_ok=True)
    subprocess.run(["npm", "pack", f"axe-core@{VERSION}"], cwd=HOME, check=True, stdout=subprocess.DEVNULL)
    pack = HOME / f"axe-core-{VERSION}.tgz"
    with tarfile.open(pack) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        FILE.write_bytes(script.read())
    pack.unlink()


if __name__ == "__main__":
    if missing():
        fetch()
    print(FILE)
