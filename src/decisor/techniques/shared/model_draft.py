"""The checks of the files that an LLM writes for a decision model, before the machine runs them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from decisor.errors import ParseError
from decisor.parsing.attribution import says_word_for_word
from decisor.parsing.figures import iterate_numbers
from decisor.parsing.toml_reply import Table, TomlReply, format_toml
from decisor.techniques.shared.review import LEAST, MOST
from decisor.types import Observation

KINDS = ("limit", "untestable")
DECIDED = ("choice", "unknown")
SHARED = (*DECIDED, "decide", "function", "correction")
"""What the facts say of the candidates and the sources: every model of a question has the same."""
YEAR = re.compile(
    r"\b(?:19|20)\d\d-\d\d(?:-\d\d)?\b|\b(?:in|since|during|until|before|after|from|for|years?|all of|end of)\s+"
    r"(?:19|20)\d\d(?![\w%]|[.,]\d|\s*[%$€£])",
    re.I,
)
"""A year or date: it says when, and is no number to compute with."""
CODE = re.compile(r"\b[A-Za-z]+[-_/]?\d[\w-]*")
"""The name of a thing, such as PH-40."""
WRAPPED = re.compile(r"(?<=\S{3})[ \t]*\n[ \t]*(?=[a-z(])|(?<=[^\s.:;!?]{3})[ \t]*\n[ \t]*(?=\d+ )")
"""The end of a line within a sentence."""
NUMBER_WORDS = {"half": 0.5, "twice": 2, "double": 2, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
NUMBER_WORDS |= {"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "dozen": 12, "twenty": 20}
NUMBER_WORDS |= {"thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "thousand": 1000}
"""Without "one", which is mostly no number; a parameter may be 1 where it stands."""
FACTS_ALONE = ("open", "how", "aside")
ASIDE = ("format", "example_wrong")
GOAL = "Write the other goal, or another measure; where both are meant, write the same again."
NEAR = 1e-5
ROW_ID = re.compile(r"\[(o\d+\.)?r\d+\]")
QUOTED, QUOTED_CHARS = 3, 600
"""Rows are shown with seven digits."""


def list_texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [value] if isinstance(value, str) else []


def select_subtables(content: Mapping[str, object], name: str) -> dict[str, dict[str, object]]:
    """Select the tables under a name of a TOML content; other values are dropped."""
    return {key: one for key, one in select_dict(content, name).items() if isinstance(one, dict)}


def select_dict(content: Mapping[str, object], name: str) -> dict[str, object]:
    """Select the table under a name of a TOML content; another value counts as an empty one."""
    value = content.get(name)
    return value if isinstance(value, dict) else {}


def select_rows(content: Mapping[str, object], name: str) -> list[dict[str, Any]]:
    """Select the tables of a list of a TOML content; other values are dropped."""
    value = content.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def unwrap_lines(text: str) -> str:
    """Join lines that one sentence goes over.

    >>> unwrap_lines("No site may hold more\\nthan its room.\\n- Two close.\\nNo more than\\n3 stay")
    'No site may hold more than its room.\\n- Two close.\\nNo more than 3 stay'
    """
    return WRAPPED.sub(" ", text)


def find_rule_numbers(sentence: str) -> list[float]:
    """Find the numbers of a sentence to compute with, in digits or words; years, dates and codes are none.

    One that can be read in two ways has both.

    >>> find_rule_numbers("In 2026 no PH-40 goes to more than two sites at 3.5 EUR."), find_rule_numbers("2,000 EUR")
    ([3.5, 2.0], [2000.0, 2.0])
    """
    words = re.findall(r"[a-z]+", sentence.lower())
    return [
        *iterate_numbers(CODE.sub(" ", YEAR.sub(" ", sentence))),
        *(float(NUMBER_WORDS[word]) for word in words if word in NUMBER_WORDS),
    ]


def list_figures(known: TomlReply) -> list[str]:
    """List what is worked out by hand: parts of the first measure or the measure itself, and the other measures."""
    measures = select_subtables(known.content, "measure")
    first = next(iter(measures))
    return [*(list_texts(measures[first].get("parts")) or [first]), *(name for name in measures if name != first)]


def check_facts(reply: TomlReply, sentences: Sequence[str]) -> None:
    """Check that the facts place every sentence of the question and make up no number.

    Raises:
        ParseError: it is not so.
    """
    content = reply.content
    decided = [key for key in DECIDED if content.get(key)]
    if missing := [key for key in ("decide", "measure") if not content.get(key)]:
        raise ParseError(f"The facts lack {', '.join(missing)}.", "missing_field")
    if len(decided) != 1 or not select_subtables(content, decided[0]):
        raise ParseError("The facts have [choice.NAME] with rows, or [unknown.NAME] with per.", "missing_field")
    if not select_subtables(content, "measure"):
        raise ParseError("The facts have [measure.NAME] with goal and unit.", "missing_field")
    places = set(parse_sentence_numbers(content.get("how"))) | set(parse_sentence_numbers(content.get("aside")))
    for name, rule in select_subtables(content, "rule").items():
        if rule.get("kind", "limit") not in KINDS:
            raise ParseError(f"rule.{name}.kind is one of {', '.join(KINDS)}.", "shape")
        if not parse_sentence_numbers(rule.get("sentence")):
            raise ParseError(f"rule.{name}.sentence is the number of a sentence.", "missing_field")
        places.update(parse_sentence_numbers(rule["sentence"]))
    if unknown := [number for number in sorted(places) if not 0 < number <= len(sentences)]:
        raise ParseError(f"There is no sentence {unknown[0]}: they go from 1 to {len(sentences)}.", "made_up")
    if left := [f"{at} ({sentence})" for at, sentence in enumerate(sentences, 1) if at not in places]:
        raise ParseError(
            f"Each sentence stands under a rule, how or aside. Nowhere stands sentence {'; sentence '.join(left)}",
            "left_out",
        )
    # A parameter that is nowhere in the question was made up, and would decide unseen.
    text = " ".join(sentences)
    numbers = {*iterate_numbers(text), *find_rule_numbers(text)} | (
        {1.0} if re.search(r"\bone\b", text, re.I) else set()
    )
    for name, value in read_parameters(content).items():
        if isinstance(value, int | float) and not is_question_number(float(value), numbers):
            raise ParseError(f"parameter.{name} = {value} stands nowhere in the question.", "made_up")


def ask_about_facts(reply: TomlReply, sentences: Sequence[str]) -> str:
    """Return questions about facts that are unlikely but may be right; empty if there are none."""
    against = goal_against(reply, sentences)
    questions = [f"{against} {GOAL}"] if against else []
    for number in parse_sentence_numbers(reply.content.get("aside")):
        sentence = sentences[number - 1]
        # A number most likely limits or computes something: set aside, it would be lost without a word.
        if find_rule_numbers(sentence) and not sentence.endswith("?"):
            words = "A sentence with a number is aside. If it limits or computes something, put it under how or a rule"
            questions.append(f"{words}; otherwise write the same again: {number} ({sentence})")
    return " ".join(questions)


def read_parameters(content: Mapping[str, object]) -> dict[str, object]:
    """Return the value of each parameter, with or without unit and source."""
    given = select_dict(content, "parameter").items()
    return {name: one.get("value") if isinstance(one, dict) else one for name, one in given}


def check_sources(reply: TomlReply, passages: str) -> None:
    """Check that each correction quotes a passage that was read, word for word.

    Raises:
        ParseError: it does not, or the reply says nothing.
    """
    content = reply.content
    if not any(key in content for key in ("search", "queries", "correction", "function", "done")):
        raise ParseError("Write search, queries, [[correction]], [function.NAME], or done = true.", "missing_field")
    for one in select_rows(content, "correction"):
        source = one.get("source")
        passage = str(source.get("passage") or "") if isinstance(source, dict) else ""
        if not passage or not says_word_for_word(passages, passage):
            raise ParseError(f"No passage that was read says word for word: {passage or '(nothing)'}", "made_up")


def goal_against(reply: TomlReply, sentences: Sequence[str]) -> str:
    """Explain that the question asks for one extreme and the first measure has the opposite goal.

    Empty if they agree or the question names both.

    >>> facts = TomlReply("", {"measure": {"cost": {"goal": "max"}}})
    >>> goal_against(facts, ["Which site costs least?", "It has room for at most 5."])
    'The question speaks of "least", and cost is to be as large as possible.'
    >>> (goal_against(facts, ["Which site costs most?"]),
    ...     goal_against(facts, ["Which least used site costs most?"]))
    ('', '')
    """
    name, measure = next(iter(select_subtables(reply.content, "measure").items()), ("", {}))
    question = " ".join(one for one in sentences if one.rstrip().endswith("?"))
    least, most = LEAST.search(question), MOST.search(question)
    if least and not most and measure.get("goal") == "max":
        return f'The question speaks of "{least[0]}", and {name} is to be as large as possible.'
    if most and not least and measure.get("goal") == "min":
        return f'The question speaks of "{most[0]}", and {name} is to be as small as possible.'
    return ""


def parse_sentence_numbers(value: object) -> list[int]:
    """Parse the whole numbers in a value or list.

    >>> parse_sentence_numbers(3), parse_sentence_numbers([1, "2", True]), parse_sentence_numbers(None)
    ([3], [1, 2], [])
    """
    values = value if isinstance(value, list) else [value]
    return [int(str(one)) for one in values if not isinstance(one, bool) and re.fullmatch(r"\d{1,6}", str(one))]


def is_question_number(number: float, others: set[float]) -> bool:
    """Return whether a number equals one of the question, also as a percentage or a share."""
    return any(abs(number * times - one) <= 1e-9 * max(1.0, abs(one)) for one in others for times in (1, 0.01, 100))


def check_example_reply(reply: TomlReply, known: TomlReply, texts: Sequence[str]) -> None:
    """Raise ParseError if a reply has neither queries nor complete examples with numbers that stand in ``texts``."""
    if list_texts(reply.content.get("queries")):
        return
    worked, figures = select_rows(reply.content, "example"), list_figures(known)
    if not worked:
        raise ParseError("Write queries = [...], or one [[example]] for each candidate.", "missing_field")
    for one in worked:
        if (
            "breaks" not in one
            or not isinstance(one.get("work"), dict)
            or any(name not in one["work"] for name in figures)
        ):
            raise ParseError(f"Each example has work.{', work.'.join(figures)} and breaks.", "missing_field")
    read = {number for text in texts for number in (*iterate_numbers(text), *find_rule_numbers(text))}
    read |= {float(value) for value in read_parameters(known.content).values() if isinstance(value, int | float)}
    for name, expression in ((name, str(one["work"][name])) for one in worked for name in figures):
        for number in iterate_numbers(re.sub(r"(?<=[\d)])\s*-", " - ", expression)):
            if abs(number) not in (0, 1, 100) and not is_question_number(abs(number), read):
                words = f"{number:.12g} stands in no row that you read, and not in the question: write its terms."
                raise ParseError(f"work.{name}: {words}", "made_up")


def list_example_expressions(reply: TomlReply, known: TomlReply) -> list[str]:
    """Return one expression for each figure of each example, in order."""
    return [
        " ".join(str(one["work"][name]).split()) for one in reply.content["example"] for name in list_figures(known)
    ]


def build_worked_examples(
    reply: TomlReply, known: TomlReply, candidates: Observation, values: Observation, seen: Sequence[str]
) -> list[dict[str, Any]]:
    """Build the examples: candidate, chosen rows, value and derivation of each figure, and broken sentences.

    seen: queries with their rows. Those that a derivation has its numbers from are kept beside it.
    """
    worked, places = reply.content["example"], range(len(candidates.records))
    named = [one["number"] - 1 for one in worked if isinstance(one.get("number"), int)]
    # Examples that name their candidates stand in any order.
    is_named = len(named) == len(set(named)) == len(worked) and set(named) <= set(places)
    # The calculator's values come in the order of list_example_expressions: example by example, figure by figure.
    numbers = iter([float(f"{float(str(record.fields['value'])):.12g}") for record in values.records])
    lines = iter(list_example_expressions(reply, known))
    figures = list_figures(known)
    examples = []
    for one, at in zip(worked, named if is_named else places, strict=False):
        fields, work = candidates.records[at].fields, {name: next(lines) for name in figures}
        examples.append(
            {
                "candidate": fields["candidate"],
                "choice": json.loads(str(fields["choice"])),
                "figures": {name: next(numbers) for name in figures},
                "work": work,
                "read": {name: quote_rows_of_work(words, seen) for name, words in work.items()},
                "breaks": parse_sentence_numbers(one["breaks"]),
            }
        )
    return examples


def quote_rows_of_work(work: str, seen: Sequence[str]) -> str:
    """Quote the queries, each with the rows that have a number of a derivation; '' if there are none."""
    numbers = {abs(number) for number in iterate_numbers(work)} - {0.0, 1.0, 100.0}
    quotes = []
    for block in seen:
        lines = block.splitlines()
        rows = [(line, {*iterate_numbers(ROW_ID.sub("", line))}) for line in lines if ROW_ID.match(line)]
        used = [line for line, there in rows if any(is_question_number(number, there) for number in numbers)]
        if used:
            query = " ".join(itertools.takewhile(lambda line: not ROW_ID.match(line), lines))
            quotes.append(f"{query}: {'; '.join(used[:QUOTED])}"[:QUOTED_CHARS])
    return "".join(f"\n  read from {quote}" for quote in quotes[:QUOTED])


def sum_first_measure(figures: Mapping[str, float], known: TomlReply) -> float:
    """Return the first measure of figures worked by hand: itself, or the sum of its parts."""
    first, measure = next(iter(select_subtables(known.content, "measure").items()))
    return sum(figures[name] for name in list_texts(measure.get("parts")) or [first])


def list_limit_rules(known: TomlReply) -> list[str]:
    """Return the names of the rules that a candidate may break and a query can test."""
    rules = select_subtables(known.content, "rule")
    return [name for name, rule in rules.items() if rule.get("kind", "limit") == "limit"]


def add_example_rules(known: TomlReply, examples: Sequence[Table]) -> TomlReply:
    """Add to the facts a rule for each sentence that an example breaks."""
    rules = select_subtables(known.content, "rule")
    there = {number for rule in rules.values() for number in parse_sentence_numbers(rule.get("sentence"))}
    more = sorted({number for one in examples for number in one["breaks"]} - there)
    if not more:
        return known
    own = {f"sentence_{number}": {"sentence": number, "kind": "limit"} for number in more}
    return rewrite_facts(known, rule=rules | own)


def rewrite_facts(known: TomlReply, **parts: object) -> TomlReply:
    """Return facts with other parts."""
    content = {**known.content, **parts}
    return TomlReply(format_toml(content), content)


def keep_choice_and_measures(known: TomlReply) -> TomlReply:
    """Keep of the facts only what is decided, the sources, and the names and units of the measures.

    The writer of the second model reads the rest from the question.
    """
    content = {key: one for key, one in known.content.items() if key in SHARED}
    measures = select_subtables(known.content, "measure")
    content["measure"] = {
        name: {key: one[key] for key in ("unit", "parts") if key in one} for name, one in measures.items()
    }
    return TomlReply(format_toml(content), content)


def check_model_reply(reply: TomlReply, known: TomlReply, sentences: Sequence[str]) -> None:
    """Raise ParseError if a rule or measure of the facts is missing in a model or differs."""
    content = reply.content
    # Such a reply blames an example, and mostly holds no model.
    if "example_wrong" in content and "measure" not in content:
        return
    measures, rules = select_subtables(content, "measure"), select_subtables(content, "rule")
    facts = select_subtables(known.content, "rule")
    if left := [name for name in known.content["measure"] if name not in measures]:
        raise ParseError(f"The model lacks measure.{', measure.'.join(left)}.", "missing_field")
    missing = find_unwritten_rules(facts, rules)
    if left := [name for name in list_limit_rules(known) if name in missing]:
        raise ParseError(f"The model lacks rule.{', rule.'.join(left)}, under the names of the facts.", "missing_field")
    if untested := [name for name in list_limit_rules(known) if rules.get(name, {}).get("testable") is False]:
        raise ParseError(f"rule.{untested[0]} is a limit: write which rows keep or break it.", "shape")
    for name, measure in select_subtables(known.content, "measure").items():
        if measures[name].get("goal", measure.get("goal")) != measure.get("goal", measures[name].get("goal")):
            raise ParseError(f'measure.{name}.goal is "{measure["goal"]}" in the facts.', "shape")
    first, measure = next(iter(select_subtables(known.content, "measure").items()))
    parts = list_texts(measure.get("parts"))
    if parts and set(parts) != select_dict(measures[first], "part").keys():
        raise ParseError(f"measure.{first} has part.{', part.'.join(parts)}: a query each, and no sql.", "shape")
    before = read_parameters(known.content)
    for name, value in read_parameters(content).items():
        if name in before and value != before[name]:
            raise ParseError(f"The facts say {name} = {before[name]}, you write {value}: leave it as it is.", "shape")
    for name, rule in rules.items():
        numbers = parse_sentence_numbers(rule.get("sentence"))
        if name not in facts and (not numbers or not all(0 < number <= len(sentences) for number in numbers)):
            raise ParseError(
                f"rule.{name}.sentence is the number of the sentence that says it, 1 to {len(sentences)}.",
                "missing_field",
            )


def build_model_file(reply: TomlReply, known: TomlReply, sentences: Sequence[str], examples: Sequence[Table]) -> str:
    """Build the model file from the reply, the facts, the words of the rules and the worked examples.

    Facts that the reply need not repeat are filled in; other examples are dropped.
    """
    facts, written = known.content, reply.content
    measures, rules = select_subtables(facts, "measure"), select_subtables(facts, "rule")
    own_measures, own_rules = select_subtables(written, "measure"), select_subtables(written, "rule")
    content: dict[str, Any] = {"format": 3} | {key: one for key, one in facts.items() if key in SHARED}
    content |= {key: one for key, one in written.items() if key not in (*SHARED, *FACTS_ALONE, *ASIDE)}
    for key in ("copy", "input", "parameter"):
        content[key] = select_dict(facts, key) | select_dict(written, key)
    # One that repeats an input of the facts is the whole table, from which a repair took another out.
    if select_dict(written, "input").keys() & select_dict(facts, "input").keys():
        content["input"] = written["input"]
    content["measure"] = {
        name: {key: one for key, one in measures.get(name, {}).items() if key != "parts"} | own_measures.get(name, {})
        for name in {**measures, **own_measures}
    }
    # A rule that no data can test stays in the file, so that the decision says that it was not tested.
    untested = {name for name in find_unwritten_rules(rules, own_rules) if rules[name].get("kind") == "untestable"}
    content["rule"] = {
        name: build_rule(rules, own_rules, name, sentences)
        for name in {**rules, **own_rules}
        if name in own_rules or name in untested
    }
    sentence_of = {name: list_rule_sentences(rules, own_rules, name) for name in content["rule"]}
    # Amounts have no row names by which a file could give them.
    listed = examples if "choice" in facts else ()
    content["example"] = [build_file_example(one, known, sentence_of) for one in listed]
    content["open"] = list_texts(facts.get("open"))
    return format_toml({key: one for key, one in content.items() if one != {} and one != []})


def build_file_example(example: Table, known: TomlReply, sentence_of: Mapping[str, Sequence[int]]) -> Table:
    """Build an example of the file from one that was worked out by hand."""
    figures, measures = example["figures"], select_subtables(known.content, "measure")
    first = next(iter(measures))
    parts = {name: figures[name] for name in list_texts(measures[first].get("parts"))}
    values = {name: sum_first_measure(figures, known) if name == first else figures[name] for name in measures}
    row = {"choice": example["choice"], "measure": values, "part": parts}
    broken = name_broken_rules(example, sentence_of)
    return {key: one for key, one in row.items() if one} | ({} if broken is None else {"breaks": broken})


def explain_hand_work(decisive: Observation, examples: Sequence[Table], known: TomlReply, reply: TomlReply) -> str:
    """Explain where the model of a reply contradicts what was worked out by hand; empty if it does not."""
    rules, own = select_subtables(known.content, "rule"), select_subtables(reply.content, "rule")
    # A reply may give a rule of the facts another name: its sentence tells which it is.
    sentence_of = {name: list_rule_sentences(rules, own, name) for name in {**rules, **own}}
    known_rules = {number for numbers in sentence_of.values() for number in numbers}
    lines = []
    for record in decisive.records:
        here = json.loads(str(record.fields["figures"]))
        broken = {number for name in json.loads(str(record.fields["broken"])) for number in sentence_of.get(name, ())}
        for example in examples:
            if example["choice"] != json.loads(str(record.fields["choice"])):
                continue
            name = f"For {example['candidate']}"
            for figure, value in example["figures"].items():
                if here.get(figure) is None or not equals_hand_outcome(here[figure], value):
                    shown = "nothing" if here.get(figure) is None else f"{here[figure]:.10g}"
                    words = f"{value:.10g} = {example['work'][figure]}{example['read'][figure]}"
                    lines.append(
                        f"{name} your model gives {figure} {shown}; worked out by hand from the rows it is {words}"
                    )
            lines += [
                f"{name} sentence {number} is {'broken' if number in broken else 'kept'} by your model, and worked "
                f"out by hand it is {'kept' if number in broken else 'broken'}"
                for number in sorted((broken ^ set(example["breaks"])) & known_rules)
            ]
    return "\n".join(lines)


def find_unwritten_rules(facts: Mapping[str, Table], rules: Mapping[str, Table]) -> set[str]:
    """Return the rules of the facts that a reply has neither by name nor by their sentences."""
    there = {number for rule in rules.values() for number in parse_sentence_numbers(rule.get("sentence"))}
    return {
        name
        for name, fact in facts.items()
        if name not in rules and not set(parse_sentence_numbers(fact.get("sentence"))) <= there
    }


def list_rule_sentences(facts: Mapping[str, Table], rules: Mapping[str, Table], name: str) -> list[int]:
    """List the sentences of a rule of a reply, or of the facts, which go before."""
    return parse_sentence_numbers(facts.get(name, {}).get("sentence") or rules.get(name, {}).get("sentence"))


def build_rule(facts: Mapping[str, Table], rules: Mapping[str, Table], name: str, sentences: Sequence[str]) -> Table:
    """Build a rule with the words of its sentences."""
    words = " ".join(sentences[number - 1] for number in list_rule_sentences(facts, rules, name))
    fact, rule = facts.get(name, {}), rules.get(name, {})
    own = {key: one for key, one in rule.items() if key not in ("sentence", "kind", "text")}
    testable = fact.get("kind") != "untestable" or any(form in own for form in ("must", "never", "exists", "absent"))
    return {"text": words} | own | ({} if testable else {"testable": False})


def name_broken_rules(example: Table, sentence_of: Mapping[str, Sequence[int]]) -> list[str] | None:
    """Return the names of the rules that an example breaks.

    None if a sentence belongs to two rules, so that the rule is unknown.
    """
    numbers = [number for own in sentence_of.values() for number in own]
    if len(numbers) > len(set(numbers)):
        return None
    return [name for name, own in sentence_of.items() if set(own) & set(example["breaks"])]


def find_differing_candidate(comparison: Observation) -> Observation:
    """Return the candidate on which two models differ; without a record if they agree."""
    return replace(comparison, records=tuple(one for one in comparison.records if "candidate" in one.fields))


def explain_contradictions(difference: Observation, example: Table, known: TomlReply) -> tuple[str, str]:
    """Explain how the two models contradict an example worked out by hand. A text is empty if its model agrees."""
    there, value = difference.records[0].fields, sum_first_measure(example["figures"], known)
    derivation = " + ".join(f"({work})" for work in example["work"].values())
    words = (
        f"worked out by hand from the rows, {there['candidate']} has "
        f"{format_allowed_outcome(value, not example['breaks'])}, as {derivation}"
    )
    read = "".join(dict.fromkeys(example["read"].values()))
    outcomes = [(float(str(there[name])), there[f"{name}_allowed"] is True) for name in ("first", "second")]
    first, second = (
        ""
        if equals_hand_outcome(outcome, value) and allowed != bool(example["breaks"])
        else f"{words}; by your model it has {format_allowed_outcome(outcome, allowed)}{read}"
        for outcome, allowed in outcomes
    )
    return first, second


def equals_hand_outcome(outcome: float, by_hand: float) -> bool:
    return abs(outcome - by_hand) <= NEAR * max(abs(outcome), abs(by_hand), 1e-3)


def format_allowed_outcome(outcome: float, allowed: bool) -> str:
    return f"{outcome:.10g} and is {'allowed' if allowed else 'ruled out'}"


def list_check_errors(observation: Observation) -> str:
    """Return the errors of a check as text; empty if there are at most doubts.

    Lines are left out: they count in the whole file, of which the writer sees a part.
    """
    if observation.error:
        return observation.note
    return "\n".join(
        f"{one.fields['words']} (check {one.fields['check']})"
        for one in observation.records
        if one.fields.get("kind") == "error"
    )


def list_check_doubts(observation: Observation, of: str) -> tuple[str, ...]:
    """Return the findings of a check that a person must judge."""
    words = [str(one.fields["words"]) for one in observation.records if one.fields.get("kind") == "doubt"]
    return tuple(f"Of {of}: {text}." for text in words)


def is_about_example(observation: Observation) -> bool:
    # Checks 4 and 5 compare with the worked examples: outcomes, and rules broken or kept.
    return any(one.fields.get("check") in (4, 5) for one in observation.records)


def explain_rules(observation: Observation) -> Sequence[str]:
    """Explain each rule for the best candidate of a ranking."""
    return tuple(
        f"Rule {one.fields['rule']} is {one.fields['is']}: {one.fields['because']} [{one.id}]."
        for one in observation.records
        if "rule" in one.fields
    )


def explain_corrections(known: TomlReply) -> Iterator[str]:
    """Say which corrections are adopted; who wins where another one holds is said by the ranking."""
    for one in select_rows(known.content, "correction"):
        if one.get("adopted"):
            yield (
                f"Corrected by {one['source'].get('document', 'a document')}: {one['table']}.{one['column']} of "
                f"{', '.join(map(str, one['key'].values()))} is {one['is']}, not {one.get('was', 'nothing')}."
            )


def list_certain_inputs(known: TomlReply) -> tuple[str, ...]:
    """List the inputs that the facts do not vary."""
    names = [name for name, one in select_subtables(known.content, "input").items() if "spread" not in one]
    return (f"Taken as certain: {', '.join(names)}.",) if names else ()


def list_unused_sentences(known: TomlReply, sentences: Sequence[str]) -> tuple[str, ...]:
    """List the sentences that the facts do not treat as rules."""
    aside = [sentences[number - 1] for number in parse_sentence_numbers(known.content.get("aside"))]
    words = " ".join(one for one in aside if not one.endswith(("?", ":")))
    return (f"Taken for no rule: {words}",) if words else ()
