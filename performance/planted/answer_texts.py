"""Thirty-six ways to write an answer, for whoever builds a check of answers: their answers may be read and printed."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "terse",
        "{a} has the {highest/lowest} {label}, {a.v:2} {u} [{a.id}].",
        runner_up="{b}, {b.v:2} {u} [{b.id}]",
    ),
    Phrasing(
        "comparison",
        "With {a.v:2} {u}, {a} is ahead of {b} ({b.v:2} {u}) by {gap:2} {u} [{a.id}, {b.id}]. "
        "<All {n} {nouns} were compared.^I compared all {n} {nouns}.>",
        needs=("not percent",),
    ),
    Phrasing(
        "chatty",
        "So, looking at the rows, {a} is <pretty clearly^clearly^plainly> the one to pick: its {label} is {a.v:1} {U} "
        "[{a.id}], while {b} only gets to {b.v:1} {U} [{b.id}] and {c} to {c.v:1} {U} [{c.id}].",
        runner_up="{b}, which comes in at {b.v:1} {U}",
    ),
    Phrasing(
        "bullets",
        "\n- **{a}**: {a.v:2} {u} from {a.t} {tallies} [{a.id}]\n- **{b}**: {b.v:2} {u} from {b.t} {tallies} [{b.id}]\n"
        "- **{c}**: {c.v:2} {u} from {c.t} {tallies} [{c.id}]",
        runner_up="**{b}** with {b.v:2} {u}",
    ),
    Phrasing(
        "percent ahead",
        "{a}'s {label} of {a.v:0} {u} [{a.id}] is {lead:1%} {higher/lower} than that of {b}, "
        "<which stands at^which is at> {b.v:0} {u} [{b.id}].",
        runner_up="{b} ({b.v:0} {u}) [{b.id}]",
        needs=("hundreds", "not percent"),
    ),
    Phrasing(
        "figure first",
        "{a.v:2} {u} is the {highest/lowest} {label} of the {n} {nouns}, and it belongs to {a} [{a.id}]. "
        "The next one, {b.v:2} {u}, is {b}'s [{b.id}].",
    ),
    Phrasing(
        "share of the total",
        "{a} accounts for {a.v:2} {u} [{a.id}]. Adding up all {n} rows gives {total:2} {u}, so its share is "
        "{a.share:1%}.",
        runner_up="{b} with {b.v:2} {u}, a share of {b.share:1%} [{b.id}]",
        needs=("sums",),
    ),
    Phrasing(
        "rank words",
        "{a} ranks {a.rank:word} with {a.v:2} {u} [{a.id}]; {b} is {b.rank:word} with {b.v:2} {u} [{b.id}] and {c} "
        "{c.rank:word} with {c.v:2} {u} [{c.id}].",
    ),
    Phrasing(
        "rank numbers",
        "{label}: {a} {a.v:1} {u} ({a.rank:#} of {n}) [{a.id}]. {m} is only {m.rank:th}, with {m.v:1} {u} [{m.id}].",
        runner_up="{b}, {b.rank:#}, {b.v:1} {u}",
    ),
    Phrasing(
        "millions in words",
        "{a} reaches {a.v:M2} {U} [{a.id}], compared with {b.v:M2} {U} for {b} [{b.id}].",
        runner_up="{b} at {b.v:M2} {U}",
        needs=("big",),
    ),
    Phrasing(
        "millions short",
        "{a} leads on {label}: {sym}{a.v:m2} [{a.id}] vs. {sym}{b.v:m2} for {b} [{b.id}], a gap of {sym}{gap:m2}.",
        runner_up="{b} ({sym}{b.v:m2})",
        needs=("big", "symbol"),
    ),
    Phrasing(
        "thousands short",
        "At {a.v:k1} {u}, {a} <beats^is better than> {b} at {b.v:k1} {u} and {c} at {c.v:k1} {u} "
        "[{a.id}, {b.id}, {c.id}].",
        runner_up="{b}, about {b.v:k0} {u}",
        needs=("thousands",),
    ),
    Phrasing(
        "dollar sign",
        "{a} comes to {sym}{a.v:2} [{a.id}], {sym}{gap:2} {more/less} than {b} ({sym}{b.v:2}) [{b.id}].",
        runner_up="{b} ({sym}{b.v:2})",
        needs=("symbol",),
    ),
    Phrasing(
        "decimal comma",
        "{a} liegt mit {a.v:e2} {u} vorn [{a.id}], {b} folgt mit {b.v:e2} {u} [{b.id}]. Das sind {lead:c1 %} Abstand.",
        runner_up="{b} mit {b.v:e2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "spaced thousands",
        "The {label} of {a} is {a.v:s1} {u} [{a.id}]. {b} has {b.v:s1} {u} [{b.id}], {c} has {c.v:s1} {u} [{c.id}].",
        runner_up="{b} — {b.v:s1} {u}",
    ),
    Phrasing(
        "table",
        "\n| {noun} | {label} ({u}) | {tallies} |\n|---|---|---|\n| {a} [{a.id}] | {a.v:2} | {a.t} |\n"
        "| {b} [{b.id}] | {b.v:2} | {b.t} |\n| {c} [{c.id}] | {c.v:2} | {c.t} |",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "counts",
        "{a} has {a.t} {tallies} and {a.v:2} {u} [{a.id}], that is {a.per:2} {u} per {tally}. {b} has {b.t} {tallies} "
        "and {b.v:2} {u} [{b.id}].",
        needs=("sums",),
    ),
    Phrasing(
        "count words",
        "Of the {n:w} {nouns}, {over:w} lie above the average of {mean:1} {u}. {a} is the best of them with "
        "{a.v:1} {u} "
        "[{a.id}].",
        needs=("few", "max"),
    ),
    Phrasing(
        "ratio",
        "{a} ({a.v:2} {u}) [{a.id}] has {ratioc:2} times the {label} of {c} ({c.v:2} {u}) [{c.id}], and beats "
        "{b}, with "
        "{b.v:2} {u} [{b.id}].",
        needs=("max",),
    ),
    Phrasing(
        "ratio to the last",
        "Between {a} with {a.v:2} {u} [{a.id}] and {z} with {z.v:2} {u} [{z.id}] there is a factor of {ratio:1}.",
        runner_up="{b}: {b.v:2} {u} [{b.id}]",
    ),
    Phrasing(
        "best quarter",
        "{a} has {a.v:2} {u} in all [{a.id}]. Its best period was {top:of} with {top.v:2} {u} [{top.id}], its weakest "
        "{low:of} with {low.v:2} {u} [{low.id}].",
        needs=("periods", "sums", "max"),
    ),
    Phrasing(
        "trend",
        "{a} is the best by {label}, {a.v:2} {u} [{a.id}]. From {first:of} to {last:of} it {trend rose/fell} by "
        "{growth:1%}, from {first.v:2} {u} [{first.id}] to {last.v:2} {u} [{last.id}].",
        needs=("periods",),
    ),
    Phrasing(
        "year",
        "In {year}, {a} had a {label} of {a.v:2} {u} [{a.id}], {higher/lower} than any other {noun}; {b} had {b.v:2} "
        "{u} [{b.id}] in {year}.",
        needs=("year",),
    ),
    Phrasing(
        "dates",
        "{a} stands at {a.v:2} {u}, its last entry being of {a.date} [{a.id}]. For {b} it is {b.v:2} {u}, last entry "
        "{b.date:long} [{b.id}].",
    ),
    Phrasing(
        "american dates",
        "{a}, last seen {a.date:us}, has {a.v:1} {u} [{a.id}]; {c}, last seen {c.date:us}, has {c.v:1} {u} [{c.id}].",
        runner_up="{b} with {b.v:1} {u} (last seen {b.date:us})",
    ),
    Phrasing(
        "average",
        "The mean {label} over the {n} {nouns} is {mean:2} {u} (computed from the rows). {a} is "
        "{above/below} it with {a.v:2} {u} [{a.id}].",
        runner_up="{b}, with {b.v:2} {u}",
    ),
    Phrasing(
        "top three",
        "The first three, {a} ({a.v:0}), {b} ({b.v:0}) and {c} ({c.v:0}), make {three:0} {u} together, "
        "{threeshare:0%} of the total of {total:0} {u} [{a.id}, {b.id}, {c.id}].",
        runner_up="{b} at {b.v:0}",
        needs=("sums", "hundreds"),
    ),
    Phrasing(
        "bold",
        "**{a}** wins with **{a.v:2} {u}** [{a.id}]. Second-best **{b}** stands at **{b.v:2} {u}** [{b.id}], "
        "a difference of **{gap:2} {u}** ({short:1%}).",
        needs=("not percent",),
    ),
    Phrasing(
        "whole table cited",
        "Ordered by {label}, {a} comes {a.rank:word} of {n} {nouns} with {a.v:2} {u}, then {b} with {b.v:2} {u} [o1].",
        final="{a} [{a.id}]",
        runner_up="{b}, {b.v:2} {u} [{b.id}]",
    ),
    Phrasing(
        "rounded",
        "{a} has roughly {a.v:~} {u} [{a.id}], {c} about {c.v:~} {u} [{c.id}].",
        runner_up="{b} with about {b.v:~} {u}",
        needs=("short",),
    ),
    Phrasing(
        "billions",
        "{a} turns over {a.v:B2} {U} [{a.id}], or {a.share:1%} of the {total:B1} {U} of all {n} {nouns} (my sum).",
        runner_up="{b} ({b.v:B2} {U})",
        needs=("billion", "sums"),
    ),
    Phrasing(
        "plain digits",
        "{label} {a.v:p2} {u} for {a} [{a.id}]; {label} {b.v:p2} {u} for {b} [{b.id}]. {a!} has {gap:p2} {u} "
        "{more/less}.",
        runner_up="{b} {b.v:p2}",
        needs=("not percent",),
    ),
    Phrasing(
        "times",
        "{a} with {a.v:2} {u} [{a.id}] has {ratio:times} the {label} of {z}, the last of {n}, with {z.v:2} "
        "{u} [{z.id}].",
        runner_up="{b}, {b.v:2} {u}",
        needs=("times",),
    ),
    Phrasing(
        "percent in words",
        "The {label} of {b} ({b.v:1} {u}) [{b.id}] is {short:0 percent} off the {label} of {a} ({a.v:1} {u}) [{a.id}].",
        runner_up="{b}",
        needs=("not percent", "hundreds"),
    ),
    Phrasing(
        "currency first",
        "{a}: {u} {a.v:2} over {a.t} {tallies} [{a.id}]. {b}: {u} {b.v:2} over {b.t} {tallies} [{b.id}]. Difference: "
        "{u} {gap:2} and {moretallies} {tallies}.",
        runner_up="{b}: {u} {b.v:2}",
        needs=("symbol",),
    ),
    Phrasing(
        "row first",
        "[{a.id}] shows {a} at {a.v:2} {u} and [{b.id}] shows {b} at {b.v:2} {u}; [{z.id}], the {lowest/highest}, is "
        "{z} at {z.v:2} {u}.",
        runner_up="{b} [{b.id}]",
    ),
)
