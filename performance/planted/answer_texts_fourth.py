"""Twenty ways in which LLMs and people answer a decision question, written by somebody who had not seen the check."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "recommendation",
        "I recommend {a} because it has the {highest/lowest} {label} of the {n} {nouns}, {a.v:2} {u} [{a.id}]. {b} "
        "comes {b.rank:word} with {b.v:2} {u} [{b.id}].",
        runner_up="{b} ({b.v:2} {u})",
    ),
    Phrasing(
        "one line",
        "{Highest/Lowest} {label} in the data: {a.v:0} {u} [{a.id}].",
        runner_up="{b} ({b.v:0} {u}) [{b.id}]",
        needs=("hundreds",),
    ),
    Phrasing(
        "numbered list",
        "The top three {nouns} by {label} are:\n1. {a} – {a.v:2} {u} [{a.id}]\n2. {b} – {b.v:2} {u} [{b.id}]\n"
        "3. {c} – {c.v:2} {u} [{c.id}]\nThe other {beyond} {nouns} all come in {lower/higher}.",
        runner_up="{b} with {b.v:2} {u}",
    ),
    Phrasing(
        "table with gaps",
        "Ranking by {label}:\n\n| Rank | {noun} | {label} ({u}) | vs. first |\n|---|---|---|---|\n"
        "| {a.rank} | {a} | {a.v:2} | – |\n| {b.rank} | {b} | {b.v:2} | {−/+}{gap:2} |\n"
        "| {c.rank} | {c} | {c.v:2} | {−/+}{gapc:2} |\n\n{a} is in first place [{a.id}], followed by {b} [{b.id}] and "
        "{c} [{c.id}].",
        final="**{a}**",
        runner_up="{b} ({b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "money and percent",
        "{a} comes in at {sym}{a.v:2} [{a.id}]. That is {sym}{gap:2} ({lead:1%}) {more/less} than {b} with "
        "{sym}{b.v:2} [{b.id}].",
        runner_up="{b} at {sym}{b.v:2}",
        needs=("symbol",),
    ),
    Phrasing(
        "places of all",
        "On {label}, {a} is {a.rank:word} of {n} with {a.v:2} {U} [{a.id}]. {b} is {b.rank:word} with {b.v:2} {U} "
        "[{b.id}], {c} is {c.rank:word} with {c.v:2} {U} [{c.id}], and {d} is {d.rank:word} of {n} with {d.v:2} {U} "
        "[{d.id}].",
        runner_up="{b}, {b.v:2} {U}",
    ),
    Phrasing(
        "share of all",
        "{a} has the largest {label} with {a.v:0} {u} [{a.id}]. All {n} {nouns} together come to {total:0} {u}, so {a} "
        "alone makes up {a.share:1%} of the total; {b} makes up {b.share:1%} with {b.v:0} {u} [{b.id}].",
        runner_up="{b} ({b.share:1%} of the total)",
        needs=("sums", "hundreds", "max"),
    ),
    Phrasing(
        "about millions",
        "{a} has the {highest/lowest} {label}, at about {a.v:M1} {U} [{a.id}]. The next {nouns} are {b} with about "
        "{b.v:M1} {U} [{b.id}] and {c} with about {c.v:M1} {U} [{c.id}].",
        runner_up="{b} with about {b.v:M1} {U}",
        needs=("big",),
    ),
    Phrasing(
        "short billions",
        "{a} is the <strongest^best> {noun} by {label} at {sym}{a.v:bn2} [{a.id}]<, ahead of^. It beats> {b} at "
        "{sym}{b.v:bn2} [{b.id}]<.^; they rank {a.rank:th} and {b.rank:th} of {n}.>",
        runner_up="{b} at {sym}{b.v:bn2}",
        needs=("symbol", "billion"),
    ),
    Phrasing(
        "thousands",
        "Roughly {sym}{a.v:k1} in {label} for {a} [{a.id}], compared to {sym}{b.v:k1} for {b} [{b.id}] and "
        "{sym}{c.v:k1} for {c} [{c.id}].",
        runner_up="{b} (roughly {sym}{b.v:k1})",
        needs=("symbol", "thousand"),
    ),
    Phrasing(
        "with counts",
        "{a} recorded {a.v:0} {u} across {a.t} {tallies} [{a.id}], the {highest/lowest} {label} among the {nouns}. {b} "
        "is the closest alternative with {b.v:0} {u} across {b.t} {tallies} [{b.id}].",
        runner_up="{b}, {b.v:0} {u} across {b.t} {tallies}",
        needs=("sums", "rates", "hundreds"),
    ),
    Phrasing(
        "for the year",
        "For {year}, the {noun} with the {highest/lowest} {label} is {a}: {a.v:2} {u} [{a.id}]. {b} had {b.v:2} {u} in "
        "the same year [{b.id}], a difference of {gap:2} {u}.",
        runner_up="{b} with {b.v:2} {u} in {year}",
        needs=("year", "not percent"),
    ),
    Phrasing(
        "note on the trend",
        "{a} is ahead with {a.v:2} {u}, compared with {b.v:2} {u} for {b} [{a.id}, {b.id}]. Note that the {label} of "
        "{a} {trend rose/fell} by {growth:1%} between {first:of} ({first.v:2} {u}) and {last:of} ({last.v:2} {u}) "
        "[{first.id}, {last.id}].",
        runner_up="{b} ({b.v:2} {u})",
        needs=("periods",),
    ),
    Phrasing(
        "dated",
        "{a} has the {highest/lowest} {label} at {a.v:2} {u} (row dated {a.date:us}) [{a.id}], and next in the "
        "ranking is {b} at {b.v:2} {u} (row dated {b.date:us}) [{b.id}].",
        runner_up="{b} at {b.v:2} {u}",
    ),
    Phrasing(
        "average of all",
        "The average {noun} comes to {mean:2} {u}. {a} is {above/below} that with {a.v:2} {u}, the {highest/lowest} of "
        "all {n} [{a.id}]. {b} is {b.rank:th} with {b.v:2} {u} [{b.id}].",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "going by one measure",
        "Going by {label} alone, {a} looks like the best choice: it has {a.v:0} {U} [{a.id}], while {b} has {b.v:0} "
        "{U} [{b.id}], which is {short:1%} {less/more}. If other criteria matter to you as well, the choice may be a "
        "different one.",
        runner_up="{b}, {b.v:0} {U}, if {a!} is not an option",
        needs=(
            "not percent",
            "hundreds",
        ),
    ),
    Phrasing(
        "german, short",
        "{a} liegt mit {a.v:e2} {u} an der Spitze [{a.id}]. Dahinter folgt {b} mit {b.v:e2} {u} [{b.id}]. Verglichen "
        "wurden alle {n} Einträge.",
        runner_up="{b} mit {b.v:e2} {u}",
    ),
    Phrasing(
        "german, comparison",
        "Ich empfehle {a} mit {a.v:e0} {u} [{a.id}]. Dieser Wert ist um {lead:c1 %} {höher/niedriger} als der von {b} "
        "mit {b.v:e0} {u} [{b.id}]. Auf Platz {c.rank} steht {c} mit {c.v:e0} {u} [{c.id}].",
        runner_up="{b} ({b.v:e0} {u})",
        needs=(
            "not percent",
            "hundreds",
        ),
    ),
    Phrasing(
        "french",
        "{a} arrive en tête sur {n} avec {a.v:n2} {u} [{a.id}], devant {b} avec {b.v:n2} {u} [{b.id}] et {c} avec "
        "{c.v:n2} {u} [{c.id}].",
        runner_up="{b}, {b.v:n2} {u}",
    ),
    Phrasing(
        "spanish",
        "La mejor opción es {a}, con {a.v:e2} {u} [{a.id}]. En segundo lugar está {b}, con {b.v:e2} {u} [{b.id}]; la "
        "diferencia es de {gap:e2} {u}.",
        runner_up="{b}, con {b.v:e2} {u}",
        needs=("not percent",),
    ),
)
