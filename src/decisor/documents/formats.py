"""Readers of text, Markdown, HTML, Word, PowerPoint, Excel and PDF files: bytes to a title and blocks.

Nothing is run and nothing is fetched. An office file is a zip archive of XML: before a library sees it, its unpacked
size is counted. XML with a document type is refused, because these formats forbid it and entities need it. The
libraries are python-docx, python-pptx, python-calamine, pypdf, selectolax and markdown-it. A file that cannot be used
raises UnreadableDocument with the reason.
"""

from __future__ import annotations

import codecs
import io
import logging
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from decisor.databases.files.delimited import find_header
from decisor.databases.files.formats import cell_value
from decisor.documents.passage import DocumentContent, TextBlock, clean_document_text
from decisor.errors import Error, SetupError
from decisor.system.extras import missing_extra_error
from decisor.system.text import find_text_codec

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode


MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.I)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
NO_WORDS = re.compile(r"[^\W\d_a-zA-Z]{4}|[^\W\d_][¡-©«-¶¸¹»-¿][^\W\d_]")
"""What Windows-1252 makes of other encodings: four letters with accents in a row, or a sign within a word."""
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
MOST_CHARS = 20_000_000
DROPPED = ["script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "head", "select"]
LEVELS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "p div li ul ol dl dt dd tr table section article main header footer nav aside blockquote pre figure "
        "figcaption form fieldset hr br body html",
    )
)


class UnreadableDocument(Error):
    """The reason why a document is skipped."""


@dataclass
class ContentBuilder:
    """A document that is being read: its title, the headings above the place that is read, and the blocks so far."""

    title: str = ""
    headings: list[tuple[int, str]] = field(default_factory=list)
    blocks: list[TextBlock] = field(default_factory=list)

    def add_heading(self, level: int, name: str) -> None:
        """Add a heading. The first of level 1 is the title, if there is none."""
        if level <= 1 and not self.title:
            self.title, self.headings = name, []
        else:
            self.headings = [(above, text) for above, text in self.headings if above < level] + [(level, name)]

    def add(self, text: str, head: str = "") -> None:
        """Add a block, unless it has no text. ``head``: the row that names the columns of this one."""
        if text.strip():
            self.blocks.append(TextBlock(text, tuple(name for _, name in self.headings), head))

    def build(self) -> DocumentContent:
        return DocumentContent(self.title, tuple(self.blocks))


def decode_document(data: bytes, charset: str = "") -> str:
    """Decode a document by byte order mark, else UTF-8, else its own charset, else Windows-1252.

    >>> decode_document("Köln".encode("utf-16")), decode_document("Köln".encode("latin-1"))
    ('Köln', 'Köln')

    Raises:
        UnreadableDocument: it holds zero bytes, so it is no text; or its encoding is not known.
    """
    for mark, name in MARKS:
        if data.startswith(mark):
            return clean_document_text(data.decode(name, "replace"))
    # After the marks: UTF-16 and UTF-32 are full of zero bytes.
    if b"\x00" in data[:8192]:
        raise UnreadableDocument("it is no text")
    for name in filter(None, ("utf-8", find_text_codec(charset))):
        try:
            return clean_document_text(data.decode(name))
        except (UnicodeDecodeError, LookupError):
            continue
    # Windows-1252 decodes nearly anything, so its result is looked at before it is believed.
    text = data.decode("cp1252", "replace")
    if "\ufffd" in text or NO_WORDS.search(text):
        raise UnreadableDocument("its encoding is not known, neither UTF-8 nor Windows-1252: save it as UTF-8")
    return clean_document_text(text)


def read_plain_text(data: bytes) -> DocumentContent:
    """Read a text as paragraphs separated by empty lines."""
    content = ContentBuilder()
    for part in re.split(r"\n\s*\n", decode_document(data)):
        content.add(part.strip())
    return content.build()


