"""What is looked at in the files that an LM writes for a decision model, before the machine runs them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from decisor.errors import ParseError
from decisor.replies.numbers import numbers_in
from decisor.replies.toml_reply import TomlReply
from decisor.types import Observation

EXAMPLES = re.compile(r"^\[\[example\]\].*?(?=^\[(?!\[example\])|\Z)", re.S | re.M)

KINDS = ("limit", "how", "untestable")
WRONG = ("first", "second", "both")


def texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [value] if isinstance(value, str) else []


def tables(content: Mapping[str, object], name: str) -> dict[str, dict[str, object]]:
    """The tables under a name; what is none is left out."""
    value = content.get(name)
    return {key: one for key, one in value.items() if isinstance(one, dict)} if isinstance(value, dict) else {}


def facts(reply: TomlReply, question: str) -> None:
    """Rules stand in the question word for word, every number of it is bound to something, and none is made up.

    Raises:
        ParseError: they are not so.
    """
    content = reply.content
    if missing := [key for key in ("decide", "choice", "measure") if not content.get(key)]:
        raise ParseError(f"The facts lack {', '.join(missing)}.", "missing_field")
    whole = flat(question)
    for name, rule in tables(content, "rule").items():
        if flat(str(rule.get("text", ""))) not in whole:
            raise ParseError(f"rule.{name}.text does not stand in the question word for word.", "no_quote")
        if rule.get("kind") not in KINDS:
            raise ParseError(f"rule.{name}.kind is one of {', '.join(KINDS)}.", "shape")
    there = set(numbers_in(question))
    for name, value in (content.get("parameter") or {}).items():
        if isinstance(value, int | float) and not near(float(value), there):
            raise ParseError(f"parameter.{name} = {value} stands nowhere in the question.", "made_up")
    bound = set(numbers_in(reply.text))
    loose = [number for number in there if not near(number, bound)]
    if loose:
        numbers = ", ".join(f"{number:g}" for number in sorted(loose))
        raise ParseError(f"Of the question the facts leave out: {numbers}. Quote the rule that says it, or bind it in "
                         "[parameter].", "left_out")  # fmt: skip


def near(number: float, others: set[float]) -> bool:
    """Also as a share of a hundred."""
    return any(abs(number * times - one) <= 1e-9 * max(1.0, abs(one)) for one in others for times in (1, 0.01, 100))


def flat(text: str) -> str:
    return " ".join(re.sub(r"[\"'`*_.]", "", text).split()).casefold()


def examples(reply: TomlReply, known: TomlReply) -> None:
    """Raises ParseError where it has neither queries nor a whole example of each candidate."""
    if texts(reply.content.get("queries")):
        return
    worked = reply.content.get("example")
    if not isinstance(worked, list) or not all(isinstance(one, dict) for one in worked):
        raise ParseError("Write queries = [...], or one [[example]] for each candidate.", "missing_field")
    for one in worked:
        missing = [name for name in known.content["measure"] if not isinstance(tables(one, "work") or one.get("work"),
                   dict) or name not in one["work"]]  # fmt: skip
        if missing or "breaks" not in one:
            raise ParseError(f"Each example has work.{', work.'.join(known.content['measure'])} and breaks.",
                             "missing_field")  # fmt: skip


def expressions(reply: TomlReply, known: TomlReply) -> list[str]:
    """One for each measure of each example, in their order."""
    return [" ".join(str(one["work"][name]).split()) for one in reply.content["example"]
            for name in known.content["measure"]]  # fmt: skip


def worked(reply: TomlReply, known: TomlReply, candidates: Observation, values: Observation) -> str:
    """The examples as they stand at the end of a model file."""
    numbers = iter([float(str(record.fields["value"])) for record in values.records])
    parts = []
    for one, candidate in zip(reply.content["example"], candidates.records, strict=False):
        lines = [f"{name} = {next(numbers):.12g}" for name in known.content["measure"]]
        breaks = json.dumps([name for name in texts(one["breaks"]) if name in limits(known)], ensure_ascii=False)
        parts.append("\n".join(["", "[[example]]", f"choice = {candidate.fields['choice']}", *lines,
                                f"breaks = {breaks}", ""]))  # fmt: skip
    return "".join(parts)


def limits(known: TomlReply) -> list[str]:
    """The rules that a candidate may break, and a query can tell."""
    return [name for name, rule in tables(known.content, "rule").items() if rule.get("kind") == "limit"]


def model(reply: TomlReply, known: TomlReply) -> None:
    """Raises ParseError where it is no whole model, or a rule or measure of the facts is not in it."""
    content = reply.content
    if "example_wrong" in content:
        return
    if missing := [key for key in ("decide", "choice", "measure") if not content.get(key)]:
        raise ParseError(f"The model lacks {', '.join(missing)}. Write the whole file.", "missing_field")
    names = {*tables(content, "rule"), *tables(content, "require")}
    if left := [name for name in limits(known) if name not in names]:
        raise ParseError(f"The model lacks rule.{', rule.'.join(left)}, under the names of the facts.", "missing_field")
    if left := [name for name in known.content["measure"] if name not in tables(content, "measure")]:
        raise ParseError(f"The model lacks measure.{', measure.'.join(left)}.", "missing_field")


def right_one(reply: TomlReply) -> None:
    if reply.content.get("wrong") not in WRONG or not reply.content.get("measure"):
        raise ParseError('Write wrong = "first", "second" or "both", and below it the right model, whole.', "shape")


def without(text: str, key: str) -> str:
    """A file without one of its first keys."""
    return re.sub(rf"^{key}\s*=.*\n", "", text, count=1, flags=re.M)


def without_examples(text: str) -> str:
    """A model without examples: those that were worked out by hand are put below it, once, and no others.

    >>> without_examples('[measure.a]\\nsql = "1"\\n[[example]]\\na = 1\\n[[example]]\\na = 2\\n[input]\\n')
    '[measure.a]\\nsql = "1"\\n[input]\\n'
    """
    return EXAMPLES.sub("", text)


def complaints(observation: Observation) -> str:
    """What is wrong; '' where there are doubts at most."""
    if observation.error:
        return observation.note
    return "\n".join(
        f"{place(one.fields['line'])}{one.fields['words']} (check {one.fields['check']})"
        for one in observation.records if one.fields.get("kind") == "error"
    )  # fmt: skip


def doubts(observation: Observation) -> tuple[str, ...]:
    """Of a comparison of two models."""
    words = [str(one.fields["words"]) for one in observation.records if one.fields.get("kind") == "doubt"]
    return tuple(f"The two models were not compared to the end: {text}." for text in words)


def place(line: object) -> str:
    """
    >>> place(3), place(0)
    ('line 3: ', '')
    """
    return f"line {line}: " if line else ""


def of_example(observation: Observation) -> bool:
    return any(one.fields.get("check") in (4, 5) for one in observation.records)


def rule_lines(observation: Observation) -> Sequence[str]:
    """Of a ranking: each rule for the best candidate."""
    return tuple(f"Rule {one.fields['rule']} is {one.fields['is']}: {one.fields['because']} [{one.id}]."
                 for one in observation.records if "rule" in one.fields)  # fmt: skip


def open_points(known: TomlReply, settled: int) -> tuple[str, ...]:
    """What the rules leave open and was not asked of a person, and what would settle it."""
    left = texts(known.content.get("open"))[settled:]
    return tuple(f"Left open: {words} A sentence in the rules settles it." for words in left)


def certain(known: TomlReply) -> tuple[str, ...]:
    """What the facts do not vary."""
    names = [name for name, one in tables(known.content, "input").items() if "spread" not in one]
    return (f"Taken as certain: {', '.join(names)}.",) if names else ()
