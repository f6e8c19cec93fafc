"""Twelve ordinary ways to answer the prompt for a final answer, written by somebody who had not seen the check."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "plain",
        "{a} has the {highest/lowest} {label} of all {n} {nouns}, with {a.v:2} {u} [{a.id}]. The next best is {b} with "
        "{b.v:2} {u} [{b.id}].",
        runner_up="{b} with {b.v:2} {u}",
    ),
    Phrasing(
        "difference",
        "Among the {n} {nouns} compared, {a} comes out on top with a {label} of {a.v:2} {U} [{a.id}]. This is {gap:2} "
        "{U} {more/less} than {b}, which has {b.v:2} {U} [{b.id}].",
        runner_up="{b} ({b.v:2} {U})",
        needs=("not percent",),
    ),
    Phrasing(
        "symbol",
        "{a} has a {label} of {sym}{a.v:2} [{a.id}], compared with {sym}{b.v:2} for {b} [{b.id}] and {sym}{c.v:2} for "
        "{c} [{c.id}]. All other {nouns} are {lower/higher}.",
        runner_up="{b} ({sym}{b.v:2}) [{b.id}]",
        needs=("symbol",),
    ),
    Phrasing(
        "percentage",
        "{a} has the {highest/lowest} {label} at {a.v:0} {u} [{a.id}], about {lead:1%} {higher/lower} than the "
        "{b.rank:word}-placed {b} at {b.v:0} {u} [{b.id}].",
        runner_up="{b}, {b.v:0} {u}",
        needs=("hundreds", "not percent"),
    ),
    Phrasing(
        "share",
        "{a} accounts for {a.share:1%} of the total {label} across all {n} {nouns}, {a.v:2} {u} out of {total:2} {u} "
        "[{a.id}]. {b} follows with {b.share:1%}, or {b.v:2} {u} [{b.id}].",
        runner_up="{b} with {b.v:2} {u} ({b.share:1%})",
        needs=("sums", "max"),
    ),
    Phrasing(
        "ranks with a count",
        "{a} ranks {a.rank:word} by {label} with {a.v:2} {u} from {a.t} {tallies} [{a.id}]. {b} ranks {b.rank:word} "
        "with {b.v:2} {u} from {b.t} {tallies} [{b.id}], and {c} {c.rank:word} with {c.v:2} {u} from {c.t} {tallies} "
        "[{c.id}].",
        runner_up="{b} with {b.v:2} {u} from {b.t} {tallies}",
        needs=("sums", "rates"),
    ),
    Phrasing(
        "periods",
        "{a} has the {highest/lowest} {label} of all {nouns}, {a.v:2} {u} [{a.id}], followed by {b} with {b.v:2} {u} "
        "[{b.id}]. {a}'s {label} {trend rose/fell} from {first.v:2} {u} in {first:of} [{first.id}] to {last.v:2} {u} "
        "in {last:of} [{last.id}].",
        needs=("periods",),
    ),
    Phrasing(
        "best quarter",
        "In {year}, {a} had the {highest/lowest} {label} of the {n} {nouns}, at {a.v:1} {u} [{a.id}], ahead of {b} at "
        "{b.v:1} {u} [{b.id}]. {a}'s strongest quarter was {top:of} with {top.v:1} {u} [{top.id}].",
        runner_up="{b} at {b.v:1} {u}",
        needs=("year", "periods", "max"),
    ),
    Phrasing(
        "millions",
        "With about {a.v:M2} {U} [{a.id}], {a} is ahead of all other {nouns} in terms of {label}. {b} is "
        "{b.rank:word} with about {b.v:M2} {U} [{b.id}], about {short:1%} {less/more}.",
        runner_up="{b} (about {b.v:M2} {U})",
        needs=("big",),
    ),
    Phrasing(
        "three best",
        "The three {nouns} with the {highest/lowest} {label} are {a} ({a.v:2} {u}) [{a.id}], {b} ({b.v:2} {u}) "
        "[{b.id}] and {c} ({c.v:2} {u}) [{c.id}]. {a} leads {b} by {gap:2} {u}, or {lead:1%}.",
        runner_up="{b}, {b.v:2} {u} [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "average",
        "{a} has the {highest/lowest} {label}, {a.v:2} {u} over {a.t} {tallies} [{a.id}], which is an average of "
        "{a.per:2} {u} per {tally}. {b} is {b.rank:word} with {b.v:2} {u} over {b.t} {tallies} [{b.id}], an average of "
        "{b.per:2} {u} per {tally}.",
        runner_up="{b} with {b.v:2} {u}",
        needs=("sums", "rates", "max"),
    ),
    Phrasing(
        "range",
        "I compared all {n} {nouns} by {label}. {a} is best with {a.v:2} {u} [{a.id}]. {b} is next with {b.v:2} {u} "
        "[{b.id}], while {z} has the {lowest/highest} value at {z.v:2} {u} [{z.id}]. {a} is therefore the {noun} with "
        "the {highest/lowest} {label}.",
        runner_up="{b} with a {label} of {b.v:2} {u}",
        needs=("clear last",),
    ),
)