def read_markdown(data: bytes) -> DocumentContent:
    """Read Markdown as blocks under headings. The first heading of level 1 is the title; links become their text.

    >>> read_markdown(b"# Guide\\n\\n## Install\\n\\nSee [here](x.md).").blocks
    (TextBlock(text='See here.', trail=('Install',), head=''),)
    """
    from markdown_it import MarkdownIt  # a need of typer too, so it is always there

    text = re.sub(r"\A---\n.*?\n---\n", "", decode_document(data), count=1, flags=re.S)  # YAML at the top
    text = COMMENT.sub("", text)
    lines = text.split("\n")
    content, head = ContentBuilder(), ""
    # Without the marks within a paragraph: they are kept as they stand, and 50,000 brackets took half a minute.
    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(text)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.map is None or (token.level and token.type != "tr_open"):
            continue
        part = "\n".join(lines[slice(*token.map)]).strip("\n")
        part = part if token.type == "fence" else LINK.sub(r"\1", part).strip()
        if token.type == "heading_open" and following is not None:
            content.add_heading(int(token.tag[1]), LINK.sub(r"\1", following.content).strip())
        elif token.type == "table_open":
            head = ""
        elif token.type == "tr_open":
            content.add(part, head)
            head = head or part
        else:
            content.add(part)
    return content.build()


def read_html(data: bytes) -> DocumentContent:
    """Read the visible text of an HTML page. Scripts, styles, frames and hidden elements are left out.

    Raises:
        SetupError: selectolax is not installed.
    """
    lexbor = import_reader("selectolax.lexbor", "HTML needs selectolax", "documents")
    charset = match[1].decode() if (match := CHARSET.search(data[:4096])) else ""
    tree = lexbor.LexborHTMLParser(decode_document(data, charset))
    heading = tree.css_first("title")
    title = " ".join(heading.text().split()) if heading is not None else ""
    # Text that no reader of the page sees is a place for instructions to an LLM.
    for node in tree.css("[hidden], [aria-hidden=true]"):
        node.decompose()
    tree.strip_tags(DROPPED)
    return _read_html_tree(tree.root, title) if tree.root is not None else DocumentContent(title)


def _read_html_tree(root: LexborNode, title: str) -> DocumentContent:
    """Read an HTML tree from top to bottom.

    It follows links between nodes, so that deep nesting does not overflow the stack.
    """
    content, texts = ContentBuilder(title), list[str]()
    level, cells, named, head = 0, 0, 0, ""

    def close() -> None:
        nonlocal level, head
        text = " ".join("".join(texts).split())
        texts.clear()
        # A row of empty cells.
        if not text.strip("| "):
            text = ""
        if level == 1 and text and text == content.title:
            content.headings = []  # many pages repeat their title above the text
        elif level and text:
            content.add_heading(level, text)
        elif text:
            is_head = cells > 1 and named == cells
            content.add(text, head if cells and not is_head else "")
            head = text if is_head else head
        level = 0

    def start_row(tag: str | None) -> None:
        nonlocal cells, named, head
        if tag in ("table", "tr"):
            cells = named = 0
            head = "" if tag == "table" else head

    # Down to the first child, else on to the next sibling, else up until there is one; a block closes on the way up.
    node: LexborNode | None = root
    while node is not None:
        tag = node.tag
        if tag == "-text":
            texts.append(node.text_content or "")
        elif tag in LEVELS or tag in BLOCKS:
            close()
            level = LEVELS.get(tag or "", 0)
            start_row(tag)
        elif tag in ("td", "th"):
            # Cells of a row are one block, so that a value keeps its neighbours.
            texts.append(" | " if cells else "")
            cells, named = cells + 1, named + (tag == "th")
        if node.child is not None and tag != "-text":
            node = node.child
            continue
        while node is not None and node.next is None:
            node = node.parent
            if node is None or node.mem_id == root.mem_id:  # == would compare the HTML of both
                node = None
                break
            if node.tag in LEVELS or node.tag in BLOCKS:
                close()
                start_row(node.tag)
        node = node.next if node is not None else None
    close()
    return content.build()


MOST_BYTES = 400_000_000
MOST_PARTS = 20_000
MOST_ELEMENTS = 2_000_000
"""Of a document or of slides, which are held in memory whole: about 600 MB and 20 s of CPU."""
HEAD = 2**16
FURNITURE = (13, 15, 16)
"""Kinds of placeholders: slide number, footer, date (PP_PLACEHOLDER)."""
OLD = b"\xd0\xcf\x11\xe0"
"""How files begin that are encrypted, or of before 2007."""


