"""Odd files with the values that are right: a name, the file, and columns as a person reads them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True)
class OddFile:
    """``columns``: values by column, texts where it stays text. ``note``: what the person is told. ``apart``: why it is
    read otherwise than by pandas, polars and DuckDB where these agree."""

    name: str
    content: str | bytes
    columns: dict[str, list[object]]
    note: str = ""
    apart: str = ""
    ending: str = "csv"
    habits: str = ""


def numbers(
    name: str,
    texts: list[str],
    values: list[object],
    note: str = "",
    apart: str = "",
    separator: str = ",",
    habits: str = "",
) -> OddFile:
    """A file with one column of these texts beside one of names."""
    rows = [
        f'r{at}{separator}"{text}"' if separator in text else f"r{at}{separator}{text}" for at, text in enumerate(texts)
    ]
    content = "\n".join([f"name{separator}v", *rows]) + "\n"
    ending = {"\t": "tsv"}.get(separator, "csv")
    return OddFile(
        name, content, {"name": [f"r{at}" for at in range(len(texts))], "v": values}, note, apart, ending, habits
    )


SAY = "#decimal=comma or #decimal=point"
SAY_DAY = "#dates=day or #dates=month"
D = date
NUMBERS = [
    numbers("thousands", ["1,234", "45,000", "950"], [1234, 45000, 950], "comma parts thousands"),
    numbers("thousands_tab", ["1,234", "45,000", "950"], [1234, 45000, 950], "comma parts thousands", separator="\t"),
    numbers("thousands_semicolon", ["1,234", "45,000", "950"], ["1,234", "45,000", "950"], SAY, separator=";"),
    numbers(
        "thousands_said_comma", ["1,234", "45,000", "950"], [1.234, 45, 950], separator=";", habits="#decimal=comma"
    ),
    numbers(
        "thousands_said_point", ["1,234", "45,000", "950"], [1234, 45000, 950], separator=";", habits="#decimal=point"
    ),
    numbers("thousands_ungrouped", ["1,234", "45000", "950"], ["1,234", "45000", "950"], SAY),
    numbers("thousands_decimals", ["1,234.50", "999.25"], [1234.5, 999.25]),
    numbers("millions", ["1,234,567", "950"], [1234567, 950]),
    numbers("lakhs", ["12,34,567", "1,00,000"], [1234567, 100000]),
    numbers("comma_decimals", ["1,5", "12,25"], [1.5, 12.25], "decimal comma", separator=";"),
    numbers("comma_decimals_quoted", ["1,5", "12,25"], [1.5, 12.25], "decimal comma"),
    numbers("comma_three_decimals", ["0,125", "1,250"], [0.125, 1.25], "decimal comma", separator=";"),
    numbers("comma_three_and_two", ["1,234", "12,50"], [1.234, 12.5], "decimal comma", separator=";"),
    numbers("german", ["1.234,50", "999,90"], [1234.5, 999.9], "decimal comma", separator=";"),
    numbers(
        "german_thousands",
        ["1.234", "45.000", "950"],
        ["1.234", "45.000", "950"],
        SAY,
        "three digits after each point of a file with ;",
        separator=";",
    ),
    numbers("point_three_decimals", ["1.234", "45.125", "0.5"], [1.234, 45.125, 0.5], separator=";"),
    numbers("point_three_decimals_comma_file", ["1.234", "45.125"], [1.234, 45.125], "decimal point"),
    numbers("german_millions", ["1.234.567", "950"], [1234567, 950], separator=";"),
    numbers("mixed_marks", ["1,5", "2.5"], ["1,5", "2.5"], "some of its numbers have a decimal comma"),
    numbers("dollars", ["$100", "$2.50"], [100, 2.5], "in $"),
    numbers("dollars_thousands", ["$1,234.50", "$12.00"], [1234.5, 12], "in $"),
    numbers("dollars_spaced", ["$ 100", "$ 2.50"], [100, 2.5], "in $"),
    numbers("us_dollars", ["US$100", "US$2.50"], [100, 2.5], "in US$"),
    numbers("euro_after", ["100 €", "2,50 €"], [100, 2.5], "in €", separator=";"),
    numbers("euro_code", ["EUR 100", "EUR 2.50"], [100, 2.5], "in EUR"),
    numbers("euro_code_after", ["100 EUR", "2.50 EUR"], [100, 2.5], "in EUR"),
    numbers("pounds", ["£1,000", "£20"], [1000, 20], "in £"),
    numbers("yen", ["¥1,000", "¥20"], [1000, 20], "in ¥"),
    numbers("crowns", ["100 kr", "20 kr"], [100, 20], "in kr"),
    numbers("francs", ["CHF 1'234.50", "CHF 20.00"], [1234.5, 20], "in CHF"),
    numbers("rupees", ["₹1,00,000", "₹20"], [100000, 20], "in ₹"),
    numbers("two_currencies", ["$100", "€50"], ["$100", "€50"], "its amounts are in $ and €"),
    numbers("currency_once", ["$100", "50"], [100, 50], "1 value of 2 lack"),
    numbers("dash_cents", ["100,- €", "20,50 €"], [100, 20.5], "in €", separator=";"),
    numbers("percent", ["50%", "7.5%"], [50, 7.5], "in %"),
    numbers("percent_spaced", ["50 %", "7,5 %"], [50, 7.5], "in %", separator=";"),
    numbers("percent_some", ["50%", "0.5"], ["50%", "0.5"], "the others are not"),
    numbers("brackets", ["(450.00)", "12.00"], [-450, 12], "in brackets is negative"),
    numbers("brackets_dollars", ["($450.00)", "$12.00"], [-450, 12], "in brackets is negative"),
    numbers("brackets_dollars_outside", ["$(450.00)", "$12.00"], [-450, 12], "in brackets is negative"),
    numbers("brackets_all", ["(1)", "(2)"], ["(1)", "(2)"], "all of its numbers stand in brackets"),
    numbers("minus_after", ["450-", "12"], [-450, 12]),
    numbers("minus_after_decimals", ["450.25-", "12.00"], [-450.25, 12]),
    numbers("minus_sign", ["−450", "12"], [-450, 12]),
    numbers("minus_before_dollar", ["-$450", "$12"], [-450, 12], "in $"),
    numbers("minus_after_dollar", ["$-450", "$12"], [-450, 12], "in $"),
    numbers("plus", ["+5", "-3"], [5, -3]),
    numbers("space_groups", ["1 234", "950"], [1234, 950], "its spaces part thousands"),
    numbers("hard_space_groups", ["1\u00a0234", "950"], [1234, 950]),
    numbers("thin_space_groups", ["1\u202f234,50", "950,00"], [1234.5, 950], "decimal comma", separator=";"),
    numbers("apostrophe_groups", ["1'234", "950"], [1234, 950], "its apostrophes part thousands"),
    numbers("curly_apostrophe_groups", ["1’234.50", "950.00"], [1234.5, 950]),
    numbers("spaces_around", [" 12", "7 "], [12, 7]),
    numbers("phones", ["+49301234567", "+4940123456"], ["+49301234567", "+4940123456"], "telephone number", "a key"),
    numbers(
        "phones_late", [*(["5"] * 3000), "+49301234567"], [*(["5"] * 3000), "+49301234567"], "telephone number", "a key"
    ),
    numbers("phones_spaced", ["+49 30 1234567", "+44 123 456"], ["+49 30 1234567", "+44 123 456"]),
    numbers("phones_grouped", ["+49 123 456", "+44 123 456"], ["+49 123 456", "+44 123 456"], "telephone number"),
    numbers("large_changes", ["+1500000", "-2500000"], [1500000, -2500000]),
    numbers("codes", ["007", "012"], ["007", "012"]),
    numbers("codes_late", ["123", "007"], ["123", "007"]),
    numbers("zip_codes", ["01234", "99999"], ["01234", "99999"]),
    numbers("plain_decimals", ["1.5", "-2.25", "3"], [1.5, -2.25, 3]),
    numbers("leading_point", [".5", "1.25"], [0.5, 1.25]),
    numbers("exponents", ["1.5e3", "2E-2"], [1500, 0.02]),
    numbers("hexadecimal", ["0x1F", "0x2A"], ["0x1F", "0x2A"]),
    numbers("underscores", ["1_000", "2_000"], ["1_000", "2_000"]),
    numbers("thirty_digits", ["123456789012345678901234567890", "1"], [123456789012345678901234567890, 1]),
    numbers("beyond_doubles", ["9007199254740993", "1"], [9007199254740993, 1]),
    numbers("versions", ["1.2.3", "1.10.0"], ["1.2.3", "1.10.0"]),
    numbers("addresses", ["10.0.0.1", "192.168.1.20"], ["10.0.0.1", "192.168.1.20"]),
    numbers("ranges", ["1-2", "3-4"], ["1-2", "3-4"]),
    numbers("with_unit_words", ["12 kg", "3 kg"], ["12 kg", "3 kg"]),
    numbers("suffixes", ["1.2M", "300k"], ["1.2M", "300k"]),
    numbers(
        "hashes",
        ["4E801", "12"],
        ["4E801", "12"],
        "'4E801' is no number",
        "a hash is no infinite number",
    ),
    numbers("one_word", ["1", "2", "about twelve"], ["1", "2", "about twelve"], "'about twelve' is no number"),
    numbers("not_available", ["1", "n/a", "3"], [1, None, 3], "'n/a' is no value, 1 time"),
    numbers("dashes", ["1.5", "-", "3"], [1.5, None, 3], "'-' is no value"),
    numbers("empty", ["1", "", "3"], [1, None, 3]),
    numbers("nan", ["1.5", "NaN", "3"], [1.5, None, 3], "no value"),
    numbers("null_words", ["1", "NULL", "3"], [1, None, 3], "'NULL' is no value"),
    numbers("division", ["1", "#DIV/0!", "3"], [1, None, 3], "'#DIV/0!' is an error of the spreadsheet"),
    numbers("reference", ["1.5", "#REF!", "3"], [1.5, None, 3], "an error of the spreadsheet"),
    numbers("error_in_texts", ["a", "#N/A", "b"], ["a", "#N/A", "b"], "holds '#N/A', an error of the spreadsheet"),
    numbers("infinite", ["1.5", "inf"], ["1.5", "inf"], "'inf' is no number", "it spoils sums"),
    numbers("truth", ["true", "false"], [True, False]),
    numbers("truth_capitals", ["TRUE", "FALSE"], [True, False]),
    numbers("yes_no", ["yes", "no"], ["yes", "no"]),
    numbers("letters_tf", ["t", "f"], ["t", "f"]),
    numbers("zero_one", ["0", "1"], [0, 1]),
]
OTHERS = [
    OddFile(
        "comma_by_other_column",
        "n;a;b\nx;1,234;0,5\ny;2,500;7,25\n",
        {"n": ["x", "y"], "a": [1.234, 2.5], "b": [0.5, 7.25]},
        "decimal comma",
    ),
    OddFile(
        "thousands_by_other_column",
        "n;a;b\nx;1,234;0.5\ny;2,500;7.25\n",
        {"n": ["x", "y"], "a": [1234, 2500], "b": [0.5, 7.25]},
        "comma parts thousands",
    ),
    OddFile(
        "points_by_other_column",
        "n;a;b\nx;1.234;0,5\ny;2.500;7,25\n",
        {"n": ["x", "y"], "a": [1234, 2500], "b": [0.5, 7.25]},
        "point parts thousands",
        "another column has commas",
    ),
    OddFile(
        "comma_by_dates",
        "d;a\n13.02.2024;1,234\n14.02.2024;2,500\n",
        {"d": [D(2024, 2, 13), D(2024, 2, 14)], "a": [1.234, 2.5]},
        "decimal comma",
    ),
    OddFile("list_beside_decimals", 'p,tags\n1.5,"1,2"\n2.25,"3,4"\n', {"p": [1.5, 2.25], "tags": ["1,2", "3,4"]}, SAY),
]
DATES = [
    numbers("day_first", ["13/02/2026", "03/04/2026"], [D(2026, 2, 13), D(2026, 4, 3)], "day, month, year"),
    numbers("month_first", ["02/13/2026", "03/04/2026"], [D(2026, 2, 13), D(2026, 3, 4)], "month, day, year"),
    numbers("either_first", ["01/02/2026", "03/04/2026"], ["01/02/2026", "03/04/2026"], SAY_DAY),
    numbers("said_day", ["01/02/2026", "03/04/2026"], [D(2026, 2, 1), D(2026, 4, 3)], habits="#dates=day"),
    numbers("said_month", ["01/02/2026", "03/04/2026"], [D(2026, 1, 2), D(2026, 3, 4)], habits="#dates=month"),
    numbers("both_first", ["13/02/2026", "02/13/2026"], ["13/02/2026", "02/13/2026"], "in others the month"),
    numbers("dots", ["01.02.2026", "03.04.2026"], [D(2026, 2, 1), D(2026, 4, 3)], "day, month, year"),
    numbers("short_dots", ["1.2.2026", "13.4.2026"], [D(2026, 2, 1), D(2026, 4, 13)], "day, month, year"),
    numbers("dashes_day", ["13-02-2026", "03-04-2026"], [D(2026, 2, 13), D(2026, 4, 3)], "day, month, year"),
    numbers("one_digit", ["1/31/2026", "2/1/2026"], [D(2026, 1, 31), D(2026, 2, 1)], "month, day, year"),
    numbers("two_digit_years", ["1/31/24", "2/1/24"], [D(2024, 1, 31), D(2024, 2, 1)], "month, day, year"),
    numbers("two_digit_years_dots", ["31.01.24", "01.02.24"], [D(2024, 1, 31), D(2024, 2, 1)], "day, month, year"),
    numbers("two_digits_thrice", ["24/01/02", "24/01/03"], ["24/01/02", "24/01/03"], SAY_DAY),
    numbers("iso", ["2024-01-31", "2024-02-01"], [D(2024, 1, 31), D(2024, 2, 1)]),
    numbers("iso_slashes", ["2024/01/31", "2024/02/01"], [D(2024, 1, 31), D(2024, 2, 1)]),
    numbers(
        "iso_time",
        ["2024-01-31 10:30:00", "2024-02-01 00:00:00"],
        [datetime(2024, 1, 31, 10, 30), datetime(2024, 2, 1)],
    ),
    numbers(
        "iso_t", ["2024-01-31T10:30:00", "2024-02-01T00:00:00"], [datetime(2024, 1, 31, 10, 30), datetime(2024, 2, 1)]
    ),
    numbers(
        "offset",
        ["2024-01-31T10:30:00+02:00", "2024-02-01T00:00:00+02:00"],
        [datetime(2024, 1, 31, 10, 30), datetime(2024, 2, 1)],
        "local time, +02:00 from UTC",
    ),
    numbers(
        "offsets",
        ["2024-01-31T10:30:00+02:00", "2024-02-01T00:00:00+01:00"],
        ["2024-01-31T10:30:00+02:00", "2024-02-01T00:00:00+01:00"],
        "is text",
    ),
    numbers("names_of_months", ["3 Feb 2024", "14 March 2024"], [D(2024, 2, 3), D(2024, 3, 14)], "month's name"),
    numbers("names_dashed", ["03-Feb-2024", "14-Mar-2024"], [D(2024, 2, 3), D(2024, 3, 14)], "month's name"),
    numbers("names_american", ["Feb 3, 2024", "March 14, 2024"], [D(2024, 2, 3), D(2024, 3, 14)], "month's name"),
    numbers(
        "day_first_clock",
        ["13/02/2026 10:30", "03/04/2026 09:00"],
        [datetime(2026, 2, 13, 10, 30), datetime(2026, 4, 3, 9)],
        "day, month, year",
    ),
    numbers(
        "month_first_pm",
        ["2/13/2026 4:05 PM", "3/4/2026 9:00 AM"],
        [datetime(2026, 2, 13, 16, 5), datetime(2026, 3, 4, 9)],
        "month, day, year",
    ),
    numbers("dates_missing", ["13/02/2026", "n/a"], [D(2026, 2, 13), None], "'n/a' is no value"),
    numbers("no_such_day", ["31/02/2026", "13/02/2026"], ["31/02/2026", "13/02/2026"], "no date as the others"),
    numbers("iso_and_slashes", ["2024-01-31", "01/02/2024"], ["2024-01-31", "01/02/2024"], "is text"),
    numbers("quarters", ["2024-Q1", "2024-Q2"], ["2024-Q1", "2024-Q2"]),
    numbers("compact", ["20240131", "20240201"], [20240131, 20240201]),
    OddFile(
        "order_by_other_dates",
        "a,b\n13/02/2026,01/02/2026\n14/02/2026,02/02/2026\n",
        {"a": [D(2026, 2, 13), D(2026, 2, 14)], "b": [D(2026, 2, 1), D(2026, 2, 2)]},
        "If that is wrong",
    ),
]
HEADERS = [
    OddFile("years", "name,2022,2023\na,1,2\nb,3,4\n", {"name": ["a", "b"], "2022": [1, 3], "2023": [2, 4]}),
    OddFile("years_only", "2022,2023\n5,6\n7,8\n", {"2022": [5, 7], "2023": [6, 8]}),
    OddFile(
        "year_data", "oslo,2001\nrome,2005\n", {"column_1": ["oslo", "rome"], "column_2": [2001, 2005]}, "no header"
    ),
    OddFile("no_header", "a,1\nb,2\n", {"column_1": ["a", "b"], "column_2": [1, 2]}, "no header"),
    OddFile("numbers_only", "1,2\n3,4\n", {"column_1": [1, 3], "column_2": [2, 4]}, "no header"),
    OddFile("periods", "name,1,2,3\na,10,20,30\n", {"name": ["a"], "1": [10], "2": [20], "3": [30]}),
    OddFile(
        "empty_cell",
        "name,,v\na,x,1\nb,y,2\n",
        {"name": ["a", "b"], "column_2": ["x", "y"], "v": [1, 2]},
        "column_2 (it has no name)",
    ),
    OddFile("index_column", ",name,v\n0,a,1\n1,b,2\n", {"column_1": [0, 1], "name": ["a", "b"], "v": [1, 2]}),
    OddFile("index_of_two", ",v\n0,5\n1,6\n", {"column_1": [0, 1], "v": [5, 6]}),
    OddFile("duplicates", "a,a,b\n1,2,3\n4,5,6\n", {"a": [1, 4], "a_2": [2, 5], "b": [3, 6]}, "its name stands twice"),
    OddFile("duplicates_case", "a,A\n1,2\n", {"a": [1], "A_2": [2]}),
    OddFile("title", "Report of 2024\n\nname,v\na,1\nb,2\n", {"name": ["a", "b"], "v": [1, 2]}, "above the header"),
    OddFile(
        "title_close", "Report of 2024\nname,v,w\na,1,2\n", {"name": ["a"], "v": [1], "w": [2]}, "above the header"
    ),
    OddFile("title_padded", "Report,,\n,,\nname,v,w\na,1,2\n", {"name": ["a"], "v": [1], "w": [2]}, "above the header"),
    OddFile("titles", "Report\nby Ann\n\nname,v\na,1\n", {"name": ["a"], "v": [1]}, "3 lines above"),
    OddFile("blank_above", "\n\nname,v\na,1\n", {"name": ["a"], "v": [1]}),
    OddFile("header_spaces", "name , v\na,1\n", {"name": ["a"], "v": [1]}),
    OddFile("header_newline", '"first\nname",v\na,1\n', {"first name": ["a"], "v": [1]}),
    OddFile("header_only", "name,v\n", {"name": [], "v": []}),
    OddFile("texts_only", "name,city\nann,oslo\nbob,rome\n", {"name": ["ann", "bob"], "city": ["oslo", "rome"]}),
    OddFile("separator_at_end", "name,v,\na,1,\n", {"name": ["a"], "v": [1], "column_3": [None]}),
    OddFile("one_column", "v\n1\n2\n", {"v": [1, 2]}),
    OddFile("one_column_texts", "note\nhello, you\nbye\nthanks\n", {"note": ["hello, you", "bye", "thanks"]}),
    OddFile(
        "comma_without_quotes",
        "name,v\na,1,234\nb,5,678\n",
        {"name": ["a", "b"], "v": [1, 5], "column_3": [234, 678]},
        "its digits are in two columns",
    ),
    OddFile("named_file", "file,v\na,1\n", {"file": ["a"], "v": [1]}),
    OddFile("quoted_header", '"name","v"\n"a","1"\n', {"name": ["a"], "v": [1]}),
    OddFile(
        "dates_as_header", "name,2024-01-31,2024-02-29\na,1,2\n", {"name": ["a"], "2024-01-31": [1], "2024-02-29": [2]}
    ),
    OddFile("text_over_numbers_3", "name,v,2\na,1,5\n", {"name": ["a"], "v": [1], "2": [5]}),
]
SHAPES = [
    OddFile("semicolons", "name;v\na;1\n", {"name": ["a"], "v": [1]}),
    OddFile("tabs", "name\tv\na\t1\n", {"name": ["a"], "v": [1]}, ending="tsv"),
    OddFile("tabs_in_csv", "name\tv\na\t1\n", {"name": ["a"], "v": [1]}),
    OddFile("pipes", "name|v\na|1\n", {"name": ["a"], "v": [1]}),
    OddFile("semicolon_commas", "n;v\na;1,5\nb;2,5\n", {"n": ["a", "b"], "v": [1.5, 2.5]}, "decimal comma"),
    OddFile(
        "semicolon_comma_header", "Name;Price, EUR\nA;1,5\nB;2,5\n", {"Name": ["A", "B"], "Price, EUR": [1.5, 2.5]}
    ),
    OddFile("comma_semicolon_list", "id,tags\n1,a;b\n2,c;d\n", {"id": [1, 2], "tags": ["a;b", "c;d"]}),
    OddFile("carriage_returns", "name,v\ra,1\rb,2\r", {"name": ["a", "b"], "v": [1, 2]}),
    OddFile("windows_lines", "name,v\r\na,1\r\nb,2\r\n", {"name": ["a", "b"], "v": [1, 2]}),
    OddFile("mixed_lines", "name,v\r\na,1\nb,2\r\n", {"name": ["a", "b"], "v": [1, 2]}),
    OddFile("mixed_lines_title", "Title\nname,v\r\na,1\r\nb,2\r\n", {"name": ["a", "b"], "v": [1, 2]}),
    OddFile("no_line_end", "name,v\na,1", {"name": ["a"], "v": [1]}),
    OddFile("line_in_cell", 'name,v\n"a\nb",1\nc,2\n', {"name": ["a\nb", "c"], "v": [1, 2]}),
    OddFile("line_in_cell_windows", 'name,v\r\n"a\nb",1\r\nc,2\r\n', {"name": ["a\nb", "c"], "v": [1, 2]}),
    OddFile("doubled_quotes", 'name,v\n"a ""b""",1\n', {"name": ['a "b"'], "v": [1]}),
    OddFile("quote_inside", 'name,v\n5" pipe,1\nx,2\n', {"name": ['5" pipe', "x"], "v": [1, 2]}),
    OddFile(
        "single_quotes",
        "name,v\n'a, b',1\n'c',2\n",
        {"name": ["a, b", "c"], "v": [1, 2]},
        apart="the libraries know no single quotes",
    ),
    OddFile("backslashes", 'name,v\n"a \\"b\\", c",1\nd,2\n', {"name": ['a "b", c', "d"], "v": [1, 2]}),
    OddFile("mark", "\ufeffname,v\na,1\n", {"name": ["a"], "v": [1]}),
    OddFile("utf_16", "name,v\nä,1\n".encode("utf-16"), {"name": ["ä"], "v": [1]}, "utf-16"),
    OddFile("windows_1252", "name,v\nä,1\n".encode("cp1252"), {"name": ["ä"], "v": [1]}, "cp1252"),
    OddFile("blank_lines", "name,v\na,1\n\nb,2\n\n", {"name": ["a", "b"], "v": [1, 2]}),
    OddFile("long_row", "name,v\na,1\nb,2\nc,3,4\n", {"name": ["a", "b"], "v": [1, 2]}, "1 row left out"),
    OddFile(
        "short_row", "name,v,w\na,1,2\nb,3,4\nc\n", {"name": ["a", "b"], "v": [1, 3], "w": [2, 4]}, "1 row left out"
    ),
    OddFile("total", "name,v\na,1\nb,2\nTotal,3\n", {"name": ["a", "b", "Total"], "v": [1, 2, 3]}, "add up the others"),
    OddFile("trailing_spaces", "name,v\na ,1 \nb, 2\n", {"name": ["a ", "b"], "v": [1, 2]}),
    OddFile("empty_column", "name,v,w\na,,1\nb,,2\n", {"name": ["a", "b"], "v": [None, None], "w": [1, 2]}),
]
PHONES = [
    OddFile(
        "phones_by_name",
        "name,Tel.\na,30 123 456\nb,40 987 654\n",
        {"name": ["a", "b"], "Tel.": ["30 123 456", "40 987 654"]},
        "by its name it holds telephone numbers",
    ),
    OddFile(
        "hotels_spaced",
        "name,Hotel\na,30 123 456\nb,40 987 654\n",
        {"name": ["a", "b"], "Hotel": [30123456, 40987654]},
        "its spaces part thousands",
    ),
]
ONE_COLUMN = [
    OddFile("one_column_decimals", "v\n9,54\nn/a\n1,76\n", {"v": [9.54, None, 1.76]}, "decimal comma", "one column"),
    OddFile("one_column_thousands", "v\n1,234\n-950\n", {"v": [1234, -950]}, "comma parts thousands", "one column"),
    OddFile("one_column_comma_at_end", "v\nnorth\nsouth\nx, y\n", {"v": ["north", "south", "x, y"]}),
    OddFile(
        "one_column_some_commas",
        "v\nx, y\nx, y\nsouth\n5 apples\nx, y\n",
        {"v": ["x, y", "x, y", "south", "5 apples", "x, y"]},
    ),
    OddFile("two_columns_of_numbers", "v,w\n1,234\n5,678\n", {"v": [1, 5], "w": [234, 678]}),
]
TOTALS = [
    OddFile(
        "total_without_name",
        "name,v\na,1\nb,2\n,3\n",
        {"name": ["a", "b", None], "v": [1, 2, 3]},
        "the row with name without a name seems to add up",
    ),
    OddFile("no_total_without_name", "name,v\na,1\nb,2\n,4\n", {"name": ["a", "b", None], "v": [1, 2, 4]}),
    OddFile(
        "total_of_all",
        "name,v\nAll regions,3\na,1\nb,2\n",
        {"name": ["All regions", "a", "b"], "v": [3, 1, 2]},
        "'All regions' seems to add up",
    ),
    OddFile(
        "total_general",
        "name,v\na,1\nb,2\nTOTAL GENERAL,3\n",
        {"name": ["a", "b", "TOTAL GENERAL"], "v": [1, 2, 3]},
        "'TOTAL GENERAL' seems to add up",
    ),
    OddFile("one_figure", "name,v,w\na,1,\nb,2,5\n", {"name": ["a", "b"], "v": [1, 2], "w": [None, 5]}),
    OddFile("half_of_all", "name,v\na,5\nb,2\nc,3\n", {"name": ["a", "b", "c"], "v": [5, 2, 3]}),
    OddFile(
        "no_total_by_name",
        "name,v\nTotal Energies,1\nAll Bran,2\nShell,5\n",
        {"name": ["Total Energies", "All Bran", "Shell"], "v": [1, 2, 5]},
    ),
    OddFile(
        "subtotals",
        "name,v\na,1\nA total,1\nb,2\nb Total,2\n",
        {"name": ["a", "A total", "b", "b Total"], "v": [1, 1, 2, 2]},
        "'A total', 'b Total' seem to add up",
    ),
    OddFile(
        "names_with_total",
        "name,v\nCrest Total,1\nAjax Total,2\nSure,5\n",
        {"name": ["Crest Total", "Ajax Total", "Sure"], "v": [1, 2, 5]},
    ),
]
BEYOND = "more digits than fit beside decimals"
LONG_NUMBERS = [
    numbers("long_beside_decimals", ["9007199254740993", "5.5"], ["9007199254740993", "5.5"], BEYOND, "it stays exact"),
    numbers(
        "long_late",
        [*(["1.5"] * 3000), "9007199254740993"],
        [*(["1.5"] * 3000), "9007199254740993"],
        BEYOND,
        "it stays exact",
    ),
    numbers("long_round", ["9007199254740992", "5.5"], [9007199254740992, 5.5]),
    numbers("long_amounts", ["$9,007,199,254,740,993", "$5.50"], ["$9,007,199,254,740,993", "$5.50"], BEYOND),
]
IDENTIFIER = "550E8400-E29B-41D4-A716-446655440000"
JSON_FILES = [
    OddFile(
        "json_long_within",
        '[{"v": {"id": 18446744073709551617, "s": "007"}}, {"v": {"id": 2.5, "s": "1"}}]',
        {"v": [{"id": "18446744073709551617", "s": "007"}, {"id": "2.5", "s": "1"}]},
        BEYOND,
        ending="json",
    ),
    OddFile(
        "json_long_in_lists",
        '[{"v": [9007199254740993, 2.5]}]',
        {"v": [["9007199254740993", "2.5"]]},
        BEYOND,
        ending="json",
    ),
    OddFile(
        "json_decimals_within",
        '[{"v": {"id": 1.5, "s": "9007199254740993"}}]',
        {"v": [{"id": 1.5, "s": "9007199254740993"}]},
        ending="json",
    ),
    OddFile("json_large_within", '[{"v": {"x": 1.5e20}}]', {"v": [{"x": 1.5e20}]}, ending="json"),
    OddFile(
        "json_identifiers",
        f'[{{"v": "{IDENTIFIER}", "w": {{"u": "{IDENTIFIER}"}}}}]',
        {"v": [IDENTIFIER], "w": [{"u": IDENTIFIER}]},
        ending="json",
    ),
    OddFile(
        "json_no_dates",
        '[{"v": "1-2-3", "w": {"d": "24-01-31"}}]',
        {"v": ["1-2-3"], "w": [{"d": "24-01-31"}]},
        ending="json",
    ),
    OddFile(
        "json_dates",
        '[{"v": "2024-01-31", "w": {"d": "2024-01-31"}}]',
        {"v": [D(2024, 1, 31)], "w": [{"d": D(2024, 1, 31)}]},
        ending="json",
    ),
    OddFile(
        "json_offset",
        '[{"v": "2024-01-31T10:30:00+02:00"}]',
        {"v": [datetime(2024, 1, 31, 10, 30)]},
        "local time, +02:00 from UTC",
        ending="json",
    ),
    OddFile(
        "json_rows",
        '{"rows": [{"v": 18446744073709551617}, {"v": 2}]}',
        {"v": [18446744073709551617, 2]},
        "its rows are the objects in 'rows'.",
        ending="json",
    ),
    OddFile(
        "json_rows_in_response",
        '{"response": {"n": 2, "items": [{"v": 1}, {"v": 2}]}, "ok": true}',
        {"v": [1, 2]},
        "its rows are the objects in 'response.items'; left out: ok, n.",
        ending="json",
    ),
    OddFile(
        "json_two_lists",
        '{"a": [{"v": 1}], "b": [{"w": 1}]}',
        {"a": [[{"v": 1}]], "b": [[{"w": 1}]]},
        "If its rows are in 'a' or 'b'",
        ending="json",
    ),
    OddFile(
        "json_columns",
        '{"a": {"0": 1}, "b": {"0": 2}}',
        {"a": [{"0": 1}], "b": [{"0": 2}]},
        "the file is one object, and is one row",
        ending="json",
    ),
    OddFile("json_one_line", '{"id": 1, "lines": [{"v": 1}]}', {"id": [1], "lines": [[{"v": 1}]]}, ending="jsonl"),
    OddFile("json_keys_alike", '[{"A": 1, "a": 2}]', {"A": [1], "a_1": [2]}, ending="json"),
    OddFile("json_long", '[{"v": 18446744073709551617}, {"v": 2}]', {"v": [18446744073709551617, 2]}, ending="json"),
    OddFile(
        "json_long_beside_decimals",
        '[{"v": 18446744073709551617}, {"v": 2.5}]',
        {"v": ["18446744073709551617", "2.5"]},
        BEYOND,
        ending="json",
    ),
    OddFile("json_large_decimals", '[{"v": 1.5e20}, {"v": 2.5}]', {"v": [1.5e20, 2.5]}, ending="json"),
    OddFile("json_numbers_beside_texts", '[{"v": 1}, {"v": "2"}, {"v": 3.5}]', {"v": [1, 2, 3.5]}, ending="json"),
    OddFile(
        "json_texts_beside_numbers", '[{"v": 1}, {"v": "x"}]', {"v": ["1", "x"]}, "'x' is no number", ending="json"
    ),
    OddFile("json_mark", b'\xef\xbb\xbf[{"v": 1}, {"v": 2}]', {"v": [1, 2]}, ending="json"),
    OddFile(
        "json_late_key",
        "".join(f'{{"v": {at}}}\n' for at in range(25_000)) + '{"v": 1, "w": 5}\n',
        {"v": [*range(25_000), 1], "w": [*([None] * 25_000), 5]},
        ending="jsonl",
    ),
    OddFile(
        "json_late_text",
        "".join(f'{{"v": {at}}}\n' for at in range(25_000)) + '{"v": "x"}\n',
        {"v": [*map(str, range(25_000)), "x"]},
        "'x' is no number",
        ending="jsonl",
    ),
]
ODD_FILES = (*NUMBERS, *OTHERS, *DATES, *HEADERS, *SHAPES, *PHONES, *ONE_COLUMN, *TOTALS, *LONG_NUMBERS, *JSON_FILES)
