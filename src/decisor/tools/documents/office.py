"""Readers of Word, PowerPoint and Excel files, by python-docx, python-pptx and python-calamine.

Such a file is a zip archive of XML. Before a library sees it, what it would unpack to is counted, and XML with a
document type, which these formats forbid and which entities need, is refused.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from decisor.extras import lacks
from decisor.tools.databases.files.header import find_header
from decisor.tools.databases.files.workbook import value
from decisor.tools.documents.cutting import Block, Content, tidy
from decisor.tools.documents.text_formats import Unreadable, read_untrusted

if TYPE_CHECKING:
    from docx.document import Document
    from pptx.presentation import Presentation
    from pptx.slide import Slide

MOST_BYTES = 400_000_000
MOST_PARTS = 20_000
MOST_ELEMENTS = 2_000_000
"""Of a document or of slides, which are held in memory whole: about 600 MB and 20 s of CPU."""
HEAD = 2**16
FURNITURE = (13, 15, 16)
"""Kinds of placeholders: slide number, footer, date (PP_PLACEHOLDER)."""
OLD = b"\xd0\xcf\x11\xe0"
"""How files begin that are encrypted, or of before 2007."""


def read_docx(data: bytes) -> Content:
    """Paragraphs and rows of tables under their headings. The title is that of the text: its style, or the first
    heading of the first level. Headers, footers, notes and comments are left out.

    Raises:
        Unreadable: it is encrypted, damaged, too large, or holds no text.
        SetupError: python-docx is not installed.
    """
    try:
        import docx
    except ImportError as error:
        raise lacks("Word files need python-docx", "office") from error
    check_archive(data)
    return read_untrusted(lambda: word_content(docx.Document(io.BytesIO(data))))


def read_pptx(data: bytes) -> Content:
    """Blocks under "slide 3" and the slide's title, what the speaker notes under "notes". Raises as ``read_docx``."""
    try:
        import pptx
    except ImportError as error:
        raise lacks("PowerPoint files need python-pptx", "office") from error
    check_archive(data)
    return read_untrusted(lambda: slides_content(pptx.Presentation(io.BytesIO(data))))


def read_xlsx(data: bytes) -> Content:
    """Rows under "sheet 2" and the sheet's name, each cell with the name of its column. Raises as ``read_docx``."""
    from python_calamine import CalamineWorkbook

    def parse() -> tuple[str, Iterator[Block]]:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = enumerate(book.sheet_names, 1)
        return "", (block for number, name in sheets for block in sheet_blocks(book, number, name))

    check_archive(data)
    return read_untrusted(parse)