def import_reader(module: str, complaint: str, extra: str) -> Any:
    """Return the library that reads a format. Raise SetupError if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_extra_error(complaint, extra) from error


def read_docx(data: bytes) -> DocumentContent:
    """Read the paragraphs and table rows of a Word file under their headings.

    The title is the text in the style Title, or else the first heading of level 1. Headers, footers, notes and comments
    are left out.
    """
    docx = import_reader("docx", "Word files need python-docx", "office")
    check_archive(data)
    document, content = docx.Document(io.BytesIO(data)), ContentBuilder()
    level_of_style: dict[str | None, int | None] = {}
    for item in document.iter_inner_content():
        if isinstance(item, docx.table.Table):
            # A merged cell stands in each of its columns.
            rows = [join_cells({id(cell): cell.text for cell in row.cells}.values()) for row in item.rows]
            for number, row in enumerate(rows):
                content.add(row, rows[0] if number else "")
            continue
        # python-docx takes 1 ms to look up a style by its id, at each paragraph.
        text, style = clean_document_text(item.text).strip(), item._p.style
        if style not in level_of_style:
            level_of_style[style] = read_heading_level(item.style.name if item.style else "")
        level = level_of_style[style]
        if level is not None and text:
            content.add_heading(level, text)
        else:
            content.add(text)
    content.title = content.title or drop_template_title(document.core_properties.title, "Word Document")
    return content.build()


def read_pptx(data: bytes) -> DocumentContent:
    """Read a PowerPoint file as blocks under "slide 3" and the title of the slide; speaker notes are under "notes"."""
    pptx = import_reader("pptx", "PowerPoint files need python-pptx", "office")
    check_archive(data)
    presentation, content = pptx.Presentation(io.BytesIO(data)), ContentBuilder()
    for number, slide in enumerate(presentation.slides, 1):
        title = slide.shapes.title
        name = " ".join(clean_document_text(title.text_frame.text).split()) if title is not None else ""
        content.title = content.title or name
        texts = [
            text
            for shape in slide.shapes
            if title is None or shape.shape_id != title.shape_id
            for text in iterate_shape_texts(shape)
        ]
        content.headings = [(1, f"slide {number}")]
        if not texts:
            content.add(name)
        content.headings += [(2, name)] if name else []
        for text in texts:
            content.add(text)
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame):
            content.headings.append((3, "notes"))
            for part in frame.text.split("\n"):
                content.add(clean_document_text(part).strip())
    content.title = content.title or drop_template_title(presentation.core_properties.title, "PowerPoint Presentation")
    return content.build()


def read_xlsx(data: bytes) -> DocumentContent:
    """Read the rows of an Excel file under "sheet 2" and its name. Each cell has the name of its column."""
    from python_calamine import CalamineWorkbook

    check_archive(data)
    book, content = CalamineWorkbook.from_filelike(io.BytesIO(data)), ContentBuilder()
    for number, name in enumerate(book.sheet_names, 1):
        content.headings = [(1, f"sheet {number}"), (2, clean_document_text(name))]
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
        heading = find_header(rows)
        start = heading.row if heading is not None and heading.is_named else None
        if start is not None and sum(cell != "" for cell in rows[start]) < 2:
            start = None  # lines of text
        header = [" ".join(str(cell).split()) for cell in rows[start]] if start is not None else []
        for at, row in enumerate(rows):
            if at == start:
                continue
            names = header if start is not None and at > start else [""] * len(row)
            cells = [(name, cell_value(cell)) for name, cell in zip(names, row, strict=False)]
            text = "; ".join(f"{name}: {cell}" if name else str(cell) for name, cell in cells if cell is not None)
            content.add(" ".join(clean_document_text(text).split()))
    return content.build()


def check_archive(data: bytes) -> None:
    """Raise UnreadableDocument unless an office file is a zip archive within the limits.

    Encrypted and damaged files are refused, and XML that declares entities.
    """
    if data.startswith(OLD):
        raise UnreadableDocument("it is encrypted, or older than its ending: save a copy without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            # By the declared sizes, before anything is unpacked.
            if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_BYTES:
                raise UnreadableDocument(f"it unpacks to more than {MOST_BYTES // 10**6} MB: split it")
            left = MOST_ELEMENTS
            for part in parts:
                if part.filename.lower().endswith((".xml", ".rels")):
                    with archive.open(part) as file:
                        head = file.read(HEAD)
                        plain = head.replace(b"\0", b"").upper()  # of UTF-16 too
                        if b"<!DOCTYPE" in plain or b"<!ENTITY" in plain:
                            raise UnreadableDocument("its XML declares entities, which no office program writes")
                        if not part.filename.startswith("xl/"):
                            pieces = (head, *iter(lambda file=file: file.read(2**20), b""))  # type: ignore[misc]
                            # Opening tags: lxml holds an object for each; calamine streams sheets (xl/).
                            left -= sum(piece.count(b"<") - piece.count(b"</") for piece in pieces)
                if left < 0:
                    raise UnreadableDocument(
                        f"it has more than {MOST_ELEMENTS:,} elements (paragraphs, cells): split it"
                    )
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise UnreadableDocument(f"it is damaged ({type(error).__name__})") from error


def read_heading_level(style: str | None) -> int | None:
    """Return the level of a heading style: 0 for a title, None for other styles.

    >>> read_heading_level("Title"), read_heading_level("Heading 2"), read_heading_level("Normal")
    (0, 2, None)
    """
    word, _, number = (style or "").partition(" ")
    if word == "Title" and not number:
        return 0
    return int(number) if word == "Heading" and number.isdecimal() else None


def join_cells(texts: Iterable[str]) -> str:
    cells = [" ".join(clean_document_text(text).split()) for text in texts]
    return " | ".join(cells) if any(cells) else ""


def iterate_shape_texts(shape: Any) -> Iterator[str]:
    """Iterate over the texts of a text frame, a table, or the shapes of a group.

    Slide number, date and footer are skipped.
    """
    if shape.is_placeholder and shape.placeholder_format.type in FURNITURE:
        return
    if hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from iterate_shape_texts(inner)
    elif getattr(shape, "has_table", False):
        yield from filter(None, (join_cells(cell.text for cell in row.cells) for row in shape.table.rows))
    elif getattr(shape, "has_text_frame", False):
        yield from filter(None, (clean_document_text(part.text).strip() for part in shape.text_frame.paragraphs))


def drop_template_title(text: str | None, template: str) -> str:
    """Return a title; empty if it is the one of a library's template."""
    title = clean_document_text(text or "").strip()
    return "" if title == template else title


