"""Files are parsed in a process of its own, with little memory, time and environment, as any of them can be a bomb.

The child gets a line of JSON for each file, [kind, path], and answers
with a line: title and blocks, or why not. It is ended where it takes too long, and a new one goes on.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import IO

from decisor.child_process import talk
from decisor.errors import SetupError
from decisor.tools.databases.files.limits import TOO_LARGE, limit_memory, reason_of_end
from decisor.tools.documents.cutting import Block, Content
from decisor.tools.documents.office import read_docx, read_pptx, read_xlsx
from decisor.tools.documents.pdf import read_pdf
from decisor.tools.documents.text_formats import Unreadable, read_html, read_markdown, read_text

LONGEST_ANSWER = 400_000_000
READERS: dict[str, Callable[[bytes], Content]] = {
    ".txt": read_text, ".text": read_text, ".rst": read_text, ".md": read_markdown, ".markdown": read_markdown,
    ".html": read_html, ".htm": read_html, ".xhtml": read_html, ".pdf": read_pdf,
    ".docx": read_docx, ".pptx": read_pptx, ".xlsx": read_xlsx,
}  # fmt: skip


@dataclass
class ParserProcess:
    """The parent's side. ``seconds``: for one file, and twice that for a PDF."""

    seconds: float = 60.0
    child: subprocess.Popen[bytes] | None = None

    def read(self, kind: str, path: Path, tries: int = 2) -> Content:
        """One that somebody else ended (SIGTERM, as when the thread that started it ends) is followed by another.

        Raises:
            Unreadable: it cannot be read, or takes too much memory or time.
            SetupError: a library is not installed.
        """
        child = self.child = self.child if self.child and self.child.poll() is None else talk(__name__)
        assert child.stdin is not None and child.stdout is not None
        seconds = self.seconds * (2 if kind == ".pdf" else 1)
        until = time.monotonic() + seconds
        timer = Timer(seconds, child.kill)
        timer.daemon = True  # an interrupt may come before it can be cancelled
        try:
            timer.start()
            child.stdin.write(json.dumps([kind, str(path.absolute())]).encode() + b"\n")
            child.stdin.flush()
            line = child.stdout.readline(LONGEST_ANSWER)
        except OSError:
            line = b""
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            self.close()
            if child.returncode == -signal.SIGTERM and tries > 1:
                return self.read(kind, path, tries - 1)
            is_late = time.monotonic() >= until
            raise Unreadable(f"it takes more than {seconds:g} seconds" if is_late else reason_of_end(child.returncode))
        reply = json.loads(line)
        if "setup" in reply:
            raise SetupError(reply["setup"])
        if "error" in reply:
            raise Unreadable(reply["error"])
        return Content(reply["title"], tuple(Block(text, tuple(trail), head) for text, trail, head in reply["blocks"]))

    def close(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None


def limit() -> None:
    """What the child may take, where the system can say so. It writes no file."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    limit_memory()


def answer(kind: str, path: str) -> dict[str, object]:
    try:
        data = Path(path).read_bytes()
        content = READERS[kind](data) if data.strip() else None
    except SetupError as error:
        return {"setup": str(error)}
    except Unreadable as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": TOO_LARGE}
    except (OSError, ValueError, RecursionError) as error:
        return {"error": f"it cannot be read: {error}"}
    if content is None or not content.blocks:
        return {"error": "it is empty" if content is None else "it holds no text"}
    return {"title": content.title, "blocks": [(block.text, block.trail, block.head) for block in content.blocks]}


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    for request in requests:
        answers.write(json.dumps(answer(*json.loads(request))).encode() + b"\n")
        answers.flush()


def main() -> None:
    limit()
    serve(sys.stdin.buffer, sys.stdout.buffer)
