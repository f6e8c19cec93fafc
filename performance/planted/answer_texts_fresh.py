"""Sixteen ways in which different LLMs write answers, written by somebody who had not seen the check of answers."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "bold and bullets",
        "**{a}** comes out on top.\n\n"
        "- **{label}:** **{a.v:2} {u}** [{a.id}]\n"
        "- **{tallies}:** {a.t}\n"
        "- **Next best:** {b} with {b.v:2} {u} [{b.id}]\n"
        "- **Gap:** {gap:2} {u}, i.e. {lead:1%} {more/less} than {b}",
        final="**{a}**",
        runner_up="**{b}** ({b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "like JSON",
        '{"winner": "{a}", "value": {a.v:p2}, "unit": "{u}", "source": "[{a.id}]", "second": {"name": "{b}", '
        '"value": {b.v:p2}, "source": "[{b.id}]"}, "difference": {gap:p2}, "compared": {n}}',
        needs=("not percent",),
    ),
    Phrasing(
        "two paragraphs with a caveat",
        "Looking at the full set of {n} {nouns}, {a} has the {highest/lowest} {label}, at {a.v:2} {U} [{a.id}]. {b} "
        "follows at {b.v:2} {U} [{b.id}], so {a} is {lead:1%} {above/below} it.\n\nOne caveat: {a}'s figure rests on "
        "{a.t} {tallies}, against {b.t} for {b}, so the comparison is not like for like in that respect.",
        runner_up="{b}, at {b.v:2} {U} [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "German with English words",
        "{a} liegt im Ranking der {n} {nouns} auf Platz {a.rank}, mit {a.v:e2} {u} [{a.id}]. {b} folgt auf Platz "
        "{b.rank} mit {b.v:e2} {u} [{b.id}]; das ist ein Gap von {gap:e2} {u} bzw. {lead:c1 %} {mehr/weniger} für {a}.",
        runner_up="{b} ({b.v:e2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "executive summary",
        "Executive summary: we recommend {a}, which at {sym}{a.v:2} has the {highest/lowest} {label} of the {n} "
        "{nouns} reviewed [{a.id}].\nKey points:\n1. {b} is the closest alternative at {sym}{b.v:2} [{b.id}], a "
        "difference of {sym}{gap:2}.\n2. {c} takes the {c.rank:word} place at {sym}{c.v:2} [{c.id}], a difference of "
        "{sym}{gapc:2}.\n3. The average over all {nouns} is {sym}{mean:2}.",
        runner_up="{b} ({sym}{b.v:2})",
        needs=("symbol",),
    ),
    Phrasing(
        "hedged",
        "Based on the rows returned, {a} <appears^seems> to be the answer, with roughly {a.v:~} {U} [{a.id}] versus "
        "about {b.v:~} {U} for {b} [{b.id}]. I cannot rule out records that are missing from the data, but among the "
        "{n:w} {nouns} listed the order of these two is clear: {a} is {higher/lower}.",
        runner_up="{b}, about {b.v:~} {U}",
    ),
    Phrasing(
        "numbered list",
        "All {n} {nouns} were compared by {label}. The first four:\n1. {a} – {a.v:2} {u} ({a.t} {tallies}) [{a.id}]\n"
        "2. {b} – {b.v:2} {u} ({b.t} {tallies}) [{b.id}]\n3. {c} – {c.v:2} {u} ({c.t} {tallies}) [{c.id}]\n"
        "4. {d} – {d.v:2} {u} ({d.t} {tallies}) [{d.id}]",
        runner_up="{b} – {b.v:2} {u}",
    ),
    Phrasing(
        "table",
        "The comparison in short:\n\n| Rank | {noun} | {label} ({u}) | {tallies} | Source |\n"
        "|---:|---|---:|---:|---|\n| {a.rank} | {a} | {a.v:2} | {a.t} | [{a.id}] |\n"
        "| {b.rank} | {b} | {b.v:2} | {b.t} | [{b.id}] |\n| {c.rank} | {c} | {c.v:2} | {c.t} | [{c.id}] |\n\n"
        "{a} is therefore the <best choice^right choice>.",
    ),
    Phrasing(
        "shares of the total",
        "Across all {n} {nouns} the total is {total:2} {u}. {a} accounts for {a.share:1%} of it ({a.v:2} {u}) [{a.id}] "
        "and {b} for {b.share:1%} ({b.v:2} {u}) [{b.id}]; together with {c} [{c.id}] these three make up "
        "{threeshare:1%}.",
        runner_up="{b} with a share of {b.share:1%} [{b.id}]",
        needs=("sums", "max"),
    ),
    Phrasing(
        "runner-up first",
        "{b} is the closest contender with {b.v:2} {u} [{b.id}], but it is {gap:2} {u} short of {a}, which stands at "
        "{a.v:2} {u} [{a.id}]. {c} is further back with {c.v:2} {u} [{c.id}], {gapc:2} {u} from the lead, and {m}, "
        "ranked {m.rank:th} of {n}, has {m.v:2} {u} [{m.id}].",
        runner_up="{b} [{b.id}]",
        needs=("not percent", "max"),
    ),
    Phrasing(
        "question restated",
        "The question was which {noun} has the {highest/lowest} {label} in {year}. It is {a}, with {a.v:2} {U} in "
        "{year} [{a.id}]; the latest date on its row is {a.date:us}. {b} comes second with {b.v:2} {U} [{b.id}].",
        runner_up="{b}, {b.v:2} {U} in {year}",
        needs=("year",),
    ),
    Phrasing(
        "footnotes",
        "{a} ranks {a.rank:word} with {a.v:2} {u}¹, ahead of {b} with {b.v:2} {u}² and {c} with {c.v:2} {u}³.\n\n"
        "¹ [{a.id}]\n² [{b.id}]\n³ [{c.id}]",
        runner_up="{b}, {b.v:2} {u}²",
    ),
    Phrasing(
        "thousands",
        "Rounded to the nearest hundred, {a} comes to {a.v:k1} {u} [{a.id}], {b} to {b.v:k1} {u} [{b.id}] and {c} to "
        "{c.v:k1} {u} [{c.id}]. {a} therefore has the {largest/smallest} {label} of the {n} {nouns}.",
        runner_up="{b} ({b.v:k1} {u})",
        needs=("thousands",),
    ),
    Phrasing(
        "two sentences",
        "{a} has the {highest/lowest} {label} of all {nouns}. Its figure is {a.v:2} {u} [{a.id}].",
        runner_up="{b}",
    ),
    Phrasing(
        "result and course",
        "My pick is {a}: {a.v:2} {u} overall [{a.id}]. Its {label} {trend rose/fell} by {growth:1%}, from {first.v:2} "
        "{u} in {first:words} [{first.id}] to {last.v:2} {u} in {last:words} [{last.id}]. I would still choose it over "
        "{b} ({b.v:2} {u}) [{b.id}].",
        runner_up="{b}",
        needs=("periods", "not percent"),
    ),
    Phrasing(
        "against the average",
        "On average the {n} {nouns} come to {mean:2} {u}, and {over:w} of them lie above that. {a} is {above/below} "
        "the average with {a.v:2} {u} [{a.id}]. {b} is next with {b.v:2} {u} [{b.id}], so the difference between the "
        "two is {gap:2} {u}.",
        needs=("not percent",),
    ),
)
