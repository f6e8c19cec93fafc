"""The reader of PDF files, by pypdf."""

from __future__ import annotations

import io
import logging

from decisor.extras import lacks
from decisor.tools.documents.cutting import Block, Content, tidy
from decisor.tools.documents.text_formats import Unreadable

MOST_PAGES, MOST_CHARS = 5_000, 20_000_000


def read_pdf(data: bytes) -> Content:
    """Blocks under "page 3".

    Raises:
        Unreadable: it is encrypted, damaged, too long, or holds no text.
        SetupError: pypdf is not installed.
    """
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise lacks("PDF files need pypdf", "documents") from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is encrypted: save a copy without its password")
        if len(reader.pages) > MOST_PAGES:
            raise Unreadable(f"it has more than {MOST_PAGES:,} pages: split it")
        blocks: list[Block] = []
        size = 0
        for number, page in enumerate(reader.pages, 1):
            text = tidy(page.extract_text())
            size += len(text)
            if size > MOST_CHARS:
                raise Unreadable(f"it has more than {MOST_CHARS:,} characters: split it")
            blocks += [Block(part.strip(), (f"page {number}",)) for part in text.split("\n\n") if part.strip()]
        title = str((reader.metadata.title if reader.metadata else "") or "")
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # a damaged file makes pypdf raise anything
        state = "encrypted" if "crypt" in f"{type(error).__name__} {error}".lower() else "damaged"
        raise Unreadable(f"it is {state} ({type(error).__name__})") from error
    if not blocks:
        raise Unreadable("it holds no text (scanned pages need text recognition first)")
    return Content(tidy(title).strip(), tuple(blocks))
