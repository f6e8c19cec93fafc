"""A file system under SQLite that can lose its power: what was not synced is kept or lost, sector by sector."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import apsw

SECTOR = 512
Writes = dict[int, bytes]


class PowerVFS(apsw.VFS):
    """``unsynced``: by file, the sectors written since its last sync, as they were before."""

    def __init__(self, name: str) -> None:
        self.unsynced: dict[str, Writes] = defaultdict(dict)
        self.sizes: dict[str, int] = {}
        super().__init__(name, base="")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> PowerFile:  # noqa: N802
        return PowerFile(self, name, flags)

    def lose_power(self, chance: random.Random, folder: Path) -> None:
        """Write a copy of the files into ``folder`` as they are found when the power is back."""
        for name, before in self.unsynced.items():
            path = Path(name)
            if not path.is_file():
                continue
            content = bytearray(path.read_bytes())
            for at, old in before.items():
                if chance.random() < 0.5:
                    content[at * SECTOR : (at + 1) * SECTOR] = old.ljust(SECTOR, b"\0")[: len(content) - at * SECTOR]
            (folder / path.name).write_bytes(content)


class PowerFile(apsw.VFSFile):
    def __init__(self, vfs: PowerVFS, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self.vfs, self.path = vfs, str(name.filename() if isinstance(name, apsw.URIFilename) else name)
        vfs.unsynced.setdefault(self.path, {})
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        before = self.vfs.unsynced[self.path]
        size = super().xFileSize()
        for at in range(offset // SECTOR, (offset + len(data) - 1) // SECTOR + 1):
            if at not in before:
                there = max(0, min(SECTOR, size - at * SECTOR))
                before[at] = super().xRead(there, at * SECTOR) if there else b""
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self.vfs.unsynced[self.path] = {}