def check_archive(data: bytes) -> None:
    """Raises Unreadable where it is none, or one that no library should be given."""
    if data.startswith(OLD):
        raise Unreadable("it is encrypted, or older than its ending: save a copy without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_BYTES:
                raise Unreadable(f"it unpacks to more than {MOST_BYTES // 10**6} MB: split it")
            left = MOST_ELEMENTS
            for part in parts:
                if part.filename.lower().endswith((".xml", ".rels")):
                    with archive.open(part) as file:
                        head = file.read(HEAD)
                        check_xml(head)
                        left -= 0 if part.filename.startswith("xl/") else count_elements(head, file)
                if left < 0:
                    raise Unreadable(f"it has more than {MOST_ELEMENTS:,} elements (paragraphs, cells): split it")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise Unreadable(f"it is damaged ({type(error).__name__})") from error


def count_elements(head: bytes, rest: IO[bytes]) -> int:
    """Return how many tags begin, of those that a head and the rest of its file hold."""
    return sum(part.count(b"<") - part.count(b"</") for part in (head, *iter(lambda: rest.read(2**20), b"")))


def check_xml(head: bytes) -> None:
    plain = head.replace(b"\0", b"").upper()  # of UTF-16 too
    if b"<!DOCTYPE" in plain or b"<!ENTITY" in plain:
        raise Unreadable("its XML declares entities, which no office program writes")


def word_content(document: Document) -> tuple[str, list[Block]]:
    from docx.table import Table

    title = ""
    trail: list[tuple[int, str]] = []
    blocks: list[Block] = []
    level_of_style: dict[str | None, int | None] = {}
    for item in document.iter_inner_content():
        names = tuple(name for _, name in trail)
        if isinstance(item, Table):
            texts = [cells(one.text for one in unmerged(row.cells)) for row in item.rows]
        else:
            # python-docx takes 1 ms to look up a style by its id, at each paragraph.
            text, style = tidy(item.text).strip(), item._p.style
            if style not in level_of_style:
                level_of_style[style] = level_of(item.style.name if item.style else "")
            level = level_of_style[style]
            if level is not None and text:
                if level <= 1 and not title:
                    title, trail = text, []
                else:
                    trail = [(above, name) for above, name in trail if above < level] + [(level, text)]
                continue
            texts = [text]
        head = texts[0] if isinstance(item, Table) and len(texts) > 1 else ""
        blocks += [Block(text, names, head if at else "") for at, text in enumerate(texts) if text]
    return title or plain_title(document.core_properties.title, "Word Document"), blocks


def level_of(style: str | None) -> int | None:
    """
    >>> level_of("Title"), level_of("Heading 2"), level_of("Normal")
    (0, 2, None)
    """
    word, _, number = (style or "").partition(" ")
    if word == "Title" and not number:
        return 0
    return int(number) if word == "Heading" and number.isdecimal() else None


def unmerged(row: Iterable[object]) -> list[Any]:
    """Each cell once, although it stands in several columns."""
    return list({id(cell): cell for cell in row}.values())


def cells(texts: Iterable[str]) -> str:
    one_line = [" ".join(tidy(text).split()) for text in texts]
    return " | ".join(one_line) if any(one_line) else ""


def slides_content(presentation: Presentation) -> tuple[str, Iterator[Block]]:
    title = ""
    places: list[tuple[str, str, Slide]] = []
    for number, slide in enumerate(presentation.slides, 1):
        heading = slide.shapes.title
        name = " ".join(tidy(heading.text_frame.text).split()) if heading is not None else ""
        title = title or name
        places.append((f"slide {number}", name, slide))
    whole_title = title or plain_title(presentation.core_properties.title, "PowerPoint Presentation")
    return whole_title, (block for place in places for block in slide_blocks(*place))


def slide_blocks(place: str, name: str, slide: Slide) -> Iterator[Block]:
    trail = (place, name) if name else (place,)
    title = slide.shapes.title
    texts = [
        text for shape in slide.shapes if title is None or shape.shape_id != title.shape_id for text in texts_of(shape)
    ]
    if not texts and name:
        yield Block(name, (place,))
    yield from (Block(text, trail) for text in texts)
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame):
        yield from (Block(text, (*trail, "notes")) for part in frame.text.split("\n") if (text := tidy(part).strip()))


def texts_of(shape: Any) -> Iterator[str]:
    """Of a text frame, a table, or the shapes of a group; none of a slide's number, date and footer."""
    if shape.is_placeholder and shape.placeholder_format.type in FURNITURE:
        return
    if hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from texts_of(inner)
    elif getattr(shape, "has_table", False):
        yield from filter(None, (cells(cell.text for cell in row.cells) for row in shape.table.rows))
    elif getattr(shape, "has_text_frame", False):
        yield from filter(None, (tidy(part.text).strip() for part in shape.text_frame.paragraphs))


def sheet_blocks(book: Any, number: int, name: str) -> Iterator[Block]:
    rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
    trail = (f"sheet {number}", tidy(name))
    heading = find_header(rows)
    start = heading.row if heading is not None and heading.is_named else None
    if start is not None and sum(cell != "" for cell in rows[start]) < 2:
        start = None  # lines of text
    header = [" ".join(str(cell).split()) for cell in rows[start]] if start is not None else []
    for at, row in enumerate(rows):
        if at == start:
            continue
        under = header if start is not None and at > start else [""] * len(row)
        pairs = [(top, str(plain)) for top, cell in zip(under, row, strict=False) if (plain := value(cell)) is not None]
        if text := "; ".join(f"{top}: {cell}" if top else cell for top, cell in pairs):
            yield Block(" ".join(tidy(text).split()), trail)


def plain_title(text: str | None, template: str) -> str:
    """'' for the title that a library's own template has."""
    title = tidy(text or "").strip()
    return "" if title == template else title
