"""What is looked at in the files that an LM writes for a decision model, before the machine runs them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from decisor.errors import ParseError
from decisor.replies.numbers import numbers_in
from decisor.replies.toml_reply import Table, TomlReply, toml_text
from decisor.types import Observation

KINDS = ("limit", "untestable")
CANDIDATES = ("choice", "take", "decide")
"""What the facts say of the candidates: every model of a question has the same ones."""
FACTS_ALONE = ("open", "how", "aside")
LEAST = re.compile(r"\b(?:(?<!at )least|lowest|cheapest|smallest|fewest|shortest|minim(?:um|al|i[sz]e))\b", re.I)
MOST = re.compile(r"\b(?:(?<!at )most|highest|largest|biggest|greatest|longest|maxim(?:um|al|i[sz]e))\b", re.I)
GOAL = "Write the other goal, or another measure; where both are meant, write the same again."
NEAR = 1e-5
"""Rows are shown with seven digits."""


def texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [value] if isinstance(value, str) else []


def tables(content: Mapping[str, object], name: str) -> dict[str, dict[str, object]]:
    """The tables under a name; what is none is left out."""
    value = content.get(name)
    return {key: one for key, one in value.items() if isinstance(one, dict)} if isinstance(value, dict) else {}


def facts(reply: TomlReply, sentences: Sequence[str]) -> None:
    """Every sentence of the question stands somewhere, and no number is made up.

    Raises:
        ParseError: it is not so.
    """
    content = reply.content
    if missing := [key for key in ("decide", "choice", "measure") if not content.get(key)]:
        raise ParseError(f"The facts lack {', '.join(missing)}.", "missing_field")
    places = set(numbers_of(content.get("how"))) | set(numbers_of(content.get("aside")))
    for name, rule in tables(content, "rule").items():
        if rule.get("kind") not in KINDS:
            raise ParseError(f"rule.{name}.kind is one of {', '.join(KINDS)}.", "shape")
        if not numbers_of(rule.get("sentence")):
            raise ParseError(f"rule.{name}.sentence is the number of a sentence.", "missing_field")
        places.update(numbers_of(rule["sentence"]))
    if unknown := [number for number in sorted(places) if not 0 < number <= len(sentences)]:
        raise ParseError(f"There is no sentence {unknown[0]}: they go from 1 to {len(sentences)}.", "made_up")
    if left := [f"{at} ({sentence})" for at, sentence in enumerate(sentences, 1) if at not in places]:
        raise ParseError("Each sentence stands under a rule, how or aside. Nowhere stands sentence "
                         f"{'; sentence '.join(left)}", "left_out")  # fmt: skip
    aside = [sentences[number - 1] for number in numbers_of(content.get("aside"))]
    if rules := [one for one in aside if [*numbers_in(one)] and not one.endswith("?")]:
        raise ParseError(f"A sentence with a number is not aside; put it under how, or make it a rule: {rules[0]}",
                         "left_out")  # fmt: skip
    there = set(numbers_in(" ".join(sentences)))
    for name, value in (content.get("parameter") or {}).items():
        if isinstance(value, int | float) and not near(float(value), there):
            raise ParseError(f"parameter.{name} = {value} stands nowhere in the question.", "made_up")


def goal_against(reply: TomlReply, sentences: Sequence[str]) -> str:
    """Where the question speaks of one end alone and the goal of the first measure is the other; '' elsewhere.

    >>> facts = TomlReply("", {"measure": {"cost": {"goal": "max"}}})
    >>> goal_against(facts, ["Which site costs least?", "It has room for at most 5."])
    'The question speaks of "least", and cost is to be as large as possible.'
    >>> goal_against(facts, ["Which site costs most?"]), goal_against(facts, ["Which least used site costs most?"])
    ('', '')
    """
    name, measure = next(iter(tables(reply.content, "measure").items()), ("", {}))
    question = " ".join(one for one in sentences if one.rstrip().endswith("?"))
    least, most = LEAST.search(question), MOST.search(question)
    if least and not most and measure.get("goal") == "max":
        return f'The question speaks of "{least[0]}", and {name} is to be as large as possible.'
    if most and not least and measure.get("goal") == "min":
        return f'The question speaks of "{most[0]}", and {name} is to be as small as possible.'
    return ""


def numbers_of(value: object) -> list[int]:
    """
    >>> numbers_of(3), numbers_of([1, "2", True]), numbers_of(None)
    ([3], [1, 2], [])
    """
    values = value if isinstance(value, list) else [value]
    return [int(str(one)) for one in values if not isinstance(one, bool) and re.fullmatch(r"\d{1,6}", str(one))]


def near(number: float, others: set[float]) -> bool:
    """Also as a share of a hundred."""
    return any(abs(number * times - one) <= 1e-9 * max(1.0, abs(one)) for one in others for times in (1, 0.01, 100))


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


def worked(reply: TomlReply, known: TomlReply, candidates: Observation, values: Observation) -> list[dict[str, Any]]:
    """Each candidate's rows of choice, its measures, and the sentences that it breaks."""
    numbers = iter([float(str(record.fields["value"])) for record in values.records])
    return [
        {"choice": json.loads(str(candidate.fields["choice"]))}
        | {name: float(f"{next(numbers):.12g}") for name in known.content["measure"]}
        | {"breaks": numbers_of(one["breaks"])}
        for one, candidate in zip(reply.content["example"], candidates.records, strict=False)
    ]


