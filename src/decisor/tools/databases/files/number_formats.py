"""What the number formats of an Excel sheet (.xlsx) say of its cells: 0.125 shown as 12.5 %, 1250 as € 1,250.00.

Such a cell becomes the text that a person sees with its unit, marked as a number of the sheet, so that it is read as a
cell of a CSV file. Other kinds of workbook (.xls, .xlsb, .ods) do not tell their formats here.
"""

from __future__ import annotations

import html
import re
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from decisor.tools.databases.files.numerals import CELL, CURRENCY

MOST_BYTES = 2**24
"""Of the parts that describe a workbook."""
PERCENTS = {"9": "0%", "10": "0.00%"}
"""Formats that have a number and need not be written out; those of currencies depend on the country of Excel."""
ATTRIBUTE = re.compile(r"""([\w:]{1,40})=["']([^"']*)["']""")


def attributes_of(xml: str, tag: str) -> Iterator[dict[str, str]]:
    for words in re.findall(rf"<(?:\w{{1,40}}:)?{tag}\s([^>]{{0,4000}})>", xml):
        yield {name: html.unescape(text) for name, text in ATTRIBUTE.findall(words)}


def text_of(archive: zipfile.ZipFile, part: str) -> str:
    with archive.open(part) as file:
        return file.read(MOST_BYTES).decode("utf-8", "replace")


def read_units(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the part of the archive by the name of its sheet, and the unit by the number of a style that has one."""
    if not zipfile.is_zipfile(path):
        return {}, {}
    with zipfile.ZipFile(path) as archive:
        try:
            links = attributes_of(text_of(archive, "xl/_rels/workbook.xml.rels"), "Relationship")
            places = {link["Id"]: link["Target"].removeprefix("/xl/") for link in links}
            sheets = attributes_of(text_of(archive, "xl/workbook.xml"), "sheet")
            parts = {sheet["name"]: f"xl/{places[sheet['r:id']]}" for sheet in sheets}
            styles = text_of(archive, "xl/styles.xml")
            codes = PERCENTS | {code["numFmtId"]: code["formatCode"] for code in attributes_of(styles, "numFmt")}
        except KeyError:  # OpenDocument, .xlsb
            return {}, {}
    formats = attributes_of(styles.partition("cellXfs")[2].partition("cellXfs")[0], "xf")
    units = {str(at): unit_of(codes.get(style.get("numFmtId", ""), "")) for at, style in enumerate(formats)}
    return parts, {style: unit for style, unit in units.items() if unit}


def unit_of(code: str) -> str:
    """Return the currency or percent sign of a number format, or its zeros; '' for none.

    >>> [unit_of(code) for code in ("0.0%", '#,##0.00 "€"', "[$CHF-807] #,##0", '_-"$"* #,##0_-;', "00000", '0"%"')]
    ['%', '€', 'CHF', '$', '00000', ' %']
    """
    first = re.sub(r"\[\$([^\]-]*)[^\]]*\]", r'"\1"', code.partition(";")[0])
    first = re.sub(r"\[[^\]]*\]|[_*].", "", first)
    if re.fullmatch("0{2,30}", first):
        return first
    words = "".join(re.findall(r'"([^"]*)"', first)) + re.sub(r'"[^"]*"|[#0?.,/\\ +()-]|[eE][+-]', "", first)
    word = words.replace("\u00a0", " ").strip()
    if word == "%":  # in quotes or after a backslash it is a mere text, and stands beside the value itself
        return " %" if re.search(r'"[^"]*%|\\%', first) else word
    return word if re.fullmatch(CURRENCY, word) else ""


def with_unit(cell: object, unit: str) -> object:
    """Return a number of a cell as a person sees it.

    >>> with_unit(0.07, "%")[1:], with_unit(1250.0, "€")[1:], with_unit(1067.0, "00000"), with_unit("a", "%")
    ('7%', '1250€', '01067', 'a')
    """
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return cell
    if unit.startswith("0"):
        return f"{int(cell):0{len(unit)}d}" if cell >= 0 and float(cell).is_integer() else cell
    number = float(Decimal(repr(cell)) * 100) if unit == "%" else cell
    return f"{CELL}{repr(number).removesuffix('.0')}{unit}"
