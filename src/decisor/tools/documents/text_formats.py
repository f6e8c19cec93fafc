"""Readers of text, Markdown and HTML: bytes to a title and blocks. Nothing is run and nothing is fetched."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from decisor.errors import Error
from decisor.extras import lacks
from decisor.outside import text_codec
from decisor.tools.documents.cutting import Block, Content, tidy

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.I)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
NO_WORDS = re.compile(r"[^\W\d_a-zA-Z]{4}|[^\W\d_][¡-©«-¶¸¹»-¿][^\W\d_]")
"""What Windows-1252 makes of other encodings: four letters with accents in a row, or a sign within a word."""
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
MOST_CHARS = 20_000_000
DROPPED = ["script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "canvas", "head", "select"]
LEVELS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = {
    "p", "div", "li", "ul", "ol", "dl", "dt", "dd", "tr", "table", "section", "article", "main", "header", "footer",
    "nav", "aside", "blockquote", "pre", "figure", "figcaption", "form", "fieldset", "hr", "br", "body", "html",
}  # fmt: skip


class Unreadable(Error):
    """A document that is named and skipped; says why."""


def read_untrusted(parse: Callable[[], tuple[str, Iterable[Block]]], empty: str = "it holds no text") -> Content:
    """Make a content of what a library finds: its title and blocks. ``empty``: what is said where there are none.

    Raises:
        Unreadable: it is encrypted, damaged, too large, or holds no text.
    """
    blocks, size = [], 0
    try:
        title, pieces = parse()
        for block in pieces:
            blocks.append(block)
            size += len(block.text)
            if size > MOST_CHARS:
                raise Unreadable(f"it has more than {MOST_CHARS:,} characters: split it")
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # a damaged file makes these libraries raise anything
        state = "encrypted" if "crypt" in f"{type(error).__name__} {error}".lower() else "damaged"
        raise Unreadable(f"it is {state} ({type(error).__name__})") from error
    if not blocks:
        raise Unreadable(empty)
    return Content(title, tuple(blocks))


def decode(data: bytes, charset: str = "") -> str:
    """By byte order mark, else UTF-8, else the charset that the document names, else Windows-1252.

    >>> decode("Köln".encode("utf-16")), decode("Köln".encode("latin-1"))
    ('Köln', 'Köln')

    Raises:
        Unreadable: it holds zero bytes, so it is no text; or its encoding is not known.
    """
    for mark, name in MARKS:
        if data.startswith(mark):
            return tidy(data.decode(name, "replace"))
    if b"\x00" in data[:8192]:
        raise Unreadable("it is no text")
    for name in filter(None, ("utf-8", text_codec(charset))):
        try:
            return tidy(data.decode(name))
        except (UnicodeDecodeError, LookupError):
            continue
    text = data.decode("cp1252", "replace")
    if "\ufffd" in text or NO_WORDS.search(text):
        raise Unreadable("its encoding is not known, neither UTF-8 nor Windows-1252: save it as UTF-8")
    return tidy(text)


def read_text(data: bytes) -> Content:
    """Paragraphs are parted by empty lines."""
    return Content(blocks=tuple(Block(part.strip()) for part in re.split(r"\n\s*\n", decode(data)) if part.strip()))


def read_markdown(data: bytes) -> Content:
    """The first heading of the first level is the title; links become their text.

    >>> read_markdown(b"# Guide\\n\\n## Install\\n\\nSee [here](x.md).").blocks
    (Block(text='See here.', trail=('Install',), head=''),)
    """
    from markdown_it import MarkdownIt  # a need of typer too, so it is always there

    text = COMMENT.sub("", re.sub(r"\A---\n.*?\n---\n", "", decode(data), count=1, flags=re.S))  # YAML at the top
    lines = text.split("\n")
    blocks: list[Block] = []
    trail: list[tuple[int, str]] = []
    title, head = "", ""
    # Without the marks within a paragraph: they are kept as they stand, and 50,000 brackets took half a minute.
    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(text)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.map is None or (token.level and token.type != "tr_open"):
            continue
        names = tuple(name for _, name in trail)
        part = "\n".join(lines[slice(*token.map)]).strip("\n")
        part = part if token.type == "fence" else LINK.sub(r"\1", part).strip()
        if token.type == "heading_open" and following is not None:
            level, heading = int(token.tag[1]), LINK.sub(r"\1", following.content).strip()
            if level == 1 and not title:
                title, trail = heading, []
            else:
                trail = [(above, name) for above, name in trail if above < level] + [(level, heading)]
        elif token.type == "table_open":
            head = ""
        elif token.type == "tr_open" and not head:
            head = part
            blocks.append(Block(part, names))
        elif part:
            blocks.append(Block(part, names, head if token.type == "tr_open" else ""))
    return Content(title, tuple(blocks))


def read_html(data: bytes) -> Content:
    """What a person sees: scripts, styles, frames and what is marked hidden are left out.

    Raises:
        SetupError: selectolax is not installed.
    """
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise lacks("HTML needs selectolax", "documents") from error
    charset = match[1].decode() if (match := CHARSET.search(data[:4096])) else ""
    tree = LexborHTMLParser(decode(data, charset))
    heading = tree.css_first("title")
    title = " ".join(heading.text().split()) if heading is not None else ""
    for node in tree.css("[hidden], [aria-hidden=true]"):
        node.decompose()
    tree.strip_tags(DROPPED)
    return _content(tree.root, title) if tree.root is not None else Content(title)


def _content(root: LexborNode, title: str) -> Content:
    """The tree from top to bottom, by its links, so that no depth of nesting overflows the stack."""
    blocks: list[Block] = []
    trail: list[tuple[int, str]] = []
    texts: list[str] = []
    level, cells, named, head = 0, 0, 0, ""

    def close() -> None:
        nonlocal level, title, head
        text = " ".join("".join(texts).split())
        texts.clear()
        if not text.strip("| "):
            text = ""
        if level and text:
            if level == 1 and not title:
                title = text
            trail[:] = [(above, name) for above, name in trail if above < level]
            if not (level == 1 and text == title):
                trail.append((level, text))
        elif text:
            is_head = cells > 1 and named == cells
            blocks.append(Block(text, tuple(name for _, name in trail), head if cells and not is_head else ""))
            head = text if is_head else head
        level = 0

    node: LexborNode | None = root
    while node is not None:
        tag = node.tag
        if tag == "-text":
            texts.append(node.text_content or "")
        elif tag in LEVELS or tag in BLOCKS:
            close()
            level = LEVELS.get(tag, 0)
            if tag in ("table", "tr"):
                cells = named = 0
                head = "" if tag == "table" else head
        elif tag in ("td", "th"):
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
                if node.tag in ("table", "tr"):
                    cells = named = 0
                    head = "" if node.tag == "table" else head
        node = node.next if node is not None else None
    close()
    return Content(title, tuple(blocks))
