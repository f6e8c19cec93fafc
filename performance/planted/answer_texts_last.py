"""Twelve more ways to write an answer, written when a check of answers stood, to measure it once."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "verdict",
        "Verdict: {a}. It books {a.v:1} {u} [{a.id}]; nobody else among the {n} {nouns} does better, not even {b} with "
        "its {b.v:1} {u} [{b.id}].",
        runner_up="{b}",
    ),
    Phrasing(
        "question and answer",
        "Who is in front? {a}, with {a.v:2} {u} [{a.id}]. Who comes next? {b}, with {b.v:2} {u} [{b.id}]. And "
        "last? {z}, "
        "with {z.v:2} {u} [{z.id}].",
        runner_up="{b}: {b.v:2} {u}",
    ),
    Phrasing(
        "brackets",
        "{a} (row [{a.id}]: {a.v:2} {u}, {a.t} {tallies}) ahead of {b} (row [{b.id}]: {b.v:2} {u}, {b.t} {tallies})",
        runner_up="{b} (row [{b.id}])",
    ),
    Phrasing(
        "since clause",
        "Since {a.v:2} {u} [{a.id}] is {larger/smaller} than {b.v:2} {u} [{b.id}], {a} goes before {b}.",
    ),
    Phrasing(
        "portuguese",
        "{a} fica em {a.rank}º lugar com {a.v:e2} {u} [{a.id}] e {b} em {b.rank}º com {b.v:e2} {u} [{b.id}].",
        runner_up="{b} ({b.v:e2} {u})",
    ),
    Phrasing(
        "place words",
        "First place: {a}, {a.v:1} {u} [{a.id}]. Place {c.rank:word}: {c}, {c.v:1} {u} [{c.id}].",
        runner_up="{b}, {b.v:1} {u}",
    ),
    Phrasing(
        "sum of two",
        "Together {a} and {b} have {both:2} {u} ({a.v:2} + {b.v:2}) [{a.id}, {b.id}]; {a.share:1%} of all {n} rows is "
        "{a}'s alone.",
        needs=("sums",),
    ),
    Phrasing(
        "what it would take",
        "To catch up, {b} ({b.v:2} {u} [{b.id}]) would have to make up {gap:2} {u} on {a} ({a.v:2} {u} [{a.id}]).",
        needs=("not percent",),
    ),
    Phrasing(
        "as of",
        "As of {a.date:long}, {a} had {a.v:2} {u} in {a.t} {tallies} [{a.id}].",
        runner_up="{b}, as of {b.date:long}, had {b.v:2} {u} in {b.t} {tallies} [{b.id}]",
    ),
    Phrasing(
        "period by period",
        "Over the {periods:w} periods shown, {a} was strongest in {top:of}, {top.v:1} {u} [{top.id}]; for the "
        "whole span it "
        "has {a.v:1} {u} [{a.id}].",
        needs=("periods", "sums", "max"),
    ),
    Phrasing(
        "mn with sign",
        "{sym}{a.v:M1} for {a} [{a.id}], {sym}{b.v:M1} for {b} [{b.id}], {sym}{c.v:M1} for {c} [{c.id}].",
        runner_up="{b} ({sym}{b.v:M1})",
        needs=("big", "symbol"),
    ),
    Phrasing(
        "percent of the best",
        "{a} sets the mark at {a.v:2} {u} [{a.id}]; {b} is {short:1%} away from it at {b.v:2} {u} [{b.id}].",
        needs=("not percent",),
    ),
)
