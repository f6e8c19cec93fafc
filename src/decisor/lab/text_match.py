"""Metrics of answers to questions over documents: exact match, F1, containment and choices.

The rules are those of the released scorers, so figures compare: ``normalise_answer``, ``em`` and ``f1`` as those of
HotpotQA, SQuAD, MuSiQue and LLMCompiler. All take the prediction first, then every accepted answer, and return the
best.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
SPECIAL = ("yes", "no", "noanswer")
YES_NO = re.compile(r"\b(yes|no|true|false)\b", re.I)
LETTER = re.compile(
    r"\s*(?:the\s+)?(?:(?:correct|right|best)\s+)?(?:final\s+)?(?:answer|choice|option)?\s*(?:is|[:=])?\s*"
    r"[*_(\[\"']*([A-Z1-9])[*_)\]\"']*\s*(?:$|[.:,;)\]\n-])",
    re.I,
)


def normalise_answer(text: str) -> str:
    """Lower the case of a text, drop ASCII punctuation and articles, and collapse white space.

    No more than that: letters with accents stay as they are.

    >>> normalise_answer("The  Beatles' 1st-ever LP")
    'beatles 1stever lp'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())


def em(predicted: str, gold: Sequence[str]) -> float:
    """Return 1 if the prediction equals an accepted answer after normalising, else 0.

    >>> em("the Eiffel Tower!", ["Tour Eiffel", "Eiffel tower"])
    1.0
    """
    return float(any(normalise_answer(predicted) == normalise_answer(answer) for answer in gold))


def token_overlap(predicted: str, answer: str) -> tuple[float, float, float]:
    """Return F1, precision and recall of the tokens, counted with repetition.

    With no tokens on one side they are 0, on both sides 1.
    """
    tokens, answer_tokens = normalise_answer(predicted).split(), normalise_answer(answer).split()
    # As SQuAD 2 and MuSiQue score answers without tokens.
    if not tokens or not answer_tokens:
        same = float(tokens == answer_tokens)
        return same, same, same
    common = sum((Counter(tokens) & Counter(answer_tokens)).values())
    precision, recall = common / len(tokens), common / len(answer_tokens)
    return harmonic_mean(precision, recall), precision, recall


def harmonic_mean(precision: float, recall: float) -> float:
    """Return F1 of precision and recall; 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def f1(predicted: str, gold: Sequence[str]) -> float:
    """Return the best token F1 over the accepted answers, as SQuAD, MuSiQue and IRCoT count it.

    >>> f1("president Barack Obama", ["Barack Obama"])
    0.8
    """
    return max((token_overlap(predicted, answer)[0] for answer in gold), default=0.0)


def hotpot_overlap(predicted: str, answer: str) -> tuple[float, float, float]:
    """Return ``token_overlap`` by HotpotQA's rule for yes, no and noanswer.

    It is 0 if one side is such a word and the other differs, and if either side is empty.
    """
    normal, normal_answer = normalise_answer(predicted), normalise_answer(answer)
    if normal != normal_answer and (normal in SPECIAL or normal_answer in SPECIAL):
        return 0.0, 0.0, 0.0
    return token_overlap(predicted, answer) if normal and normal_answer else (0.0, 0.0, 0.0)


def f1_hotpot(predicted: str, gold: Sequence[str]) -> float:
    """Return the best token F1 as HotpotQA, 2WikiMultiHopQA and FlashRAG count it.

    >>> f1_hotpot("yes, both are", ["yes"]), f1("yes, both are", ["yes"])
    (0.0, 0.5)
    >>> f1_hotpot("no", ["no longer"]), f1_hotpot("No.", ["no"])
    (0.0, 1.0)
    """
    return max((hotpot_overlap(predicted, answer)[0] for answer in gold), default=0.0)


def contains_answer(predicted: str, answer: str) -> bool:
    """Return whether the normalised prediction contains the normalised answer, even inside words.

    An answer that is empty after normalising (the letter A) must be the whole prediction.
    """
    normal_answer = normalise_answer(answer)
    return (
        normal_answer in normalise_answer(predicted)
        if normal_answer
        else predicted.strip().lower() == answer.strip().lower()
    )


def contains_answer_words(predicted: str, answer: str) -> bool:
    """Return whether the prediction contains the answer at word boundaries: "no" is not in "know".

    >>> contains_answer_words("I know", "no"), contains_answer("I know", "no")
    (False, True)
    """
    normal_answer = normalise_answer(answer)
    return (
        f" {normal_answer} " in f" {normalise_answer(predicted)} "
        if normal_answer
        else contains_answer(predicted, answer)
    )


def acc(predicted: str, gold: Sequence[str]) -> float:
    """Return Plan-RAG's accuracy: 1 if the prediction contains an accepted answer, else 0. Long answers gain by it."""
    return float(any(contains_answer(predicted, answer) for answer in gold))


def acc_word(predicted: str, gold: Sequence[str]) -> float:
    """Return 1 if the prediction contains an accepted answer at word boundaries, else 0."""
    return float(any(contains_answer_words(predicted, answer) for answer in gold))


def read_first_yes_no(text: str) -> str:
    """Read the first yes or no of a text (true and false count as them), or ''.

    >>> read_first_yes_no("Yes, there is no doubt."), read_first_yes_no("I know it."), read_first_yes_no("False.")
    ('yes', '', 'no')
    """
    match = YES_NO.search(text)
    return {"yes": "yes", "true": "yes", "no": "no", "false": "no"}[match[1].lower()] if match else ""


def read_choice_letter(text: str, choices: Mapping[str, str]) -> str:
    """Read the letter of the choice that an answer names; '' if none or several.

    It may name the letter, the whole text, or only one choice's text.

    >>> plants = {"A": "oak", "B": "oak tree", "C": "a pine"}
    >>> [read_choice_letter(text, plants)
    ...     for text in ("(b) oak tree", "The answer is C.", "Pine", "A pine", "oak or pine", "D")]
    ['B', 'C', 'C', 'C', '', '']
    """
    # The whole text first: choices may themselves be letters or digits.
    whole = [letter for letter, words in choices.items() if normalise_answer(words) == normalise_answer(text)]
    if len(whole) == 1:
        return whole[0]
    if (match := LETTER.match(text)) and (letter := match[1].upper()) in choices:
        return letter
    # A letter and then its own text, without a mark between them.
    first = re.match(r"\W*([A-Z1-9])\s+(.+)", text, re.S)
    if first and first[1] in choices and contains_answer_words(first[2], choices[first[1]]):
        return first[1]
    candidates = [letter for letter, words in choices.items() if contains_answer_words(text, words)]
    # "oak" is in "oak tree": a choice within another named one does not count.
    longest = [
        a for a in candidates if not any(a != b and contains_answer_words(choices[b], choices[a]) for b in candidates)
    ]
    return longest[0] if len(longest) == 1 else ""


def is_near_answer(predicted: str, answer: str) -> bool:
    """Return whether a number is within 10 %, or a text equal after normalising. LLMCompiler's rule for ParallelQA.

    >>> (is_near_answer("5,900 m", "5931.80"), is_near_answer("Mariana trench", "Mariana Trench"),
    ...     is_near_answer("7", "5931.80"))
    (True, True, False)
    """
    try:
        number = float(answer.replace(",", ""))
    except ValueError:
        return normalise_answer(predicted) == normalise_answer(answer)
    # The first number of the prediction counts, thousands separators and all.
    match = re.search(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?", predicted)
    if match is None:
        return False
    value = float(match[0].replace(",", ""))
    return abs(value - number) < 0.1 * abs(number) if number else value == 0
