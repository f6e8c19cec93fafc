"""The long description of the package: README.md with links that hold on a package index."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """``source`` of [tool.hatch.metadata.hooks.custom]: where the files of this repository can be read, if anywhere."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        for_index = runpy.run_path(str(root / "docs" / "pages" / "package_readme.py"))["for_index"]
        text = for_index((root / "README.md").read_text("utf-8"), self.config.get("source", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
