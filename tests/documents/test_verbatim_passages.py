"""Passages hold the text as it stands, tables keep the names of their columns, and no file is read as nonsense."""

import io

import pytest

from decisor.documents.formats import UnreadableDocument, decode_document, read_html, read_markdown
from decisor.documents.passage import DocumentContent, TextBlock, cut_passages
from decisor.documents.reader import RowForm

TEXTS = [
    'He said "It is done." Then he left. (So he did.) She wrote: “No!” And more [see p. 3.] followed.',
    "彼は「はい。」と言った。次の文。終わり！",
    "A «quote.» And more.",
    "Girl (彼女。 , Kanojo. ) is a novel.",
]


@pytest.mark.parametrize("words", [3, 5, 8, 100])
@pytest.mark.parametrize("text", TEXTS)
def test_no_character_of_a_text_is_lost_or_added(text: str, words: int) -> None:
    cut = [one.text for one in cut_passages("k", DocumentContent("T", (TextBlock(text),)), words)]
    assert "".join("".join(cut).split()) == "".join(text.split())
    assert all(one in text for one in cut)


def all_of(content: DocumentContent) -> list[str]:
    return [one.text for one in cut_passages("k", content, 20)]


def rows(number: int) -> list[tuple[str, str]]:
    return [(f"city {at}", f"{at * 1000} people live there") for at in range(number)]


def test_each_passage_of_a_table_names_its_columns() -> None:
    import docx

    from decisor.documents.formats import read_docx

    markdown = "| Name | People |\n|---|---|\n" + "\n".join(f"| {a} | {b} |" for a, b in rows(30))
    html = "<table><tr><th>Name</th><th>People</th></tr>" + "".join(
        f"<tr><td>{a}</td><td>{b}</td></tr>" for a, b in rows(30)
    )
    document = docx.Document()
    table = document.add_table(0, 2)
    for pair in [("Name", "People"), *rows(30)]:
        for cell, text in zip(table.add_row().cells, pair, strict=True):
            cell.text = text
    file = io.BytesIO()
    document.save(file)
    contents = [read_markdown(markdown.encode()), read_html(f"{html}</table><p>After.</p>".encode())]
    for content in [*contents, read_docx(file.getvalue())]:
        cut = all_of(content)
        assert len(cut) > 5
        assert all(one.count("Name | People") == 1 for one in cut), cut
        assert all("".join(cut).count(f"{a} | {b}") == 1 for a, b in rows(30))


def test_an_empty_first_cell_of_html_keeps_its_place() -> None:
    html = b"<table><tr><th></th><th>2023</th><th>2024</th></tr><tr><td></td><td>5</td><td>6</td></tr></table>"
    assert [block.text for block in read_html(html).blocks] == ["| 2023 | 2024", "| 5 | 6"]


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("日本の首都は東京です。人口は約千四百万人です。", "shift_jis"),
        ("Столица России - город Москва.", "cp1251"),
        ("Zażółć gęślą jaźń. Łódź leży w środkowej Polsce.", "iso8859_2"),
        ("Příliš žluťoučký kůň", "iso8859_2"),
        ("中国的首都是北京。", "gb18030"),
        ("Η Αθήνα είναι η πρωτεύουσα.", "iso8859_7"),
    ],
)
def test_a_text_of_another_encoding_is_left_out_with_what_to_do(text: str, codec: str) -> None:
    with pytest.raises(UnreadableDocument, match="save it as UTF-8"):
        decode_document(text.encode(codec))
    assert decode_document(text.encode(codec), codec) == text


@pytest.mark.parametrize(
    "text",
    [
        "Köln, Málaga, Besançon, Århus; 20 °C, 5 m², «où», “ça” – 10 €, col·lecció, Mª José, ½ l, n°3, L’été, 3×4",
        "Übergrößenträger für Ärzte; naïveté; São João; Reykjavík þess",
    ],
)
def test_a_western_text_is_read_as_windows_1252(text: str) -> None:
    assert decode_document(text.encode("cp1252")) == text


def test_a_row_with_an_empty_text_is_left_out() -> None:
    with pytest.raises(UnreadableDocument, match="no text"):
        RowForm().document("", {"id": 1, "title": "Genua", "text": ""}, "row 1").cut()
    [passage] = RowForm().document("", {"id": 1, "text": "", "body": "A port."}, "row 1").cut()
    assert passage.text == "A port."
