"""How right an answer to a question over documents is: exact match, F1, contained, and how choices are read.

The rules are those of the released scorers, so figures compare: ``normalise``, ``em`` and ``f1`` as HotpotQA's,
SQuAD's, MuSiQue's and LLMCompiler's. All take the prediction first, then every accepted answer, and return the best.
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


def normalise(text: str) -> str:
    """Lower case, ASCII punctuation dropped, the words a, an and the dropped, white space collapsed. No more than
    that: letters with accents stay as they are.

    >>> normalise("The  Beatles' 1st-ever LP")
    'beatles 1stever lp'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())


def em(predicted: str, gold: Sequence[str]) -> float:
    """
    >>> em("the Eiffel Tower!", ["Tour Eiffel", "Eiffel tower"])
    1.0
    """
    return float(any(normalise(predicted) == normalise(answer) for answer in gold))


def overlap(predicted: str, answer: str) -> tuple[float, float, float]:
    """F1, precision and recall of the tokens, counted with repetition. Without tokens on a side: 1 if on both."""
    tokens, answer_tokens = normalise(predicted).split(), normalise(answer).split()
    if not tokens or not answer_tokens:
        same = float(tokens == answer_tokens)
        return same, same, same
    common = sum((Counter(tokens) & Counter(answer_tokens)).values())
    precision, recall = common / len(tokens), common / len(answer_tokens)
    return harmonic(precision, recall), precision, recall


def harmonic(precision: float, recall: float) -> float:
    """F1, 0 where both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def f1(predicted: str, gold: Sequence[str]) -> float:
    """As SQuAD, MuSiQue and IRCoT.

    >>> f1("president Barack Obama", ["Barack Obama"])
    0.8
    """
    return max((overlap(predicted, answer)[0] for answer in gold), default=0.0)


def hotpot_overlap(predicted: str, answer: str) -> tuple[float, float, float]:
    """As ``overlap``, but 0 where one side is yes, no or noanswer and the other is not the same (HotpotQA's rule),
    and 0 where both sides are empty."""
    normal, normal_answer = normalise(predicted), normalise(answer)
    if normal != normal_answer and (normal in SPECIAL or normal_answer in SPECIAL):
        return 0.0, 0.0, 0.0
    return overlap(predicted, answer) if normal and normal_answer else (0.0, 0.0, 0.0)


def f1_hotpot(predicted: str, gold: Sequence[str]) -> float:
    """As HotpotQA, 2WikiMultiHopQA and FlashRAG.

    >>> f1_hotpot("yes, both are", ["yes"]), f1("yes, both are", ["yes"])
    (0.0, 0.5)
    >>> f1_hotpot("no", ["no longer"]), f1_hotpot("No.", ["no"])
    (0.0, 1.0)
    """
    return max((hotpot_overlap(predicted, answer)[0] for answer in gold), default=0.0)


def contains(predicted: str, answer: str) -> bool:
    """Whether the normalised prediction holds the normalised answer anywhere, inside words too. An answer of which
    nothing is left after normalising (the letter A) must be the whole prediction."""
    normal_answer = normalise(answer)
    return (
        normal_answer in normalise(predicted) if normal_answer else predicted.strip().lower() == answer.strip().lower()
    )


def contains_words(predicted: str, answer: str) -> bool:
    """As ``contains``, at word boundaries: "no" is not in "know".

    >>> contains_words("I know", "no"), contains("I know", "no")
    (False, True)
    """
    normal_answer = normalise(answer)
    return f" {normal_answer} " in f" {normalise(predicted)} " if normal_answer else contains(predicted, answer)


def acc(predicted: str, gold: Sequence[str]) -> float:
    """Plan-RAG's accuracy: the prediction contains an accepted answer. Long answers gain by it."""
    return float(any(contains(predicted, answer) for answer in gold))


def acc_word(predicted: str, gold: Sequence[str]) -> float:
    """The same at word boundaries."""
    return float(any(contains_words(predicted, answer) for answer in gold))


def yes_no(text: str) -> str:
    """The first yes or no (true and false count as them), or ''.

    >>> yes_no("Yes, there is no doubt."), yes_no("I know it."), yes_no("False.")
    ('yes', '', 'no')
    """
    match = YES_NO.search(text)
    return {"yes": "yes", "true": "yes", "no": "no", "false": "no"}[match[1].lower()] if match else ""


def choice(text: str, choices: Mapping[str, str]) -> str:
    """The letter of the choice an answer names: by its letter, its whole text, or the only choice text it contains.

    >>> plants = {"A": "oak", "B": "oak tree", "C": "a pine"}
    >>> [choice(text, plants) for text in ("(b) oak tree", "The answer is C.", "Pine", "A pine", "oak or pine", "D")]
    ['B', 'C', 'C', 'C', '', '']
    """
    whole = [letter for letter, words in choices.items() if normalise(words) == normalise(text)]
    if len(whole) == 1:
        return whole[0]
    if (match := LETTER.match(text)) and (letter := match[1].upper()) in choices:
        return letter
    first = re.match(r"\W*([A-Z1-9])\s+(.+)", text, re.S)
    if first and first[1] in choices and contains_words(first[2], choices[first[1]]):
        return first[1]
    candidates = [letter for letter, words in choices.items() if contains_words(text, words)]
    longest = [a for a in candidates if not any(a != b and contains_words(choices[b], choices[a]) for b in candidates)]
    return longest[0] if len(longest) == 1 else ""


def near(predicted: str, answer: str, margin: float = 0.1) -> bool:
    """LLMCompiler's rule for ParallelQA: a number within 10 %, or the same normalised text.

    >>> near("5,900 m", "5931.80"), near("Mariana trench", "Mariana Trench"), near("7", "5931.80")
    (True, True, False)
    """
    try:
        number = float(answer.replace(",", ""))
    except ValueError:
        return normalise(predicted) == normalise(answer)
    match = re.search(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?", predicted)
    if match is None:
        return False
    value = float(match[0].replace(",", ""))
    return abs(value - number) < margin * abs(number) if number else value == 0
