"""Files as programs export them (SAP, Shopify, Stripe, banks, Excel of several countries), with the right values."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time

import openpyxl
import polars

from databases.odd_files import OddFile, numbers


def sheet(
    rows: Sequence[Sequence[object]], formats: Mapping[str, str] | None = None, merged: Sequence[str] = ()
) -> bytes:
    """A workbook with these rows; ``formats``: of cells by their place."""
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    for place, code in (formats or {}).items():
        book.active[place].number_format = code
    for cells in merged:
        book.active.merge_cells(cells)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def parquet(frame: polars.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


PROGRAMS = [
    OddFile(
        "sap_list",
        "|Material|Menge|Wert    |\n|A1      |1.250-|12.500,00|\n|A2      |   30|   99,50-|\n",
        {
            "column_1": [None, None],
            "Material": ["A1      ", "A2      "],
            "Menge": [-1250, 30],
            "Wert": [12500, -99.5],
            "column_5": [None, None],
        },
        "decimal comma",
    ),
    OddFile(
        "sap_leading_zeros",
        "MATNR\tWERKS\tLABST\n000000000000012345\t1000\t1.250,000\n000000000000099999\t2000\t-7,500\n",
        {"MATNR": ["000000000000012345", "000000000000099999"], "WERKS": [1000, 2000], "LABST": [1250, -7.5]},
        "decimal comma",
    ),
    OddFile(
        "sap_dates",
        "Beleg;Datum;Zeit\n4711;20240131;101500\n4712;20240201;093000\n",
        {"Beleg": [4711, 4712], "Datum": [20240131, 20240201], "Zeit": ["101500", "093000"]},
        "'093000' is no number",
    ),
    OddFile(
        "shopify",
        "Name,Email,Financial Status,Paid at,Total,Lineitem quantity,Lineitem sku\n"
        "#1001,a@x.de,paid,2024-01-31 10:15:00 +0100,25.00,1,0815\n#1001,a@x.de,,,,2,4711\n",
        {
            "Name": ["#1001", "#1001"],
            "Email": ["a@x.de", "a@x.de"],
            "Financial Status": ["paid", None],
            "Paid at": [datetime(2024, 1, 31, 10, 15), None],
            "Total": [25, None],
            "Lineitem quantity": [1, 2],
            "Lineitem sku": ["0815", "4711"],
        },
        "local time, +0100 from UTC",
    ),
    OddFile(
        "stripe",
        "id,Created (UTC),Amount,Currency,Captured\nch_1,2024-01-31 10:15,25.00,eur,true\n"
        "ch_2,2024-02-01 00:00,1000.50,usd,false\n",
        {
            "id": ["ch_1", "ch_2"],
            "Created (UTC)": [datetime(2024, 1, 31, 10, 15), datetime(2024, 2, 1)],
            "Amount": [25, 1000.5],
            "Currency": ["eur", "usd"],
            "Captured": [True, False],
        },
    ),
    OddFile(
        "stripe_cents",
        "id,amount,created\nch_1,2500,1706695200\nch_2,100050,1706781600\n",
        {"id": ["ch_1", "ch_2"], "amount": [2500, 100050], "created": [1706695200, 1706781600]},
    ),
    OddFile(
        "paypal",
        '"Date","Time","Gross","Fee","Transaction ID"\n"31/01/2024","10:15:00","1.250,00","-0,35","8AB"\n'
        '"01/02/2024","00:00:00","-12,50","0,00","7E5"\n',
        {
            "Date": [date(2024, 1, 31), date(2024, 2, 1)],
            "Time": [time(10, 15), time(0)],
            "Gross": [1250, -12.5],
            "Fee": [-0.35, 0],
            "Transaction ID": ["8AB", "7E5"],
        },
        "decimal comma",
    ),
    OddFile(
        "bank_german",
        "Buchungstag;Betrag;IBAN\n31.01.24;-1.234,56;DE89370400440532013000\n01.02.24;+20,00;DE02120300000000202051\n",
        {
            "Buchungstag": [date(2024, 1, 31), date(2024, 2, 1)],
            "Betrag": [-1234.56, 20],
            "IBAN": ["DE89370400440532013000", "DE02120300000000202051"],
        },
        "decimal comma",
    ),
    OddFile(
        "bank_soll_haben",
        "Betrag;S/H\n1.234,56 S;x\n20,00 H;y\n",
        {"Betrag": ["1.234,56 S", "20,00 H"], "S/H": ["x", "y"]},
    ),
    OddFile(
        "bank_cr_dr",
        'Amount,n\n"1,234.56 CR",a\n20.00 DR,b\n',
        {"Amount": ["1,234.56 CR", "20.00 DR"], "n": ["a", "b"]},
    ),
    OddFile(
        "swiss",
        "Artikel;Preis\nA;CHF 1’234.50\nB;CHF -.95\nC;CHF 7.--\n",
        {"Artikel": ["A", "B", "C"], "Preis": [1234.5, -0.95, 7]},
        "in CHF",
    ),
    OddFile(
        "swiss_excel",
        "Artikel;Preis;Anteil\nA;1'234.50;12.5%\nB;12'345'678.00;7%\n",
        {"Artikel": ["A", "B"], "Preis": [1234.5, 12345678], "Anteil": [12.5, 7]},
        "its apostrophes part thousands",
    ),
    OddFile(
        "indian",
        'Item,Amount\na,"1,23,456"\nb,"12,34,56,789.50"\nc,"₹ 1,00,000"\n',
        {"Item": ["a", "b", "c"], "Amount": [123456, 123456789.5, 100000]},
        "in ₹",
    ),
    OddFile(
        "indian_words", "Item,Amount\na,1.5 lakh\nb,2 crore\n", {"Item": ["a", "b"], "Amount": ["1.5 lakh", "2 crore"]}
    ),
    OddFile(
        "google_sheets",
        'Zeitstempel,Score,Consent\n"1/31/2024 9:05:03",8 / 10,TRUE\n"2/1/2024 17:00:00",9 / 10,FALSE\n',
        {
            "Zeitstempel": [datetime(2024, 1, 31, 9, 5, 3), datetime(2024, 2, 1, 17)],
            "Score": ["8 / 10", "9 / 10"],
            "Consent": [True, False],
        },
        "month, day, year",
    ),
    OddFile(
        "google_ads",
        'Campaign report\n"January 1, 2024 - January 31, 2024"\nCampaign,Clicks,CTR,Cost\n'
        'A,"1,234",3.21%,€10.50\nB,950,--,€0.00\nTotal: Account,"2,184",3.00%,€10.50\n',
        {
            "Campaign": ["A", "B", "Total: Account"],
            "Clicks": [1234, 950, 2184],
            "CTR": [3.21, None, 3],
            "Cost": [10.5, 0, 10.5],
        },
        "'Total: Account' seems to add up",
    ),
    OddFile(
        "ga_comment",
        "# ----\n# Report\n# 20240101-20240131\n# ----\nPage,Users\n/a,5\n/b,7\n",
        {"Page": ["/a", "/b"], "Users": [5, 7]},
        "above the header",
    ),
    OddFile("sep_line", "sep=;\nname;v\na;1,5\nb;2,5\n", {"name": ["a", "b"], "v": [1.5, 2.5]}, "decimal comma"),
    OddFile(
        "datev",
        '"EXTF";700;21\nUmsatz;Konto;Belegdatum\n1000,00;8400;3101\n12,50;4400;0102\n',
        {
            "EXTF": ["Umsatz", "1000,00", "12,50"],
            "700": ["Konto", "8400", "4400"],
            "21": ["Belegdatum", "3101", "0102"],
        },
        "'Konto' is no number",
    ),
    OddFile("apostrophe_codes", "plz,v\n'01067,1\n'10115,2\n", {"plz": ["'01067", "'10115"], "v": [1, 2]}),
    OddFile("excel_formula_codes", 'plz,v\n="01067",1\n="10115",2\n', {"plz": ['="01067"', '="10115"'], "v": [1, 2]}),
    OddFile("oracle_numbers", "N,V\na,.5\nb,-.25\nc,1E+02\n", {"N": ["a", "b", "c"], "V": [0.5, -0.25, 100]}),
    OddFile(
        "mysql_null",
        "id,v,d\n1,\\N,2024-01-31\n2,5,\\N\n",
        {"id": [1, 2], "v": [None, 5], "d": [date(2024, 1, 31), None]},
        "no value",
    ),
    OddFile("postgres_bool", "id,ok\n1,t\n2,f\n", {"id": [1, 2], "ok": ["t", "f"]}),
    OddFile(
        "r_index",
        '"","x","y"\n"1",1.5,NA\n"2",NA,3\n',
        {"column_1": [1, 2], "x": [1.5, None], "y": [None, 3]},
        "'NA' is no value",
    ),
    OddFile("stata_missing", "id,v\n1,.\n2,5\n", {"id": [1, 2], "v": [".", "5"]}, "'.' is no number"),
    OddFile("minus_999", "id,t\n1,-999\n2,21.5\n", {"id": [1, 2], "t": [-999, 21.5]}),
    OddFile(
        "jira",
        "Key,Created,Story Points\nAB-1,31/Jan/24 9:05 AM,3.0\nAB-2,01/Feb/24 5:00 PM,\n",
        {"Key": ["AB-1", "AB-2"], "Created": ["31/Jan/24 9:05 AM", "01/Feb/24 5:00 PM"], "Story Points": [3, None]},
    ),
    OddFile(
        "apache_log",
        'ip,when\n1.2.3.4,"31/Jan/2024:10:15:00 +0100"\n',
        {"ip": ["1.2.3.4"], "when": ["31/Jan/2024:10:15:00 +0100"]},
    ),
    OddFile(
        "eurostat",
        "geo,2022,2023\nDE,1.5 p,2.0\nFR,: ,3.0 b\n",
        {"geo": ["DE", "FR"], "2022": ["1.5 p", ": "], "2023": ["2.0", "3.0 b"]},
    ),
]
TEXTS = [
    numbers(
        "thin_spaces", ["1\u2009234,5", "12\u2009345\u2009678,0"], [1234.5, 12345678], "decimal comma", separator=";"
    ),
    numbers("scientific_comma", ["1,5E+03", "2,0E-02"], ["1,5E+03", "2,0E-02"], separator=";"),
    numbers("scientific_upper", ["1.23E+15", "4.5E-07"], [1.23e15, 4.5e-07]),
    numbers("scientific_times", ["1.5 x 10^3", "2 x 10^2"], ["1.5 x 10^3", "2 x 10^2"]),
    numbers("excel_cut_id", ["4.90151E+12", "123"], [4901510000000, 123]),
    numbers("currency_per_row", ["10 EUR", "20 USD", "30 EUR"], ["10 EUR", "20 USD", "30 EUR"], "in EUR and USD"),
    numbers("currency_case", ["10 EUR", "20 eur"], ["10 EUR", "20 eur"], "its amounts are in"),
    numbers("percent_points", ["5 pp", "3 pp"], ["5 pp", "3 pp"]),
    numbers("permille", ["5‰", "3‰"], [5, 3], "in ‰"),
    numbers("approximate", ["~5", "~7"], ["~5", "~7"]),
    numbers("less_than", ["<0.5", "1.5"], ["<0.5", "1.5"], "'<0.5' is no number"),
    numbers("fractions", ["1/2", "3/4"], ["1/2", "3/4"]),
    numbers("full_width", ["１２", "３"], ["１２", "３"]),
    numbers("arabic_digits", ["١٢", "٣"], ["١٢", "٣"]),
    numbers("durations", ["1:30:00", "26:15:00"], ["1:30:00", "26:15:00"]),
    numbers("minutes", ["10:30", "25:45"], ["10:30", "25:45"]),
    numbers("truth_mixed", ["TRUE", "1", "FALSE"], ["TRUE", "1", "FALSE"]),
    numbers("truth_missing", ["TRUE", "n/a", "FALSE"], [True, None, False], "'n/a' is no value"),
    numbers("minus_double", ["--5", "3"], ["--5", "3"], "'--5' is no number"),
    numbers("minus_space", ["- 5", "3"], [-5, 3]),
    numbers("minus_percent", ["-5%", "(3%)"], [-5, -3], "in %"),
    numbers("dates_iso_basic", ["20240131T101500", "20240201T000000"], ["20240131T101500", "20240201T000000"]),
    numbers("dates_week", ["2024-W05", "2024-W06"], ["2024-W05", "2024-W06"]),
    numbers("dates_month", ["2024-01", "2024-02"], ["2024-01", "2024-02"]),
    numbers("dates_month_point", ["01.2024", "02.2024"], ["01.2024", "02.2024"]),
    numbers("dates_month_slash", ["1/2024", "12/2024"], ["1/2024", "12/2024"]),
    numbers("dates_german_names", ["31. Januar 2024", "1. Februar 2024"], ["31. Januar 2024", "1. Februar 2024"]),
    numbers(
        "dates_mixed_marks", ["31.01.2024", "31/01/2024"], [date(2024, 1, 31), date(2024, 1, 31)], "day, month, year"
    ),
    numbers("dates_serial", ["45322", "45323"], [45322, 45323]),
    numbers(
        "dates_z",
        ["2024-01-31T10:15:00Z", "2024-02-01T00:00:00.500Z"],
        [datetime(2024, 1, 31, 10, 15), datetime(2024, 2, 1, 0, 0, 0, 500000)],
    ),
    numbers("dates_leap", ["29/02/2023", "28/02/2023"], ["29/02/2023", "28/02/2023"], "is no date"),
    numbers("dates_first_century", ["31/01/0024", "01/02/0024"], [date(24, 1, 31), date(24, 2, 1)], "day, month, year"),
    numbers("codes_exponent", ["12E4", "34E5"], ["12E4", "34E5"], apart="codes"),
    numbers("codes_hex", ["1e10", "a3f2"], ["1e10", "a3f2"]),
    numbers("versions_two", ["1.10", "1.9"], [1.1, 1.9]),
    numbers("sections", ["1.1", "1.2.1"], ["1.1", "1.2.1"]),
    numbers("isbn_x", ["080442957X", "0306406152"], ["080442957X", "0306406152"]),
    numbers("long_ids", ["90071992547409931234", "90071992547409931235"], [90071992547409931234, 90071992547409931235]),
    numbers("ids_40_digits", ["1" * 40, "2" * 40], ["1" * 40, "2" * 40]),
    numbers("bom_inside", ["\ufeff5", "7"], ["\ufeff5", "7"], "is no number"),
    numbers("zero_width", ["5\u200b", "7"], ["5\u200b", "7"], "is no number"),
    numbers("negative_zero", ["-0", "0"], [0, 0]),
    numbers("soft_groups", ["1_234", "5_678"], ["1_234", "5_678"]),
    numbers("dots_and_spaces", ["1. 234", "5. 678"], ["1. 234", "5. 678"]),
]
SHAPES = [
    OddFile(
        "header_units",
        'Product,Price (EUR),"Weight, kg"\na,"1,250.00",1.5\nb,9.50,2\n',
        {"Product": ["a", "b"], "Price (EUR)": [1250, 9.5], "Weight, kg": [1.5, 2]},
    ),
    OddFile(
        "header_again",
        "name,v\na,1\nb,2\nname,v\nc,3\n",
        {"name": ["a", "b", "name", "c"], "v": ["1", "2", "v", "3"]},
        "'v' is no number",
    ),
    OddFile(
        "footer_text", "name,v\na,1\nb,2\nSource: the office\n", {"name": ["a", "b"], "v": [1, 2]}, "1 row left out"
    ),
    OddFile(
        "footer_padded",
        "name,v\na,1\nb,2\nSource: the office,\n",
        {"name": ["a", "b", "Source: the office"], "v": [1, 2, None]},
    ),
    OddFile(
        "footer_total", "name;v\na;1,5\nb;2,5\nSumme;4,0\n", {"name": ["a", "b", "Summe"], "v": [1.5, 2.5, 4]}, "add up"
    ),
    OddFile(
        "footer_total_euro",
        "name;v\na;1,50 €\nb;2,50 €\nGesamt:;4,00 €\n",
        {"name": ["a", "b", "Gesamt:"], "v": [1.5, 2.5, 4]},
        "add up",
    ),
    OddFile("footer_mean", "name,v\na,1\nb,3\nAverage,2\n", {"name": ["a", "b", "Average"], "v": [1, 3, 2]}),
    OddFile("footer_count", "name,v\na,1\nb,3\n(2 rows)\n", {"name": ["a", "b"], "v": [1, 3]}, "1 row left out"),
    OddFile(
        "units_row",
        "name,weight,price\n,kg,EUR\na,1.5,2\nb,2.5,3\n",
        {"name": [None, "a", "b"], "weight": ["kg", "1.5", "2.5"], "price": ["EUR", "2", "3"]},
        "'kg' is no number",
    ),
    OddFile("crlf_in_cells", 'name,v\r\n"a\r\nb",1\r\n"c",2\r\n', {"name": ["a\r\nb", "c"], "v": [1, 2]}),
    OddFile("bom_quoted", '\ufeff"name","v"\r\n"a","1"\r\n', {"name": ["a"], "v": [1]}),
    OddFile(
        "bom_16_tabs",
        "name\tv\r\na\t1,5\r\nb\t2,5\r\n".encode("utf-16"),
        {"name": ["a", "b"], "v": [1.5, 2.5]},
        "utf-16",
    ),
    OddFile(
        "quoted_numbers", '"name","v"\n"a","1,5"\n"b","2,25"\n', {"name": ["a", "b"], "v": [1.5, 2.25]}, "decimal comma"
    ),
    OddFile("all_quoted_codes", '"code"\n"001"\n"002"\n', {"code": ["001", "002"]}),
    OddFile("colon_separated", "name:v\na:1\nb:2\n", {"name:v": ["a:1", "b:2"]}),
    OddFile("space_aligned", "name   v\na      1\nb      2\n", {"name v": ["a      1", "b      2"]}),
    OddFile(
        "trailing_semicolons",
        "name;v;;\na;1;;\nb;2;;\n",
        {"name": ["a", "b"], "v": [1, 2], "column_3": [None, None], "column_4": [None, None]},
    ),
    OddFile(
        "wide_title",
        "Report,2024,,\nname,q1,q2,q3\na,1,2,3\n",
        {"name": ["a"], "q1": [1], "q2": [2], "q3": [3]},
        "above",
    ),
    OddFile(
        "two_tables",
        "name,v\na,1\n\ntown,size\nx,5\n",
        {"name": ["a", "town", "x"], "v": ["1", "size", "5"]},
        "'size' is no number",
    ),
    OddFile("html_entities", "name,v\nA &amp; B,1\n", {"name": ["A &amp; B"], "v": [1]}),
    OddFile(
        "formula_injection",
        'name,v\n=1+1,"=SUM(A1)"\na,5\n',
        {"name": ["=1+1", "a"], "v": ["=SUM(A1)", "5"]},
        "is no number",
    ),
    OddFile("nul_words", "name,v\nNone,1\nNull,2\n", {"name": ["None", "Null"], "v": [1, 2]}),
]
TYPED = [
    OddFile(
        "sheet_shown",
        sheet(
            [["n", "Anteil", "Preis"], ["a", 0.125, 1250], ["b", 1, -2.5]],
            {"B2": "0.00%", "B3": "0.00%", "C2": '#,##0.00\\ "€";[Red]\\-#,##0.00\\ "€"', "C3": '#,##0.00\\ "€"'},
        ),
        {"n": ["a", "b"], "Anteil": [12.5, 100], "Preis": [1250, -2.5]},
        "t.Preis is a number: in €",
        ending="xlsx",
    ),
    OddFile(
        "sheet_texts",
        sheet([["plz", "v"], ["01067", "'5"], ["10115", "7"]]),
        {"plz": ["01067", "10115"], "v": ["'5", "7"]},
        '"\'5" is no number',
        ending="xlsx",
    ),
    OddFile(
        "sheet_truth",
        sheet([["n", "ok"], ["a", True], ["b", "FALSE"]]),
        {"n": ["a", "b"], "ok": [True, False]},
        ending="xlsx",
    ),
    OddFile(
        "sheet_mixed_dates",
        sheet([["d", "n"], [date(2024, 1, 31), "a"], ["01.02.2024", "b"]]),
        {"d": ["2024-01-31", "01.02.2024"], "n": ["a", "b"]},
        "is text",
        ending="xlsx",
    ),
    OddFile(
        "sheet_groups",
        sheet([["region", "shop", "v"], ["north", "a", 1], [None, "b", 2], ["south", "c", 3]], merged=["A2:A3"]),
        {"region": ["north", "north", "south"], "shop": ["a", "b", "c"], "v": [1, 2, 3]},
        ending="xlsx",
    ),
    OddFile(
        "sheet_total",
        sheet([["n", "v"], ["a", 1.5], ["b", 2.5], ["Total", 4]], {f"B{row}": "$#,##0" for row in (2, 3, 4)}),
        {"n": ["a", "b", "Total"], "v": [1.5, 2.5, 4]},
        "add up",
        ending="xlsx",
    ),
    OddFile(
        "sheet_long_id",
        sheet([["id", "n"], [1234567890123456, "a"], [2, "b"]]),
        {"id": [1234567890123456, 2], "n": ["a", "b"]},
        ending="xlsx",
    ),
    OddFile(
        "sheet_header_formats",
        sheet([["n", 2023, 2024], ["a", 0.5, 0.25]], {"B1": "0", "B2": "0%", "C2": "0%"}),
        {"n": ["a"], "2023": [50], "2024": [25]},
        "in %",
        ending="xlsx",
    ),
    OddFile(
        "sheet_time",
        sheet([["n", "t"], ["a", time(10, 15)], ["b", time(0)]]),
        {"n": ["a", "b"], "t": [time(10, 15), time(0)]},
        ending="xlsx",
    ),
    OddFile(
        "parquet_texts",
        parquet(
            polars.DataFrame(
                {"id": ["007", "008"], "d": ["2024-01-31", "2024-02-01"], "v": ["12", "13"], "p": ["1.234,50", "2,50"]}
            )
        ),
        {"id": ["007", "008"], "d": [date(2024, 1, 31), date(2024, 2, 1)], "v": ["12", "13"], "p": [1234.5, 2.5]},
        "decimal comma",
        ending="parquet",
    ),
    OddFile(
        "parquet_nan",
        parquet(polars.DataFrame({"v": [1.5, float("nan")], "u": [2**63, 1]}, schema_overrides={"u": polars.UInt64})),
        {"v": [1.5, None], "u": [2**63, 1]},
        "NaN is no value",
        ending="parquet",
    ),
    OddFile(
        "json_stripe",
        '{"object": "list", "has_more": false, "data": [{"id": "ch_1", "amount": 2500, "card": {"last4": "0042"}}]}',
        {"id": ["ch_1"], "amount": [2500], "card": [{"last4": "0042"}]},
        "left out: object, has_more",
        ending="json",
    ),
    OddFile(
        "json_shopify",
        '{"orders": [{"id": 450789469, "total_price": "409.94", "phone": "+557734881234"}]}',
        {"id": [450789469], "total_price": ["409.94"], "phone": ["+557734881234"]},
        "in 'orders'",
        ending="json",
    ),
    OddFile(
        "json_truth",
        '[{"v": true, "w": "TRUE"}, {"v": null, "w": "no"}]',
        {"v": [True, None], "w": ["TRUE", "no"]},
        ending="json",
    ),
]
ODD_EXPORTS = (*PROGRAMS, *TEXTS, *SHAPES, *TYPED)
