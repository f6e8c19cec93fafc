"""Text from outside: what hides goes, what people write stays, and a quote cannot be left."""

import json
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from decisor.system.text import clean_text, clean_value, quote_on_one_line

JOINERS = "\u200c\u200d"  # Persian and Indic scripts and joined emoji need them
DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
STAY = (*"\t\n\r", *JOINERS)


def test_no_control_direction_or_tag_character_comes_through() -> None:
    for mark in map(chr, range(sys.maxunicode + 1)):
        hidden = unicodedata.category(mark) in ("Cc", "Cs", "Zl", "Zp") or 0xE0000 <= ord(mark) < 0xE1000
        if (hidden or unicodedata.bidirectional(mark) in DIRECTIONS) and mark not in STAY:
            assert mark not in clean_text(f"a{mark}b"), hex(ord(mark))


def test_what_people_write_stays_as_it_is() -> None:
    for text in ("Zürich\t1\r\n", "می\u200cخواهم", "👩\u200d🔬 ❤\ufe0f", "日本 한국 ไทย", "e\u0301", "\u00a0x"):
        assert clean_text(text) == text


@given(st.text(st.characters(), max_size=40))
def test_cleaning_twice_is_cleaning_once_and_the_result_can_be_stored(text: str) -> None:
    once = clean_text(text)
    assert clean_text(once) == once
    once.encode()


@given(st.text(st.characters(), max_size=40))
def test_a_quote_is_one_line_of_json(text: str) -> None:
    line = quote_on_one_line(text)
    assert len(line.splitlines()) == 1 and json.loads(line) == clean_text(text)


def test_all_texts_and_keys_of_a_value_are_cleaned() -> None:
    assert clean_value({"a\x00": ["\ud800", {"b": "\u202ec"}, 1, None]}) == {"a": ["\ufffd", {"b": "c"}, 1, None]}