def limits(known: TomlReply) -> list[str]:
    """The rules that a candidate may break, and a query can tell."""
    return [name for name, rule in tables(known.content, "rule").items() if rule.get("kind") == "limit"]


def with_rules(known: TomlReply, examples: Sequence[Table]) -> TomlReply:
    """The facts with each sentence that rules an example out as a rule."""
    rules = tables(known.content, "rule")
    there = {number for rule in rules.values() for number in numbers_of(rule.get("sentence"))}
    more = sorted({number for one in examples for number in one["breaks"]} - there)
    if not more:
        return known
    own = {f"sentence_{number}": {"sentence": number, "kind": "limit"} for number in more}
    content = known.content | {"rule": rules | own}
    return TomlReply(toml_text(content), content)


def apart(known: TomlReply) -> TomlReply:
    """Of the facts only what is chosen and what the measures are called: who writes the second model reads the question
    for the rest."""
    content = {key: one for key, one in known.content.items() if key in CANDIDATES}
    measures = {name: {"unit": one.get("unit", "")} for name, one in tables(known.content, "measure").items()}
    content["measure"] = measures
    return TomlReply(toml_text(content), content)


def model(reply: TomlReply, known: TomlReply, sentences: Sequence[str]) -> None:
    """Raises ParseError where a rule or measure of the facts is not in it, or is another one."""
    content = reply.content
    if "example_wrong" in content:
        return
    measures, rules = tables(content, "measure"), tables(content, "rule")
    if left := [name for name in known.content["measure"] if name not in measures]:
        raise ParseError(f"The model lacks measure.{', measure.'.join(left)}.", "missing_field")
    missing = unwritten(tables(known.content, "rule"), rules)
    if left := [name for name in limits(known) if name in missing and name not in tables(content, "require")]:
        raise ParseError(f"The model lacks rule.{', rule.'.join(left)}, under the names of the facts.", "missing_field")
    if untested := [name for name in limits(known) if rules.get(name, {}).get("testable") is False]:
        raise ParseError(f"rule.{untested[0]} is a limit: write in broken which rows break it.", "shape")
    for name, measure in tables(known.content, "measure").items():
        if measures[name].get("goal", measure.get("goal")) != measure.get("goal", measures[name].get("goal")):
            raise ParseError(f'measure.{name}.goal is "{measure["goal"]}" in the facts.', "shape")
    own = {name: rule for name, rule in rules.items() if name not in tables(known.content, "rule")}
    for name, rule in own.items():
        numbers = numbers_of(rule.get("sentence"))
        if not numbers or not all(0 < number <= len(sentences) for number in numbers):
            raise ParseError(f"rule.{name}.sentence is the number of the sentence that says it, 1 to {len(sentences)}.",
                             "missing_field")  # fmt: skip


def whole(reply: TomlReply, known: TomlReply, sentences: Sequence[str], examples: Sequence[Table]) -> str:
    """The model file: what the reply says, what of the facts it need not say again, the words of the rules, and the
    examples that were worked out by hand, no others."""
    measures, rules = tables(known.content, "measure"), tables(known.content, "rule")
    own_measures, own_rules = tables(reply.content, "measure"), tables(reply.content, "rule")
    content = {key: one for key, one in known.content.items() if key in CANDIDATES}
    content |= {key: one for key, one in reply.content.items() if key not in (*CANDIDATES, *FACTS_ALONE)}
    content["measure"] = {name: without_read(measures.get(name, {})) | own_measures.get(name, {})
                          for name in {**measures, **own_measures}}  # fmt: skip
    untested = {name for name in unwritten(rules, own_rules) if rules[name].get("kind") == "untestable"}
    content["rule"] = {
        name: rule_of(rules.get(name, {}), own_rules.get(name, {}), sentences)
        for name in {**rules, **own_rules} if name in own_rules or name in untested
    }  # fmt: skip
    content = {key: known.content[key] for key in ("copy", "input", "parameter") if key in known.content} | content
    sentence_of = {name: sentences_of(rules.get(name, {}), own_rules.get(name, {})) for name in content["rule"]}
    content["example"] = [
        {**one, "breaks": broken}
        if (broken := broken_by(one, sentence_of)) is not None
        else {key: value for key, value in one.items() if key != "breaks"}
        for one in examples
    ]
    return toml_text({key: one for key, one in content.items() if one != {} and one != []})


