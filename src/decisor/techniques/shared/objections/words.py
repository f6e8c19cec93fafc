"""The words by which claims are read: of order, of calculation, of about, of all and some, in a few languages."""

from __future__ import annotations

import re

from decisor.parsing.quantities import ORDINALS

BREAK = re.compile(
    r"(?<=[.!?])(?<!\bvs\.)(?<!\bca\.)(?<!\b[Nn]o\.)(?<!\bapprox\.)(?<!e\.g\.)(?<!i\.e\.)[\"'*)\]]*\s+(?=[A-Z\[\d*|(\"'$€£-])"
    r"|\n+|;\s+(?![^()]*\))"
)
RANGE = re.compile(r"\b(?:between|zwischen|entre)\b(?:[^.;]{0,30}\b(?:and|und|et|y)\b)?\s*[$€£]?$|\d\s*[–-]\s*$", re.I)
"""What stands before an end of a range."""
LOOSE = re.compile(r"\s*(?:[A-Za-z%€$]+\s+)?(?:or so|give or take|and change)\b|[ -]?ish\b|\+", re.I)
OF_THE_REST = re.compile(r"\b(?:remaining|others?|rest|further|übrigen|anderen|autres|otros|restantes)\b", re.I)
"""Words after which a figure may be of those that are not named."""
ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|nearly|almost|approximately|approx\.?|ca\.?|circa|some|close to)|[~≈])\s*$", re.I
)
BOUND = re.compile(
    r"\b(?:over|under|above|below|more than|less than|fewer than|at least|at most|up to|exceed\w*)\s*$", re.I
)
LABELLED = re.compile(
    r"(?:(?:\b|_)(?:top|first|last|next|option|step|rule|no\.?|number|ranks?|ranked|place|position|part|page|table|figure|level"
    r"|tier|phase|version|id|code|key)|#)\s*$",
    re.I,
)
MAX = r"highest|most|largest|biggest|greatest|maximum|longest"
MIN = r"lowest|least|fewest|smallest|cheapest|shortest|minimum"
SUPERLATIVE = re.compile(
    rf"\b(?:(?P<max>{MAX}|(?:valor )?más alto|höchste[mnrs]?)|(?P<min>{MIN}|(?:valor )?más bajo|niedrigste[mnrs]?))\b",
    re.I,
)
FOREIGN = (
    "erste[nrs]? zweite[nrs]? dritte[nrs]? vierte[nrs]? fünfte[nrs]? sechste[nrs]? siebte[nrs]? achte[nrs]?",
    "premi[eè]re? deuxième troisième quatrième cinquième sixième septième huitième neuvième",
    "primera? segund[ao] tercera? cuart[ao] quint[ao] sext[ao] séptim[ao] octav[ao] noven[ao]",
)
NTH = {"best": 1} | {word: at for words in (" ".join(ORDINALS), *FOREIGN) for at, word in enumerate(words.split(), 1)}
ORDINAL = rf"(?:{'|'.join(NTH)}|\d{{1,3}}(?:st|nd|rd|th))"
RULED = re.compile(
    r"\b(?:höchstens|mindestens|darf|nur|ohne|au plus|au moins|como máximo|al menos|at least|at most|no more"
    r"|less than|more than|under|over|above|below|only|without|excluding|except|must"
    r"|should|where|whose|while|unless|if|with|that|who|drop|not)\b",
    re.I,
)
UP = r"higher|more|greater|larger|bigger|above|longer|rose|risen|grew|grown|increased?|climbed|gained|up"
DOWN = r"lower|less|fewer|smaller|below|shorter|cheaper|fell|fallen|dropped|decreased?|declined|shrank|down|sank"
MEAN = re.compile(r"\b(?:averaged?|mean|typical)\b", re.I)
TOTAL = re.compile(r"\b(?:total|sum|together|combined|altogether|overall|in all|all|adding|adds?|share|make)\b", re.I)
GAP = re.compile(
    rf"\b(?:{UP}|{DOWN}|differ\w*|gap|lead\w*|ahead|behind|margin|than|by|saves?|saving|beats?|off|abstand|mehr|weniger|left|net"
    r"|change\w*|growth|rise|drop|fall|increase|decrease|from)\b",
    re.I,
)
RATIO = re.compile(
    r"\b(?:times|factor|twice|half|double|ratio|fold|per|each|every|an?|as (?:much|many))\b|×|\d\s?x\b", re.I
)
SEPARATOR = re.compile(r"[|\t]")
"""What stands between the columns of a table."""
OTHERS = re.compile(
    r"\b(?:next|others?|rest|follow\w*|second|runner|compared|against|than|versus|vs|while|whereas|remaining|any)\b",
    re.I,
)
NOT_A_NAME = re.compile(r"(?:yes|no|true|false|none|both|neither|all|table\b.*|the (?:first|second|last)\b.*)", re.I)
SMALL_WORDS = frozenset(
    ["the", "and", "with", "has", "have", "for", "are", "was", "which", "that", "than", "from", "all", "most", "least"]
)
PLACE = r"(?:position|place|rank|platz|rang|stelle|lugar|puesto|posto|posición)"
RANK = re.compile(
    rf"(?P<sign>#\d{{1,3}}|\bN[ro]\. ?\d{{1,3}})\b"
    rf"|\b{PLACE} (?:no\. ?|#)?(?P<after>\d{{1,3}}\b(?!\.\d)|{ORDINAL}\b)|(?P<bare>\b\d{{1,3}}[ºª])"
    rf"|\b(?P<before>{ORDINAL}|\d{{1,3}}\.)[ -](?:{PLACE}|placed|ranked|best|(?P<max>{MAX})|(?P<min>{MIN}))\b"
    rf"|\b(?:ranks?|ranked|comes?(?: in)?|came(?: in)?|is|was|are|placed?|finish(?:es|ed)|stands|only|and|[A-Z]\w+)"
    rf"\s+(?:the |only |in )?(?P<word>{ORDINAL})(?=\s+(?:with|of|by|at|in|on|among|choice|option)\b"
    r"|\s*[,;.(\[]|\s*$)",
    re.I,
)
MAY_RANK = re.compile(rf"\b{ORDINAL}\b|#\d|\bN[ro]\.|\b{PLACE}\b|[ºª]", re.I)
LIMITED = re.compile(
    r"\b(?:not|never|no(?!\.)|one of|those|who|eligible|allowed|other|others|besides|except|exclud\w+|without|within|if"
    r"|would|could|after|unlike|almost|nearly|open|closed|nothing|nobody|none|nor|neither)\b|n't\b",
    re.I,
)
COMPARATIVE = re.compile(
    r"\b(?:(?P<up>higher|more|greater|larger|bigger|longer|above|mehr|höher|más|mais)"
    r"|(?P<down>lower|less|fewer|smaller|shorter|cheaper|below|weniger|niedriger|menos))\b",
    re.I,
)
TREND = re.compile(
    r"\b(?:(?P<up>rose|risen|rises|grew|grows|grown|increase[ds]|climbed|gained)"
    r"|(?P<down>fell|falls|fallen|drops|dropped|decrease[ds]|declined|shrank|sank))\b",
    re.I,
)
GENERIC = {
    "value",
    "figure",
    "number",
    "amount",
    "total",
    "overall",
    "sum",
    "result",
    "level",
    "one",
    "score",
    "entry",
    "column",
    "average",
    "mean",
}
SMALL = {"of", "the", "its", "to", "by", "far", "a", "an"}
END = {
    "all",
    "any",
    "at",
    "with",
    "and",
    "is",
    "was",
    "are",
    "were",
    "among",
    "which",
    "that",
    "for",
    "has",
    "have",
    "had",
    "than",
    "from",
    "but",
    "so",
    "followed",
    "ahead",
    "here",
    "there",
    "in",
    "als",
    "que",
    "der",
    "von",
    "while",
    "respectively",
    "it",
}
WHOLE = re.compile(
    r"(?:\b(?:all|of|among|over|across|from|these|set of|compared|are|entre|von den|alle|(?:sur|tous) les"
    r"|(?:de|todos) los)(?: the)?|\bthe)\s*$",
    re.I,
)
"""Words before a number of candidates that are all of them."""
PART = re.compile(
    r"\s+(?:with|in|that|which|whose|where|from|above|below|over|under|exceed\w*|do|does|have|lie|are)\b", re.I
)
"""Words after it that make it some of them."""
ITEMS = {
    "row",
    "record",
    "entr",
    "candidate",
    "alternative",
    "option",
    "registro",
    "candidato",
    "kandidaten",
    "candidat",
    "einträge",
}
