"""Thirty-three other ways to write an answer, kept back: who builds a check of answers does not look at them."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "recommendation",
        "I would recommend {a}. Judging by {label}, nothing in the result is <better^preferable>: {a.v:1} {u} "
        "according to [{a.id}]. The nearest alternative would be {b}; [{b.id}] gives it {b.v:1} {u}.",
        runner_up="{b} would be my second choice ({b.v:1} {u}, [{b.id}])",
    ),
    Phrasing(
        "telegram",
        "{a} {a.v:p1} / {b} {b.v:p1} / {c} {c.v:p1} ({u}) [{a.id}] [{b.id}] [{c.id}]",
        runner_up="{b} {b.v:p1}",
    ),
    Phrasing(
        "apposition",
        "{a}, whose {tallies} number {a.t} and whose {label} amounts to {a.v:2} {u} [{a.id}], tops a list of {n} "
        "{nouns}; {b}, the closest competitor, records {b.v:2} {u} with {b.t} {tallies} [{b.id}].",
        runner_up="The closest competitor is {b}",
    ),
    Phrasing(
        "margin first",
        "A margin of {gap:1} {u} separates {a} ({a.v:1} {u}) [{a.id}] from {b} ({b.v:1} {u}) [{b.id}], so the former "
        "is the {noun} with the {greatest/smallest} {label}.",
        needs=("not percent",),
    ),
    Phrasing(
        "signed percent",
        "{a} {a.v:0} {u} vs. {b} {b.v:0} {u} (Δ {lead:1 %}); vs. {c} {c.v:0} {u} (Δ {leadc:1 %}). Rows [{a.id}], "
        "[{b.id}], [{c.id}].",
        runner_up="{b} — {b.v:0} {u}, Δ {lead:1 %}",
        needs=("hundreds", "not percent"),
    ),
    Phrasing(
        "numbered list",
        "\n1. {a} – {a.v:2} {u} [{a.id}]\n2. {b} – {b.v:2} {u} [{b.id}]\n3. {c} – {c.v:2} {u} [{c.id}]\n"
        "The list has {n} entries altogether.",
        runner_up="{b} – {b.v:2} {u}",
    ),
    Phrasing(
        "swiss",
        "{a} steht mit {a.v:'2} {u} an erster Stelle [{a.id}]; {b} bringt {b.v:'2} {u} [{b.id}].",
        runner_up="{b} ({b.v:'2} {u})",
        needs=("max",),
    ),
    Phrasing(
        "french",
        "{a} arrive en tête avec {a.v:n2} {u} [{a.id}], devant {b} avec {b.v:n2} {u} [{b.id}], soit {lead:n1 "
        "%} d'écart.",
        runner_up="{b}, {b.v:n2} {u}",
        needs=("max", "not percent"),
    ),
    Phrasing(
        "spanish",
        "Entre {n} registros, {a} tiene el valor más {alto/bajo}: {a.v:e1} {u} [{a.id}]. Le sigue {b} con {b.v:e1} {u} "
        "[{b.id}].",
        runner_up="{b} con {b.v:e1} {u}",
    ),
    Phrasing(
        "trailing symbol",
        "{a}: {a.v:e2} {sym} [{a.id}]; {b}: {b.v:e2} {sym} [{b.id}].",
        runner_up="{b}: {b.v:e2} {sym}",
        needs=("symbol",),
    ),
    Phrasing(
        "bankers",
        "{a}'s {label} is {u} {a.v:mn1} [{a.id}] against {u} {b.v:mn1} at {b} [{b.id}] and {u} {c.v:mn1} at "
        "{c} [{c.id}].",
        runner_up="{b} ({u} {b.v:mn1})",
        needs=("big",),
    ),
    Phrasing(
        "billions short",
        "{sym}{a.v:bn2} puts {a} first [{a.id}]; {b} books {sym}{b.v:bn2} [{b.id}].",
        runner_up="{b} with {sym}{b.v:bn2}",
        needs=("billion", "symbol"),
    ),
    Phrasing(
        "thousand in words",
        "About {a.v:K1} {U} stand to the name of {a} [{a.id}], about {b.v:K1} {U} to that of {b} [{b.id}].",
        runner_up="{b}, about {b.v:K1} {U}",
        needs=("thousands",),
    ),
    Phrasing(
        "out of",
        "Out of {n} {nouns}, {others} do <worse^less well> than {a}, which records {a.v:2} {u} [{a.id}].",
        runner_up="{b}, recording {b.v:2} {u} [{b.id}]",
    ),
    Phrasing(
        "position",
        "Position {a.rank} goes to {a} ({a.v:2} {u}), position {b.rank} to {b} ({b.v:2} {u}); {d} only gets "
        "to position "
        "{d.rank} ({d.v:2} {u}) [{a.id}, {b.id}, {d.id}].",
    ),
    Phrasing(
        "No. style",
        "{a} is {a.rank:no} by {label} and {b} is {b.rank:no}: {a.v:1} {u} [{a.id}] and {b.v:1} {u} [{b.id}] "
        "respectively.",
        runner_up="{b.rank:no}: {b}",
    ),
    Phrasing(
        "sum and part",
        "Summing the {n} figures yields {total:1} {u}; {a.share:1%} of that, {a.v:1} {u}, comes from {a} [{a.id}], and "
        "{b.share:1%}, {b.v:1} {u}, from {b} [{b.id}].",
        needs=("sums",),
    ),
    Phrasing(
        "pair together",
        "{a} ({a.v:2}) and {b} ({b.v:2}) add up to {both:2} {u}, a sum of my own [{a.id}, {b.id}]; of the two {a!} has "
        "{more/less}.",
        needs=("sums",),
    ),
    Phrasing(
        "mean deviation",
        "Averaged over {n} rows the {label} is {mean:1} {u}; {a} lies {above/below} that at {a.v:1} {u} [{a.id}].",
        runner_up="{b} at {b.v:1} {u} [{b.id}]",
    ),
    Phrasing(
        "trails",
        "{b} trails {a} by {gap:2} {u}: {b.v:2} {u} [{b.id}] against {a.v:2} {u} [{a.id}]. {c} is {gapc:2} "
        "{u} away with "
        "{c.v:2} {u} [{c.id}].",
        runner_up="{b} ({gap:2} {u} away)",
        needs=("not percent",),
    ),
    Phrasing(
        "while clause",
        "While {z} ends up with {z.v:1} {u} [{z.id}] and {m} with {m.v:1} {u} [{m.id}], {a} shows {a.v:1} {u} "
        "[{a.id}], the "
        "{maximum/minimum} of the column.",
    ),
    Phrasing(
        "key value",
        "best={a}; {label}={a.v:p2}; unit={u}; {tallies}={a.t}; row=[{a.id}]; compared={n}",
        runner_up="{b}; {label}={b.v:p2}; row=[{b.id}]",
    ),
    Phrasing(
        "calendar year",
        "For calendar year {year} the rows put {a} at {a.v:2} {u} [{a.id}] and {b} at {b.v:2} {u} [{b.id}].",
        runner_up="{b} ({b.v:2} {u} in {year})",
        needs=("year",),
    ),
    Phrasing(
        "month of last entry",
        "{a} was last active in {a.date:my} and has {a.v:2} {u} [{a.id}]; {b} was last active in {b.date:my} and has "
        "{b.v:2} {u} [{b.id}].",
    ),
    Phrasing(
        "dotted dates",
        "Stand {a.date:dot}: {a} {a.v:e2} {u} [{a.id}]. Stand {b.date:dot}: {b} {b.v:e2} {u} [{b.id}].",
        runner_up="{b} (Stand {b.date:dot})",
    ),
    Phrasing(
        "peak",
        "{a} peaked in {top:words} ({top.v:1} {u}) [{top.id}] and was weakest in {low:words} ({low.v:1} {u}) "
        "[{low.id}]; "
        "overall it comes to {a.v:1} {u} [{a.id}].",
        needs=("periods", "sums", "max"),
    ),
    Phrasing(
        "development",
        "The {label} of {a}, {a.v:2} {u} overall [{a.id}], {trend increased/decreased} from {first.v:2} {u} "
        "in {first:of} "
        "[{first.id}] to {last.v:2} {u} in {last:of} [{last.id}], i.e. by {growth:0 percent}.",
        needs=("periods",),
    ),
    Phrasing(
        "per unit",
        "{a} makes {a.per:2} {u} on each {tally}: {a.v:2} {u} divided by {a.t} {tallies} [{a.id}].",
        runner_up="{b} makes {b.per:2} {u} on each {tally} ({b.v:2} {u}, {b.t} {tallies}) [{b.id}]",
        needs=("sums", "not percent"),
    ),
    Phrasing(
        "emphasis",
        "The *{highest/lowest}* {label} is `{a.v:2} {u}` — **{a}** [{a.id}] — followed by `{b.v:2} {u}` — "
        "**{b}** [{b.id}].",
        runner_up="**{b}** (`{b.v:2} {u}`)",
    ),
    Phrasing(
        "times",
        "{a} gets {ratio:times} what {z} gets: {a.v:2} against {z.v:2} {u} [{a.id}, {z.id}].",
        runner_up="{b}, which gets {b.v:2} {u}",
        needs=("times",),
    ),
    Phrasing(
        "word counts",
        "Just {over:w} of {n:w} {nouns} exceed the mean ({mean:1} {u}), {a} by far the most with {a.v:1} {u} [{a.id}].",
        needs=("few", "max"),
    ),
    Phrasing(
        "wide table",
        "\n{noun}\t{label}\t{tallies}\n{a}\t{a.v:p2} {u}\t{a.t}\t[{a.id}]\n{b}\t{b.v:p2} {u}\t{b.t}\t[{b.id}]\n"
        "{d}\t{d.v:p2} {u}\t{d.t}\t[{d.id}]",
    ),
    Phrasing(
        "long-winded",
        "I looked at every one of the {n} {nouns}. Going by {label}, {a} is the one that stands out: its "
        "figure is {a.v:2} "
        "{u} [{a.id}]. By contrast, {m}, which sits in the middle, has {m.v:2} {u} [{m.id}], and the weakest, {z}, has "
        "{z.v:2} {u} [{z.id}]. That is why I settled on {a!}.",
        runner_up="After {a!} comes {b}, at {b.v:2} {u} [{b.id}]",
    ),
)
