"""Word, PowerPoint and Excel files, written by the libraries that read them, and files that mean harm."""

import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from pptx.util import Inches

from decisor.documents.passage import Passage
from decisor.documents.reader import FolderReader
from local_llm import Decisor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "in"
    path.mkdir()
    return path


def passages(folder: Path) -> list[Passage]:
    reading = FolderReader(folder)
    try:
        return [passage for document in reading.documents() for passage in document.cut()]
    finally:
        reading.close()


def write_word(path: Path) -> None:
    document = docx.Document()
    document.add_heading("Harbour handbook", 0)
    document.add_paragraph("It holds for all piers.")
    document.add_heading("Fees", 1)
    document.add_paragraph("A berth costs forty crowns.", style="List Bullet")
    document.add_heading("Winter", 2)
    table = document.add_table(rows=2, cols=3)
    for row, texts in zip(table.rows, (("pier", "fee", "note"), ("north", "30", "")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    table.rows[1].cells[1].merge(table.rows[1].cells[2])
    document.add_heading("Staff", 1)
    document.add_paragraph("Ask the harbour master.")
    document.save(str(path))


def write_slides(path: Path) -> None:
    presentation = pptx.Presentation()
    first = presentation.slides.add_slide(presentation.slide_layouts[0])
    first.shapes.title.text = "Grain trade"
    first.placeholders[1].text = "Prices of this year"
    second = presentation.slides.add_slide(presentation.slide_layouts[5])
    second.shapes.title.text = "Costs"
    table = second.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for row, texts in zip(table.rows, (("good", "price"), ("rye", "7")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    group = second.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 100, 100).text_frame.text = "Rye is dear this spring."
    second.notes_slide.notes_text_frame.text = "Mention the frost."
    presentation.slides.add_slide(presentation.slide_layouts[5]).shapes.title.text = "Thank you"
    presentation.save(str(path))


def write_book(path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Sites"
    for row in (["site", "rent", "free"], ["elm", 400, True], ["oak", 700.5, None]):
        sheet.append(row)
    book.create_sheet("Notes").append(["Elm was painted."])
    book.create_sheet("Empty")
    book.save(path)


def test_a_word_file_is_read_under_its_headings_with_its_tables(folder: Path) -> None:
    write_word(folder / "a.docx")
    assert [(one.title, one.section, one.text) for one in passages(folder)] == [
        ("Harbour handbook", "", "It holds for all piers."),
        ("Harbour handbook", "Fees", "A berth costs forty crowns."),
        ("Harbour handbook", "Fees > Winter", "pier | fee | note\nnorth | 30"),
        ("Harbour handbook", "Staff", "Ask the harbour master."),
    ]


def test_slides_are_passages_with_their_number_and_title(folder: Path) -> None:
    write_slides(folder / "a.pptx")
    assert [(one.title, one.section, one.text) for one in passages(folder)] == [
        ("Grain trade", "slide 1 > Grain trade", "Prices of this year"),
        ("Grain trade", "slide 2 > Costs", "good | price\nrye | 7\nRye is dear this spring."),
        ("Grain trade", "slide 2 > Costs > notes", "Mention the frost."),
        ("Grain trade", "slide 3", "Thank you"),
    ]


def test_sheets_are_passages_with_their_number_and_each_cell_has_its_column(folder: Path) -> None:
    write_book(folder / "rents.xlsx")
    assert [(one.title, one.section, one.text) for one in passages(folder)] == [
        ("rents", "sheet 1 > Sites", "site: elm; rent: 400; free: True\nsite: oak; rent: 700.5"),
        ("rents", "sheet 2 > Notes", "Elm was painted."),
    ]


def word_with(body: str, head: str = "") -> bytes:
    """A Word file whose text is this XML."""
    whole, plain = io.BytesIO(), io.BytesIO()
    docx.Document().save(plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as out:
        for name in source.namelist():
            text = source.read(name)
            if name == "word/document.xml":
                space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
                text = f'{head}<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'.encode()
            out.writestr(name, text)
    return whole.getvalue()


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def bomb() -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as out, out.open("word/document.xml", "w") as part:
        for _ in range(500):
            part.write(b" " * 10**6)
    return whole.getvalue()


def far_cell(path: Path) -> None:
    """A sheet of two cells, whose rectangle has 17 billion."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"] = "here"
    sheet["XFD1048576"] = "there"
    book.save(path)


@pytest.mark.slow
def test_harmful_and_damaged_files_are_named_and_the_rest_is_read(folder: Path, decisor: Decisor) -> None:
    secret = folder.parent / "secret.txt"
    secret.write_text("the key")
    entity = f'<!DOCTYPE x [<!ENTITY s SYSTEM "{secret.as_uri()}">]>'
    late = f"<!--{'x' * 100_000}-->{entity}"
    (folder / "entity.docx").write_bytes(word_with(paragraph("&s;"), entity))
    (folder / "late.docx").write_bytes(word_with(paragraph("late &s; end"), late))
    (folder / "bomb.docx").write_bytes(bomb())
    (folder / "paragraphs.docx").write_bytes(word_with("<w:p/>" * 4_000_000))
    (folder / "encrypted.xlsx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    (folder / "no_archive.pptx").write_bytes(b"just text")
    (folder / "other.pptx").write_bytes(word_with(paragraph("text")))
    (folder / "empty.docx").write_bytes(word_with(""))
    far_cell(folder / "far.xlsx")
    write_book(folder / "good.xlsx")
    summary = json.loads(decisor("index", "in", "--out", "out", "--json").stdout)
    why = dict(summary["skipped"])
    assert why["entity.docx"] == "its XML declares entities, which no office program writes"
    assert why["bomb.docx"] == "it unpacks to more than 400 MB: split it"
    assert why["paragraphs.docx"] == "it has more than 2,000,000 elements (paragraphs, cells): split it"
    assert why["encrypted.xlsx"] == "it is encrypted, or older than its ending: save a copy without a password"
    assert why["no_archive.pptx"] == "it is damaged (BadZipFile)"
    assert why["other.pptx"].startswith("it is damaged")
    assert why["empty.docx"] == "it holds no text"
    assert why["far.xlsx"].startswith("it takes more memory than a reader of files may have (1,024 MB)")
    assert "the key" not in json.dumps(summary)
    assert not [
        file for file in (folder.parent / "out").rglob("*") if file.is_file() and b"the key" in file.read_bytes()
    ]
    assert set(why) >= {"entity.docx", "bomb.docx", "far.xlsx"} and "good.xlsx" not in why


@pytest.mark.parametrize(("module", "reader"), [("docx", "read_docx"), ("pptx", "read_pptx")])
def test_where_a_reader_is_missing_the_message_says_what_to_type(module: str, reader: str) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None\nfrom decisor.errors import SetupError\n"
        f"from decisor.documents.formats import {reader}\n"
        f"try:\n    {reader}(b'')\nexcept SetupError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\w+ files need python-\w+: .* install .*(office|python-docx).*\n", ran.stdout), ran.stdout
