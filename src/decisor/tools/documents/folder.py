"""From a folder or a file to documents: what can be read, by the ends of the names."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from decisor.cache import stamp_of
from decisor.errors import SetupError
from decisor.tools.documents.cutting import Content, passages
from decisor.tools.documents.index_files import is_index
from decisor.tools.documents.parser_process import READERS, ParserProcess
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.row_documents import RowForm, bad, csv_documents, json_documents
from decisor.tools.documents.update import Document

LARGEST = 100 * 2**20
ROWS: dict[str, Callable[[IO[bytes], str, str, RowForm], Iterator[Document]]] = {
    ".jsonl": json_documents,
    ".ndjson": json_documents,
    ".csv": csv_documents,
    ".tsv": csv_documents,
}
KINDS = (*READERS, *ROWS)


@dataclass
class FolderReader:
    """A source that is being read. ``total`` and ``at`` are bytes, for a progress bar; ``strange`` counts what was
    left out by the ends of names, ``outside`` the links that lead out of the folder or to no file."""

    root: Path
    form: RowForm = field(default_factory=RowForm)
    total: int = 0
    at: int = 0
    strange: Counter[str] = field(default_factory=Counter)
    outside: list[str] = field(default_factory=list)
    parser: ParserProcess = field(default_factory=ParserProcess)

    def __post_init__(self) -> None:
        if not self.root.exists():
            raise SetupError(f"There is nothing at {self.root}: name a folder, a file, or the URL of a database.")
        if self.root.is_file() and kind_of(self.root) not in KINDS:
            raise SetupError(f"{self.root} cannot be read: it ends in none of {' '.join(KINDS)}.")
        self.files = [self.root] if self.root.is_file() else list(self._walk())
        self.total = sum(path.stat().st_size for path in self.files)
        self.at = 0

    def documents(self) -> Iterator[Document]:
        done = 0
        for path in self.files:
            name = key_of(path, self.root)
            kind = kind_of(path)
            if kind in ROWS:
                yield from self._rows(path, name, kind)
            else:
                yield file_document(path, name, self.parser, self.form.words)
            self.at = (done := done + path.stat().st_size)

    def _rows(self, path: Path, name: str, kind: str) -> Iterator[Document]:
        before = self.at
        try:
            with path.open("rb") as raw:
                lines = cast(IO[bytes], gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw)
                for document in ROWS[kind](lines, name, "" if self.root.is_file() else name, self.form):
                    self.at = before + raw.tell()
                    yield document
        except OSError as error:
            yield bad(name, f"it cannot be read: {error.strerror}")

    def close(self) -> None:
        """End the process that parses."""
        self.parser.close()

    def _walk(self) -> Iterator[Path]:
        """Regular files in the order of their names; hidden ones and indexes are left out."""
        real = self.root.resolve()
        for folder, inner, names in os.walk(self.root):
            inner[:] = sorted(one for one in inner if not one.startswith(".") and not is_index(Path(folder) / one))
            for name in sorted(names):
                path = Path(folder) / name
                if name.startswith("."):
                    continue
                if not stat.S_ISREG(path.lstat().st_mode) and not _inside(path, real):
                    self.outside.append(key_of(path, self.root))
                elif kind_of(path) in KINDS:
                    yield path
                else:
                    self.strange[path.suffix.lower() or "no ending"] += 1


def key_of(path: Path, root: Path) -> str:
    """Below its folder, or by its own name where it is the root; bytes that are no UTF-8 are replaced."""
    name = path.name if path == root else path.relative_to(root).as_posix()
    return os.fsencode(name).decode("utf-8", "replace")


def _inside(path: Path, real: Path) -> bool:
    """A link to a regular file within the folder."""
    target = path.resolve()
    return path.is_symlink() and target.is_file() and target.is_relative_to(real)


def kind_of(path: Path) -> str:
    """
    >>> kind_of(Path("a/B.MD")), kind_of(Path("c.jsonl.gz")), kind_of(Path("d.txt.gz"))
    ('.md', '.jsonl', '.gz')
    """
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    return inner if suffix == ".gz" and inner in ROWS else suffix


def file_document(path: Path, name: str, parser: ParserProcess, words: int) -> Document:
    """One file as one document, titled by what it says of itself, else by its name."""
    try:
        if path.stat().st_size > LARGEST:
            return bad(name, f"it is larger than {LARGEST >> 20} MB: split it")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()
    except OSError as error:
        return bad(name, f"it cannot be read: {error.strerror}")

    def cut() -> tuple[Passage, ...]:
        content = parser.read(kind_of(path), path)
        return passages(name, Content(content.title or Path(name).stem, content.blocks), words)

    return Document(name, stamp_of(digest, str(words)), cut)