def unwritten(facts: Mapping[str, Table], rules: Mapping[str, Table]) -> set[str]:
    """The rules of the facts that a reply has neither by name nor, under another one, by their sentences."""
    there = {number for rule in rules.values() for number in numbers_of(rule.get("sentence"))}
    return {name for name, fact in facts.items()
            if name not in rules and not set(numbers_of(fact.get("sentence"))) <= there}  # fmt: skip


def without_read(measure: Table) -> dict[str, object]:
    return {key: one for key, one in measure.items() if key != "read"}


def sentences_of(fact: Table, rule: Table) -> list[int]:
    return numbers_of(fact.get("sentence") or rule.get("sentence"))


def rule_of(fact: Table, rule: Table, sentences: Sequence[str]) -> Table:
    """With its words."""
    words = " ".join(sentences[number - 1] for number in sentences_of(fact, rule))
    own = {key: one for key, one in rule.items() if key not in ("sentence", "kind", "text")}
    testable = "broken" in own or "measure" in own or fact.get("kind") != "untestable"
    return {"text": words} | own | ({} if testable else {"testable": False})


def broken_by(example: Table, sentence_of: Mapping[str, Sequence[int]]) -> list[str] | None:
    """The rules that say the sentences; None where one sentence is two rules, and it cannot be told which."""
    numbers = [number for own in sentence_of.values() for number in own]
    if len(numbers) > len(set(numbers)):
        return None
    return [name for name, own in sentence_of.items() if set(own) & set(example["breaks"])]


def candidate(comparison: Observation) -> Observation:
    """On which two models differ; without a record where they differ on none."""
    return replace(comparison, records=tuple(one for one in comparison.records if "candidate" in one.fields))


def contradictions(difference: Observation, examples: Sequence[Table]) -> tuple[str, str]:
    """What the first and the second model have otherwise than an example worked out by hand; '' where nothing."""
    there, example = difference.records[0].fields, examples[0]
    value = next(float(one) for key, one in example.items() if key not in ("choice", "breaks"))
    words = f"worked out by hand from the rows, {there['candidate']} has {in_words(value, not example['breaks'])}"
    outcomes = [(float(str(there[name])), there[f"{name}_allowed"] is True) for name in ("first", "second")]
    first, second = (
        "" if same(outcome, value) and allowed != bool(example["breaks"]) else
        f"{words}; by your model it has {in_words(outcome, allowed)}"
        for outcome, allowed in outcomes
    )  # fmt: skip
    return first, second


def same(outcome: float, by_hand: float) -> bool:
    return abs(outcome - by_hand) <= NEAR * max(abs(outcome), abs(by_hand))


def in_words(outcome: float, allowed: bool) -> str:
    return f"{outcome:.10g} and is {'allowed' if allowed else 'ruled out'}"


def complaints(observation: Observation) -> str:
    """What is wrong; '' where there are doubts at most."""
    if observation.error:
        return observation.note
    return "\n".join(
        f"{place(one.fields['line'])}{one.fields['words']} (check {one.fields['check']})"
        for one in observation.records if one.fields.get("kind") == "error"
    )  # fmt: skip


def doubts(observation: Observation, of: str) -> tuple[str, ...]:
    """What its checks leave a person to judge."""
    words = [str(one.fields["words"]) for one in observation.records if one.fields.get("kind") == "doubt"]
    return tuple(f"Of {of}: {text}." for text in words)


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


def unused(known: TomlReply, sentences: Sequence[str]) -> tuple[str, ...]:
    """What the facts take for no rule."""
    aside = [sentences[number - 1] for number in numbers_of(known.content.get("aside"))]
    words = " ".join(one for one in aside if not one.endswith("?"))
    return (f"Taken for no rule: {words}",) if words else ()
