"""Twenty more ways in which LLMs and people answer, of another build, by somebody who had not seen the check."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "fact sheet",
        "\nBest {noun}: {a}\n{label}: {a.v:2} {u} [{a.id}]\nSecond best: {b} with {b.v:2} {u} [{b.id}]\n"
        "{nouns} compared: {n}",
        runner_up="{b}",
    ),
    Phrasing(
        "chat",
        "it's {a}: {a.v:0} {u} [{a.id}]. {b} is {b.rank:th} at {b.v:0} [{b.id}] and {c} {c.rank:th} at {c.v:0} "
        "[{c.id}], I <checked^went through> all {n}",
        runner_up="{b}, {b.v:0} {u}",
        needs=("hundreds",),
    ),
    Phrasing(
        "part of the first",
        "With {a.v:0} {u}, {a} is ahead of every other {noun} [{a.id}]. {b} gets to {indexb:1%} of that with {b.v:0} "
        "{u} [{b.id}], and {c} to {indexc:1%} with {c.v:0} {u} [{c.id}].",
        runner_up="{b} with {b.v:0} {u}, {short:1%} less",
        needs=("max", "hundreds", "not percent"),
    ),
    Phrasing(
        "three and the others",
        "{a} ({a.v:0} {u}) [{a.id}], {b} ({b.v:0} {u}) [{b.id}] and {c} ({c.v:0} {u}) [{c.id}] are the top three by "
        "{label}. Between them they account for {threeshare:1%} of the overall {total:0} {u}; the other {beyond} "
        "{nouns} add up to {remainder:0} {u}. So {a} takes the top spot.",
        runner_up="{b} with {b.v:0} {u}",
        needs=("sums", "hundreds", "max"),
    ),
    Phrasing(
        "times the last",
        "At {a.v:2} {u} [{a.id}], {a} has {ratio:1} times the {label} of {z}, the {noun} at the bottom of the list "
        "with {z.v:2} {u} [{z.id}]. Second place goes to {b} at {b.v:2} {u} [{b.id}].",
        runner_up="{b} at {b.v:2} {u}",
        needs=("max", "clear last"),
    ),
    Phrasing(
        "one quarter alone",
        "{a} finished {year} with a total of {a.v:0} {u} [{a.id}], the {highest/lowest} {label} of the {nouns}. "
        "Of that, {top.v:0} {u} came in {top:words} alone [{top.id}]. {b} finished the year with {b.v:0} {u} [{b.id}].",
        runner_up="{b} with {b.v:0} {u} for the year",
        needs=("year", "periods", "sums", "hundreds"),
    ),
    Phrasing(
        "over time",
        "Choose {a}, the {noun} with the {highest/lowest} {label} ({a.v:2} {u}) [{a.id}]. The numbers of {a} over time "
        "are {first.v:2} {u} in {first:of} [{first.id}] and {last.v:2} {u} in {last:of} [{last.id}], so the {label} "
        "went {trend up/down} by {growth:0%}.",
        runner_up="{b} – {b.v:2} {u} [{b.id}]",
        needs=("periods",),
    ),
    Phrasing(
        "how many are above",
        "{over} out of {n} {nouns} came in above the average of {mean:0} {u}. The two with the most are {a} with "
        "{a.v:0} {u} [{a.id}] and {b} with {b.v:0} {u} [{b.id}], so {a} is the right choice here.",
        runner_up="{b}: {b.v:0} {u}",
        needs=("max", "hundreds"),
    ),
    Phrasing(
        "rows returned",
        "Based on the {n} rows returned, the {nouns} range from {a.v:2} {u} ({a}) [{a.id}] {down/up} to {z.v:2} {u} "
        "({z}) [{z.id}]. The second {highest/lowest} value is {b.v:2} {u} ({b}) [{b.id}].",
        runner_up="{b} with {b.v:2} {u}",
    ),
    Phrasing(
        "bold bullets",
        "**{a}** has the {highest/lowest} {label}.\n\n- **{label}:** {a.v:2} {u} [{a.id}]\n- **Position:** "
        "{a.rank:#} out of {n} {nouns}\n- **Next:** {b} with {b.v:2} {u} [{b.id}], {gap:2} {u} ({short:1%}) "
        "{less/more}",
        runner_up="**{b}** ({b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "side by side",
        "{a} vs. {b}:\n- {label}: {a.v:0} {u} vs. {b.v:0} {u}\n- {tallies}: {a.t} vs. {b.t}\n"
        "- date: {a.date} vs. {b.date}\nSources: [{a.id}] and [{b.id}]. {a} wins on {label}.",
        runner_up="{b} ({b.v:0} {u})",
        needs=("rates", "hundreds"),
    ),
    Phrasing(
        "code before the figure",
        "{a} shows {u} {a.v:2} in {label} [{a.id}], which puts it in {a.rank:word} place out of {n}. The next places "
        "are taken by {b} with {u} {b.v:2} [{b.id}] and {c} with {u} {c.v:2} [{c.id}].",
        runner_up="{b} with {u} {b.v:2}",
        needs=("symbol",),
    ),
    Phrasing(
        "around",
        "I'd say {a}: around {a.v:~} {U} [{a.id}], which is {lead:1%} {more/less} than what {b} has [{b.id}]. For "
        "comparison, {m} comes {m.rank:th} of {n} with around {m.v:~} {U} [{m.id}].",
        runner_up="{b}, around {b.v:~} {U}",
        needs=("short", "not percent"),
    ),
    Phrasing(
        "short millions",
        "With {a.v:m1} {U} versus {b.v:m1} {U}, {a} is {lead:1%} {above/below} {b} [{a.id}, {b.id}]. The total for "
        "all {n} {nouns} is {total:m1} {U}.",
        final="{a} [{a.id}]",
        runner_up="{b} ({b.v:m1} {U})",
        needs=("big", "sums"),
    ),
    Phrasing(
        "the long way",
        "To answer this, I compared the {label} of every {noun} in the result ({n} rows). {a} comes out first with "
        "{a.v:2} {u} [{a.id}]. This is {restlead:1%} {above/below} the average of the other {others} {nouns}, which is "
        "{rest:2} {u}. {b} ranks {b.rank:word} with {b.v:2} {u} [{b.id}] and {c} ranks {c.rank:word} with {c.v:2} {u} "
        "[{c.id}]. Since the question asks only about {label}, {a} is the answer, with {b!} as the fallback.",
        runner_up="{b}, which has a value of {b.v:2} {u}",
    ),
    Phrasing(
        "table per unit",
        "\n\n| {noun} | {label} ({u}) | {tallies} | {u} per {tally} |\n|:---|---:|---:|---:|\n"
        "| {a} | {a.v:0} | {a.t} | {a.per:2} |\n| {b} | {b.v:0} | {b.t} | {b.per:2} |\n\n"
        "{a} [{a.id}] has a {higher/lower} figure than {b} [{b.id}] for {label}, which is what counts here.",
        runner_up="{b} with {b.v:0} {u}",
        needs=("sums", "rates", "hundreds"),
    ),
    Phrasing(
        "german, recommendation",
        "Empfehlung: {a} mit {a.v:e2} {u}, das ist Platz {a.rank} von {n} [{a.id}]. Auf Platz {b.rank} liegt {b} mit "
        "{b.v:e2} {u} [{b.id}], der Abstand beträgt {gap:e2} {u}.",
        runner_up="{b}, {b.v:e2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "german, sign after",
        "Ich würde {a} nehmen: {a.v:e2} {sym} [{a.id}]. Bei {b} sind es {b.v:e2} {sym} [{b.id}], also {short:c1 %} "
        "{weniger/mehr}. Danach kommt {c} mit {c.v:e2} {sym} [{c.id}].",
        runner_up="{b} mit {b.v:e2} {sym}",
        needs=("symbol",),
    ),
    Phrasing(
        "french, difference",
        "Je recommande {a} : {a.v:n2} {u} [{a.id}], soit {gap:n2} {u} de {plus/moins} que {b} ({b.v:n2} {u}) [{b.id}]. "
        "Les {n} lignes ont été comparées.",
        runner_up="{b} ({b.v:n2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "spanish, places",
        "De los {n} candidatos, {a} tiene el valor más {alto/bajo}: {a.v:e2} {u} [{a.id}]. {b} queda en el puesto "
        "{b.rank} con {b.v:e2} {u} [{b.id}] y {c} en el puesto {c.rank} con {c.v:e2} {u} [{c.id}].",
        runner_up="{b} ({b.v:e2} {u})",
    ),
)
