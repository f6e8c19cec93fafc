"""A final answer as JSON: ``{"analysis", "decision", "evidence": [{"source", "quote"}], "confidence"}``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from decisor.errors import ParseError
from decisor.replies.cleaning import CONTROL, INVISIBLE, clean, replace_surrogates, strip_quotes
from decisor.replies.json_actions import plain_keys
from decisor.replies.lenient_json import read_one
from decisor.types import Value


@dataclass(frozen=True, slots=True)
class Quote:
    """What a source is said to hold."""

    source: str
    quote: str


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    decision: str
    analysis: str
    evidence: tuple[Quote, ...]
    confidence: float | None = None
    repairs: tuple[str, ...] = ()


def parse_json_answer(
    reply: str, sources: Collection[str], options: Sequence[str] = (), observations: int | None = None
) -> JsonAnswer:
    """``sources``: ids that were really shown. ``options``: the candidates, where they are known.

    Raises:
        ParseError: it cites what was never shown (unknown_source), decides for what is no option (enum), a confidence
            is not a number from 0 to 1 (number), or something is missing.
    """
    repairs: list[str] = []
    value = read_one(clean(reply, repairs), repairs)
    if not isinstance(value, dict):
        raise ParseError("Write one JSON object with analysis, decision and evidence.", "shape")
    value = plain_keys(value, repairs)
    if observations == 0:
        raise ParseError("There is no observation yet: query the data before you answer.", "no_evidence")
    decision, analysis = (read_text(value, name, repairs) for name in ("decision", "analysis"))
    decision = read_option(decision, options, repairs)
    evidence = tuple(read_quote(item, sources, repairs) for item in read_list(value.get("evidence")))
    if not evidence:
        raise ParseError("evidence is empty: cite what the decision rests on.", "no_evidence")
    confidence = read_confidence(value.get("confidence"), repairs)
    return JsonAnswer(decision, analysis, evidence, confidence, tuple(dict.fromkeys(repairs)))


def read_text(value: Mapping[str, Value], name: str, repairs: list[str]) -> str:
    text = value.get(name)
    if isinstance(text, int | float) and not isinstance(text, bool) and name == "decision":
        text = str(text)
    if text is None or (isinstance(text, str) and not text.translate(INVISIBLE).strip()):
        raise ParseError(f"{name} is missing.", "missing_field")
    if not isinstance(text, str):
        raise ParseError(f"{name} is one text.", "shape")
    plain = text.translate(INVISIBLE).strip() if name == "decision" else text
    bare = strip_quotes(plain) if name == "decision" else plain
    if name == "decision" and CONTROL.search(plain):
        raise ParseError("The decision holds a control character.", "control")
    if plain != text:
        repairs.append("invisible")
    if bare != plain:
        repairs.append("quotes")
    return replace_surrogates(bare)


def read_option(decision: str, options: Sequence[str], repairs: list[str]) -> str:
    if not options or decision in options:
        return decision
    same = [option for option in options if option.casefold() == decision.casefold()]
    if len(same) == 1:
        repairs.append("case")
        return same[0]
    raise ParseError(f"{decision[:60]!r} is none of {', '.join(options[:20])}.", "enum")


def read_list(value: Value) -> Sequence[Value]:
    if value is None:
        raise ParseError("evidence is missing.", "missing_field")
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ParseError("evidence is a list.", "shape")
    return value


def read_quote(value: Value, sources: Collection[str], repairs: list[str]) -> Quote:
    if not isinstance(value, Mapping):
        raise ParseError("Each piece of evidence is an object with source and quote.", "shape")
    source, quote = value.get("source"), value.get("quote", "")
    if source in (None, ""):
        raise ParseError("A piece of evidence has no source.", "missing_field")
    if not isinstance(source, str) or not isinstance(quote, str):
        raise ParseError("source and quote are texts.", "shape")
    plain = source.translate(INVISIBLE).strip().strip("[]")
    if plain not in sources:
        raise ParseError(f"You cite {plain[:60]!r}, which you have not been shown.", "unknown_source")
    if plain != source:
        repairs.append("case")
    return Quote(plain, replace_surrogates(quote))


def read_confidence(value: Value, repairs: list[str]) -> float | None:
    if value is None:
        return None
    if isinstance(value, str) and (percent := re.fullmatch(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*", value)):
        repairs.append("percent")
        value = float(percent[1]) / 100
    elif isinstance(value, str) and re.fullmatch(r"\s*(?:0?\.\d+|[01](?:\.\d+)?)\s*", value):
        repairs.append("number_string")
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ParseError("confidence is a number from 0 to 1.", "number")
    return float(value)
