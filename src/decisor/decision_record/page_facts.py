"""What decided, on which data, as HTML; and the digests of a record."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.decision_record.format import Content, DecisionRecord
from decisor.decision_record.page_evidence import table
from decisor.render.markup import Html, join, tag
from decisor.trace.provenance import RowPolicy
from decisor.types import Usage


def model_html(content: Content) -> Html | None:
    model = content.model
    if model is None:
        return None
    name = f"{model.path}{f' · SHA-256 {model.digest}' if model.digest else ''}"
    return join(tag("p", name, cls="soft digest"), tag("pre", model.text, tabindex=0) if model.text else None)


def facts_html(content: Content) -> Html:
    means, usage = content.means, content.usage
    facts = {
        "LM": means.lm or "none was asked",
        "It calls itself": ", ".join(one for one in means.lm_names if one != means.lm),
        "Technique": f"{means.technique}{f' ({means.chosen})' if means.chosen else ''}",
        "Decisor": means.version or "not known",
        **(spent(usage) if means.lm else {}),
        "Actions": f"{usage.actions:,}",
        **{name.replace("_", " "): text for name, text in means.settings.items()},
    }
    rows = [(one.name, one.form, one.place or "a connection by that name", policies(one.rows, one.mask) or "all of it")
            for one in content.data.sources]  # fmt: skip
    limits = {"Only these tables": content.data.tables, "Not these": content.data.deny_tables}
    return join(
        tag("dl", *(tag("div", tag("dt", name), tag("dd", text)) for name, text in facts.items() if text),
            cls="facts box"),
        table(("data", "kind", "where", "what was to be read"), rows) if rows else None,
        *(tag("p", f"{name}: {', '.join(tables)}", cls="soft") for name, tables in limits.items() if tables),
    )  # fmt: skip


def spent(usage: Usage) -> dict[str, str]:
    price = "unknown" if usage.dollars is None else f"${usage.dollars:.4f}"
    return {
        "LM calls": f"{usage.calls:,}",
        "Tokens": f"{usage.tokens:,}",
        "Price": f"{price}, in part estimated" if usage.estimates else price,
    }


def policies(rows: Sequence[RowPolicy], mask: Sequence[str]) -> str:
    """
    >>> policies([RowPolicy("orders", "region = 'EU'")], ["customers.email"])
    "of orders only rows with region = 'EU'; of customers.email only tokens"
    """
    parts = [f"of {one.table} only rows {f'with {one.condition}' if one.condition else 'that are for who asked'}"
             for one in rows]  # fmt: skip
    return "; ".join([*parts, *([f"of {', '.join(mask)} only tokens"] if mask else [])])


def digests_html(record: DecisionRecord) -> Html:
    words = f"SHA-256 of the content: {record.digest}. Each approval is of the content with the digest that it names."
    how = "To check it, and to compute the decision again: decisor verify RECORD.json, with the same data."
    return join(tag("p", words, cls="soft digest"), tag("p", how, cls="soft"))