MOST_PAGES = 5_000


def read_pdf(data: bytes) -> DocumentContent:
    """Read a PDF file as blocks under "page 3"."""
    pypdf = import_reader("pypdf", "PDF files need pypdf", "documents")
    # pypdf logs a line for each oddity of a file.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = pypdf.PdfReader(io.BytesIO(data))
    # Many files are encrypted with an empty password, to forbid printing.
    if reader.is_encrypted and not reader.decrypt(""):
        raise UnreadableDocument("it is encrypted: save a copy without its password")
    if len(reader.pages) > MOST_PAGES:
        raise UnreadableDocument(f"it has more than {MOST_PAGES:,} pages: split it")
    title = str((reader.metadata.title if reader.metadata else "") or "")
    content = ContentBuilder(clean_document_text(title).strip())
    for number, page in enumerate(reader.pages, 1):
        content.headings = [(1, f"page {number}")]
        for part in clean_document_text(page.extract_text()).split("\n\n"):
            content.add(part.strip())
    if not content.blocks:
        raise UnreadableDocument("it holds no text (scanned pages need text recognition first)")
    return content.build()


READERS: dict[str, Callable[[bytes], DocumentContent]] = {
    ".txt": read_plain_text,
    ".text": read_plain_text,
    ".rst": read_plain_text,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".pptx": read_pptx,
    ".xlsx": read_xlsx,
}


def read_document(kind: str, data: bytes) -> DocumentContent:
    """Read a document by the end of its name.

    Raises:
        UnreadableDocument: it is encrypted, damaged, too large, or holds no text.
        SetupError: a library is not installed.
    """
    if not data.strip():
        raise UnreadableDocument("it is empty")
    try:
        content = READERS[kind](data)
    except (UnreadableDocument, SetupError, MemoryError):
        raise
    except Exception as error:  # a damaged file makes these libraries raise anything
        state = "encrypted" if "crypt" in f"{type(error).__name__} {error}".lower() else "damaged"
        raise UnreadableDocument(f"it is {state} ({type(error).__name__})") from error
    if sum(len(block.text) for block in content.blocks) > MOST_CHARS:
        raise UnreadableDocument(f"it has more than {MOST_CHARS:,} characters: split it")
    if not content.blocks:
        raise UnreadableDocument("it holds no text")
    return content
