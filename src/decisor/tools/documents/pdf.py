"""The reader of PDF files, by pypdf."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

from decisor.extras import lacks
from decisor.tools.documents.cutting import Block, Content, tidy
from decisor.tools.documents.text_formats import Unreadable, read_untrusted

MOST_PAGES = 5_000


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

    def parse() -> tuple[str, Iterator[Block]]:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is encrypted: save a copy without its password")
        if len(reader.pages) > MOST_PAGES:
            raise Unreadable(f"it has more than {MOST_PAGES:,} pages: split it")
        title = str((reader.metadata.title if reader.metadata else "") or "")
        pages = ((f"page {number}", tidy(page.extract_text())) for number, page in enumerate(reader.pages, 1))
        parts = ((part.strip(), name) for name, text in pages for part in text.split("\n\n"))
        return tidy(title).strip(), (Block(part, (name,)) for part, name in parts if part)

    return read_untrusted(parse, "it holds no text (scanned pages need text recognition first)")
