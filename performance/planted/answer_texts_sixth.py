"""Sixteen more ways to answer, written by somebody who had not read the check."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "verdict first",
        "{a}. It posts the {highest/lowest} {label} in the table, {a.v:2} {u} [{a.id}], while {b} manages {b.v:2} {u} "
        "[{b.id}].",
        runner_up="{b} with {b.v:2} {u}",
    ),
    Phrasing(
        "margin by name",
        "{a} beats {b} by {gap:2} {u}: {a.v:2} [{a.id}] against {b.v:2} [{b.id}]. {c} trails {a!} by {gapc:2} {u} "
        "[{c.id}].",
        runner_up="{b}, {gap:2} {u} behind {a!}",
        needs=("max", "not percent"),
    ),
    Phrasing(
        "ranking in a sentence",
        "The order is {a} ({a.v:1} {u}), {b} ({b.v:1} {u}), {c} ({c.v:1} {u}), {d} ({d.v:1} {u}) [{a.id}, {b.id}, "
        "{c.id}, {d.id}]; {z} closes the list of {n}.",
        runner_up="{b} ({b.v:1} {u})",
        needs=("clear last",),
    ),
    Phrasing(
        "minutes of a meeting",
        "We looked at all {n} {nouns}. Proposal: {a}, whose {label} is {a.v:0} {u} [{a.id}]. Alternative: {b}, "
        "{b.v:0} {u} [{b.id}]. Rejected: {z}, {z.v:0} {u} [{z.id}], last of {n}.",
        runner_up="{b}, {b.v:0} {u}",
        needs=("hundreds", "clear last"),
    ),
    Phrasing(
        "no other",
        "No other {noun} has a {higher/lower} {label} than {a} ({a.v:2} {u}) [{a.id}]. The closest is {b} with "
        "{b.v:2} {u} [{b.id}].",
        runner_up="{b} with {b.v:2} {u}",
    ),
    Phrasing(
        "percent of all",
        "{a} stands for {a.share:1} % of the {total:0} {u} that all {n} {nouns} have together [{a.id}], {b} for "
        "{b.share:1} % [{b.id}].",
        runner_up="{b}: {b.share:1} %",
        needs=("sums", "hundreds", "not percent"),
    ),
    Phrasing(
        "letter",
        "Dear team, my recommendation is {a}. Its {label} of {a.v:2} {u} is the <best^strongest> of the {n} {nouns} "
        "[{a.id}], ahead of {b} at {b.v:2} {u} [{b.id}], which I would keep as the second choice, and of {c} at "
        "{c.v:2} {u} [{c.id}], the third.",
        runner_up="{b} at {b.v:2} {u}",
    ),
    Phrasing(
        "numbered",
        "\n1. {a} – {a.v:2} {u} [{a.id}]\n2. {b} – {b.v:2} {u} [{b.id}]\n3. {c} – {c.v:2} {u} [{c.id}]\n"
        "4. {d} – {d.v:2} {u} [{d.id}]",
        runner_up="{b} – {b.v:2} {u}",
    ),
    Phrasing(
        "key and value",
        "\nwinner={a}\nvalue={a.v:2} {u}\nrow={a.id}\nsecond={b}\nsecond value={b.v:2} {u}\nsecond row={b.id}\n"
        "candidates={n}\n(see [{a.id}] and [{b.id}])",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "below the winner",
        "{a} comes to {a.v:0} {u} [{a.id}]. {b} is {short:1%} {below/above} that [{b.id}] and {c} follows with "
        "{c.v:0} {u} [{c.id}].",
        runner_up="{b} with {b.v:0} {u}",
        needs=("hundreds", "not percent"),
    ),
    Phrasing(
        "tallies too",
        "{a} reached {a.v:0} {u} with {a.t} {tallies} [{a.id}]; {b} reached {b.v:0} {u} with {b.t} {tallies} "
        "[{b.id}]. By {label} {a} is {a.rank:word}.",
        runner_up="{b}, {b.v:0} {u} and {b.t} {tallies}",
        needs=("rates", "hundreds"),
    ),
    Phrasing(
        "year and trend",
        "For {year} I recommend {a}: {a.v:0} {u} [{a.id}]. Its {label} {trend rose/fell} from {first.v:0} {u} in "
        "{first:of} [{first.id}] to {last.v:0} {u} in {last:of} [{last.id}].",
        runner_up="{b} with {b.v:0} {u}",
        needs=("year", "periods", "hundreds"),
    ),
    Phrasing(
        "double negative",
        "Nobody is {above/below} {a} here: {a.v:2} {u} [{a.id}]. {b} ({b.v:2} {u}) [{b.id}] is number {b.rank} and {m} "
        "({m.v:2} {u}) [{m.id}] only number {m.rank} of the {n}.",
        runner_up="{b} ({b.v:2} {u})",
    ),
    Phrasing(
        "half of the field",
        "With {a.v:0} {u}, {a} lies {restlead:0%} {above/below} what the other {others} {nouns} have on average "
        "[{a.id}]. Second is {b} with {b.v:0} {u} [{b.id}].",
        runner_up="{b} with {b.v:0} {u}",
        needs=("hundreds", "not percent"),
    ),
    Phrasing(
        "german, reasons",
        "Meine Empfehlung ist {a}: mit {a.v:e2} {u} {der höchste/der niedrigste} Wert unter {n} Kandidaten [{a.id}]. "
        "Zweiter ist {b} mit {b.v:e2} {u} [{b.id}], Dritter {c} mit {c.v:e2} {u} [{c.id}].",
        runner_up="{b} mit {b.v:e2} {u}",
    ),
    Phrasing(
        "question and answer",
        "Which {noun}? {a}. How much? {a.v:2} {u} [{a.id}]. Out of how many? {n}. Who else? {b}, {b.v:2} {u} "
        "[{b.id}], then {c}, {c.v:2} {u} [{c.id}].",
        runner_up="{b}, {b.v:2} {u}",
    ),
)
