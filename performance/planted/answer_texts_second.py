"""Sixteen more ways to write an answer, by somebody who had not seen the check, nor what it had been measured with."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "email",
        "Hi all,\n\nquick summary before the <call^meeting>: on {label}, {a} comes out <first^on top> with {a.v:2} {u} "
        "[{a.id}]. {b} follows at {b.v:2} {u} [{b.id}], i.e. {gap:2} {u} {less/more}, and {c} is third ({c.v:2} {u}, "
        "[{c.id}]). I went through all {n} {nouns}; the last date on file for {a!} is {a.date:long}.\n\nBest,\nMarta",
        needs=("not percent",),
    ),
    Phrasing(
        "slide",
        "\n• **{a} leads** the field of {n} {nouns}: {a.v:2} {u} [{a.id}]\n• {b.rank:#} {b}: {b.v:2} {u} [{b.id}] → "
        "gap of {gap:2} {u} ({short:1%} of the leader's figure)\n• {c.rank:#} {c}: {c.v:2} {u} [{c.id}]\n• "
        "Implication: <go^proceed> with {a!}",
        runner_up="{b} ({b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "chat with emoji",
        "🏆 {a} it is! {a.v:2} {u} [{a.id}] 🎉 Then 🥈 {b} ({b.v:2} {u}) [{b.id}] and 🥉 {c} ({c.v:2} {u}) [{c.id}]. "
        "Checked all {n} {nouns} 👀 – {z} is at the very bottom with {z.v:2} {u} [{z.id}] 😬",
        runner_up="{b}, {b.v:2} {u} 🥈",
        needs=("clear last",),
    ),
    Phrasing(
        "french, german or spanish",
        "<Sur les {n} candidats, {a} arrive en tête avec {a.v:s2} {u} [{a.id}], devant {b} ({b.v:s2} {u}) [{b.id}] ; "
        "l'écart est de {gap:s2} {u}, soit {lead:c1 %} de la valeur de {b!}, et {c} n'est que troisième avec "
        "{c.v:s2} {u} [{c.id}].^"
        "Von den {n} Kandidaten liegt {a} mit {a.v:e2} {u} [{a.id}] vorn; dahinter kommt {b} mit {b.v:e2} {u} "
        "[{b.id}]. Der Abstand beträgt {gap:e2} {u} ({lead:c1 %} des Werts von {b!}), an dritter Stelle steht {c} mit "
        "{c.v:e2} {u} [{c.id}].^"
        "De los {n} candidatos, {a} queda en primer lugar con {a.v:e2} {u} [{a.id}]; le sigue {b} con {b.v:e2} {u} "
        "[{b.id}], es decir, {gap:e2} {u} {menos/más} ({short:c1 %} del valor de {a!}), y en tercera posición está {c} "
        "con {c.v:e2} {u} [{c.id}].>",
        runner_up="{b}",
        needs=("not percent",),
    ),
    Phrasing(
        "numbered argument",
        "\n1) We want the {noun} with the {most/least} {label}, and there are {n} {nouns} to choose from.\n2) {a} has "
        "{a.v:2} {u} [{a.id}]; its best period was {top} with {top.v:2} {u} [{top.id}].\n3) The nearest rival, {b}, "
        "has {b.v:2} {u} [{b.id}].\n4) {a.v:2} is {more/less} than {b.v:2}; hence {a!}.",
        needs=("periods", "sums", "max"),
    ),
    Phrasing(
        "parentheses",
        "{a} ({a.v:2} {u}; see [{a.id}]) is ahead of {b} ({b.v:2} {u}; see [{b.id}]) and (by a wider margin) of {c} "
        "({c.v:2} {u}; see [{c.id}]), which (out of {n} {nouns}) makes {a!} the one to pick; the distance to {b!} is "
        "{gap:2} {u} (or {lead:1%} of {b!}'s own figure).",
        runner_up="{b} (with {b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "approximations",
        "{a} comes to roughly {a.v:K1} {u} [{a.id}], {b} to somewhere {b.v:range} {u} [{b.id}]; the distance is "
        "{gap:~} {u} or so. {a!} accounts for {a.share:near} of what all {n} {nouns} have together.",
        runner_up="{b}, around {b.v:k0} {u}",
        needs=("thousand", "sums"),
    ),
    Phrasing(
        "elimination",
        "All {others} alternatives drop out. {c} does because its {c.v:2} {u} [{c.id}] is already {lower/higher} than "
        "what {b!} has; {b} does because its {b.v:2} {u} [{b.id}] is in turn {lower/higher} than {a.v:2} {u} [{a.id}]; "
        "the remaining {beyond} {nouns} are no better than {c!}. That leaves {a}.",
    ),
    Phrasing(
        "index",
        "Index ({a} = 100): {b} {indexb:1}, {c} {indexc:1}, {z} {indexz:1}. In absolute terms: {a} {a.v:2} {u} "
        "[{a.id}], {b} {b.v:2} {u} [{b.id}], {c} {c.v:2} {u} [{c.id}], {z} {z.v:2} {u} [{z.id}].",
        runner_up="{b} (index {indexb:1})",
    ),
    Phrasing(
        "rates",
        "{a}: {a.v:2} {u} over {a.t} {tallies}, or {a.per:2} {u} per {tally} [{a.id}]. {b}: {b.v:2} {u} over {b.t} "
        "{tallies}, or {b.per:2} {u} per {tally} [{b.id}]. The question asks for the total, not the rate, so {a} it "
        "is.",
        needs=("rates", "sums", "not percent"),
    ),
    Phrasing(
        "one long sentence",
        "Although {b}, whose {label} is {b.v:2} {u} [{b.id}] and which, with its {b.t} {tallies}, would look like a "
        "sound choice to anyone who had not seen the whole list, is hard to beat, {a}, which has {a.v:2} {u} [{a.id}] "
        "and {a.t} {tallies}, is, as long as {label} is what matters, the one of the two with the {higher/lower} "
        "figure.",
        runner_up="{b}, for the reasons above",
    ),
    Phrasing(
        "average of the rest",
        "The other {others} {nouns} have a simple average of {rest:2} {u}; {a} has {a.v:2} {u} [{a.id}], which is "
        "{restlead:0%} {above/below} that. Next comes {b} with {b.v:2} {u} [{b.id}]. (Number of {nouns} above the "
        "overall mean of {mean:2} {u}: {over} of {n}.)",
        needs=("not percent",),
    ),
    Phrasing(
        "cumulative shares",
        "Cumulative share of the {total:2} {u} in total: {a} {a.share:1%}; {a!} + {b} {twoshare:1%}; {a!} + {b!} + {c} "
        "{threeshare:1%}. The amounts behind it are {a.v:2} {u} [{a.id}], {b.v:2} {u} [{b.id}] and {c.v:2} {u} "
        "[{c.id}].",
        runner_up="{b} ({b.share:1%} of the total)",
        needs=("sums", "max"),
    ),
    Phrasing(
        "passive",
        "For {year}, the {highest/lowest} {label} was <recorded^reported> for {a} ({a.v:2} {u}, [{a.id}]). The second "
        "place was taken by {b}, for which {b.v:2} {u} was found [{b.id}]; {z} was placed last with {z.v:2} {u} "
        "[{z.id}]. All {n} {nouns} were taken into account.",
        runner_up="{b} was placed {b.rank:word}",
        needs=("year", "clear last"),
    ),
    Phrasing(
        "runner-up first",
        "{b} is a strong contender: {b.v:2} {u} [{b.id}] puts it in front of {beaten} of the {n} {nouns}. What keeps "
        "it from the top is {a}, whose {a.v:2} {u} [{a.id}] is {gap:2} {u} ({lead:1%}) {higher/lower}. Behind these "
        "two, {c} has {c.v:2} {u} [{c.id}].",
        runner_up="{b}, {gap:2} {u} behind",
        needs=("not percent",),
    ),
    Phrasing(
        "table with a total",
        "\n\n| {noun} | {tallies} | {label} ({u}) |\n|---|---:|---:|\n| {a} [{a.id}] | {a.t} | {a.v:2} |\n| {b} "
        "[{b.id}] | {b.t} | {b.v:2} |\n| {c} [{c.id}] | {c.t} | {c.v:2} |\n| other {beyond} {nouns} | – | "
        "{remainder:2} |\n| **Total** | – | **{total:2}** |\n",
        runner_up="{b}",
        needs=("sums",),
    ),
)
