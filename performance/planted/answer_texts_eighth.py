"""Seventy more ways to answer, by eight other writers who had not read the check."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "step by step",
        "Step 1: I listed the {label} of all {n} {nouns}. Step 2: I looked for the {highest/lowest} figure. Step 3: I "
        "found {a.v:2} {u}, which belongs to {a} [{a.id}]. Step 4: I checked the next one, {b} with {b.v:2} {u} "
        "[{b.id}].",
        runner_up="{b}, the next one, with {b.v:2} {u}",
    ),
    Phrasing(
        "hedged",
        "As far as these rows go, {a} appears to be the right choice: it shows {a.v:2} {u} [{a.id}], and the next "
        "candidate, {b}, shows {b.v:2} {u} [{b.id}]. I cannot say anything about factors other than {label}.",
        runner_up="{b} – {b.v:2} {u}, as far as these rows go",
    ),
    Phrasing(
        "let me compare",
        "Let me compare the front-runners. {a} has {a.v:2} {u} and {b} has {b.v:2} {u}, so {a} is {gap:2} {u} "
        "{higher/lower} [{a.id}][{b.id}]. {c} is further away, at {c.v:2} {u} [{c.id}]. Hence {a}.",
        runner_up="{b}, at {b.v:2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "confidence",
        "Confidence: high. Reason: [{a.id}] gives {a.v:2} {u} for {a}; the second-ranked {noun}, {b}, has {b.v:2} {u} "
        "in [{b.id}]; the third-ranked, {c}, has {c.v:2} {u} in [{c.id}].",
        runner_up="{b} (second-ranked, {b.v:2} {u})",
    ),
    Phrasing(
        "yes because",
        "I choose {a} because, of {n} rows, none has a {larger/smaller} figure than its {a.v:2} {u} [{a.id}]; even "
        "{b}, number {b.rank}, has {b.v:2} {u} [{b.id}].",
        runner_up="{b}, number {b.rank} with {b.v:2} {u}",
    ),
    Phrasing(
        "verified twice",
        "Verified: {a.v:2} {u} − {b.v:2} {u} {is positive/is negative}, so {a} [{a.id}] outranks {b} [{b.id}]. The "
        "same holds for every other row, down to rank {n}.",
        runner_up="{b} ({b.v:2} {u})",
    ),
    Phrasing(
        "note on rounding",
        "{a} has the {highest/lowest} figure in the column, about {a.v:~} {u} (with decimals {a.v:2}) [{a.id}]. {b} "
        "has about {b.v:~} {u} (with decimals {b.v:2}) [{b.id}].",
        runner_up="{b}, with decimals {b.v:2} {u}",
    ),
    Phrasing(
        "to summarise",
        "To summarise: {n} {nouns} were available; {a} is the one to select, with {a.v:2} {u} [{a.id}]. It is "
        "{lead:1}% {above/below} the runner-up {b} [{b.id}] and {leadc:1}% {above/below} {c}, which is number "
        "{c.rank} [{c.id}].",
        runner_up="{b} with {b.v:2} {u} [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "memo",
        "Upon examination of {n} entries it was established that the {highest/lowest} figure for {label} is "
        "attributable to {a}, in the amount of {a.v:2} {u} [{a.id}]. The second entry in order of merit is {b}, in "
        "the amount of {b.v:2} {u} [{b.id}].",
        runner_up="{b}, in the amount of {b.v:2} {u}",
    ),
    Phrasing(
        "it is proposed",
        "It is proposed that {a} be selected. The decisive figure is {a.v:2} {u} [{a.id}]. {b} ({b.v:2} {u}) [{b.id}] "
        "is to be placed on the reserve list in position {b.rank}, {c} ({c.v:2} {u}) [{c.id}] in position {c.rank}.",
        final="{a} (position {a.rank})",
        runner_up="{b}, position {b.rank}, {b.v:2} {u}",
    ),
    Phrasing(
        "paragraph signs",
        "(1) Subject: {label} of {nouns}, {n} in number. (2) Finding: {a}, {a.v:2} {u} [{a.id}]. (3) Reserve: {b}, "
        "{b.v:2} {u} [{b.id}]. (4) Difference between (2) and (3): {gap:2} {u}.",
        runner_up="{b} according to (3), {b.v:2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "not exceeded",
        "The value of {a.v:2} {u} noted for {a} [{a.id}] is not {exceeded/undercut} by any of the other {others} "
        "{nouns}; that of {b}, {b.v:2} {u} [{b.id}], is {exceeded/undercut} by {a} alone.",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "annex",
        "Annex, extract of {n} lines: line {a.rank} – {a}, {a.v:1} {u}; line {b.rank} – {b}, {b.v:1} {u}; line "
        "{c.rank} – {c}, {c.v:1} {u}; line {d.rank} – {d}, {d.v:1} {u} [{a.id}, {b.id}, {c.id}, {d.id}].",
        runner_up="{b}, {b.v:1} {u} (line {b.rank})",
    ),
    Phrasing(
        "expiry",
        "The record of {a}, bearing the date {a.date:dot}, states {a.v:2} {u} [{a.id}]. The record of {b}, bearing "
        "the date {b.date:dot}, states {b.v:2} {u} [{b.id}]. Accordingly, {a} has precedence over {b}.",
        runner_up="{b} (record bearing the date {b.date:dot})",
    ),
    Phrasing(
        "in words, formal",
        "Of the {n:w} {nouns} examined, {beaten:w} are placed behind both {a} ({a.v:2} {u}) [{a.id}] and {b} ({b.v:2} "
        "{u}) [{b.id}]; of these two, {a} has the {higher/lower} {label}.",
        runner_up="{b} ({b.v:2} {u})",
        needs=("few",),
    ),
    Phrasing(
        "according to",
        "According to [{a.id}], {a.v:2} {u} fall to {a}; according to [{b.id}], {b.v:2} {u} fall to {b}; according to "
        "[{z.id}], {z.v:2} {u} fall to {z}, which is placed last of {n}.",
        runner_up="{b}: {b.v:2} {u}",
        needs=("clear last",),
    ),
    Phrasing(
        "chat",
        "hey, it's {a} :) {a.v:0} {u} [{a.id}], {b} only gets second with {b.v:0} {u} [{b.id}]",
        runner_up="{b}, {b.v:0} {u}",
        needs=("hundreds",),
    ),
    Phrasing(
        "tl;dr",
        "tl;dr {a} wins, {gap:2} {u} between it and {b} ({a.v:2} vs {b.v:2}, see [{a.id}] and [{b.id}])",
        runner_up="{b}",
        needs=("not percent",),
    ),
    Phrasing(
        "quick one",
        "Quick one: {label} → {a} {a.v:2} {u} [{a.id}] 🥇, {b} {b.v:2} {u} [{b.id}] 🥈, {c} {c.v:2} {u} [{c.id}] 🥉",
        runner_up="{b} 🥈 {b.v:2} {u}",
    ),
    Phrasing(
        "from the end",
        "So I went through the {n}. {z} is dead last ({z.v:2} {u}) [{z.id}], {m} is {m.rank:th} ({m.v:2} {u}) "
        "[{m.id}], {b} is {b.rank:th} ({b.v:2} {u}) [{b.id}] and {a} is {a.rank:th} ({a.v:2} {u}) [{a.id}].",
        runner_up="{b}, {b.rank:th}",
        needs=("clear last",),
    ),
    Phrasing(
        "asked and said",
        "You asked for the {noun} with the {most/least} {label}. That'd be {a}: {a.v:k1} {u} [{a.id}]. Plan B is {b}: "
        "{b.v:k1} {u} [{b.id}].",
        runner_up="{b} (plan B): {b.v:k1} {u}",
        needs=("thousands",),
    ),
    Phrasing(
        "half sentence",
        "{a}, no. {a.rank} out of {n}, {a.v:1} {u} [{a.id}] ... then {b}, {b.v:1} {u} [{b.id}] ... then {c}, {c.v:1} "
        "{u} [{c.id}]",
        runner_up="{b}, {b.v:1} {u}",
    ),
    Phrasing(
        "share of everything",
        "{a} makes up {a.share:near} of everything here [{a.id}], next is {b} with {b.share:near} [{b.id}]. In {u}: "
        "{a.v:2} and {b.v:2}.",
        runner_up="{b}, {b.share:near}",
        needs=("sums", "not percent", "max"),
    ),
    Phrasing(
        "imho",
        "imho {a}. Its {a.v:2} {u} [{a.id}] {tops/undercuts} the {b.v:2} {u} of {b} [{b.id}] by {lead:1}%, and the "
        "average {noun} sits at {mean:2} {u}.",
        runner_up="{b} ({b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "json",
        '\n```json\n[\n  [{a.rank}, "{a}", {a.v:p2}, "{u}"],\n  [{b.rank}, "{b}", {b.v:p2}, "{u}"],\n  '
        '[{c.rank}, "{c}", {c.v:p2}, "{u}"]\n]\n```\nSources: [{a.id}], [{b.id}], [{c.id}]',
        runner_up="{b}, {b.v:p2} {u}",
    ),
    Phrasing(
        "csv",
        "\nrank;{noun};{label} in {u};source\n{a.rank};{a};{a.v:p2};[{a.id}]\n{b.rank};{b};{b.v:p2};[{b.id}]\n"
        "{c.rank};{c};{c.v:p2};[{c.id}]",
        runner_up="{b};{b.v:p2} {u}",
    ),
    Phrasing(
        "yaml",
        "\nchoice: {a}\nmetric: {label}\nvalue: {a.v:2}\nunit: {u}\ncompared: {n}\nevidence: [{a.id}]\nalternative:\n "
        " name: {b}\n  value: {b.v:2}\n  evidence: [{b.id}]",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "scorecard",
        "Scorecard ({label}, {U}):\n{a} .......... {a.v:2} [{a.id}]\n{b} .......... {b.v:2} [{b.id}]\n{c} .......... "
        "{c.v:2} [{c.id}]\naverage of {n} .......... {mean:2}",
        runner_up="{b} .......... {b.v:2} {U}",
    ),
    Phrasing(
        "two-column table",
        "\n| Criterion | {a} | {b} |\n|---|---|---|\n| {label} ({u}) | {a.v:2} | {b.v:2} |\n| {tallies} | {a.t} | "
        "{b.t} |\n| Row | [{a.id}] | [{b.id}] |",
        runner_up="{b}",
        needs=("rates",),
    ),
    Phrasing(
        "table with gap",
        "\n| {noun} | {u} | behind the winner |\n|:--|--:|--:|\n| {a} [{a.id}] | {a.v:2} | – |\n| {b} [{b.id}] | "
        "{b.v:2} | {gap:2} |\n| {c} [{c.id}] | {c.v:2} | {gapc:2} |",
        final="**{a}**",
        runner_up="{b}, {gap:2} {u} behind the winner",
        needs=("not percent",),
    ),
    Phrasing(
        "table of shares",
        "\n| | {label} | share |\n|---|---|---|\n| {a} | {a.v:0} {u} | {a.share:1%} |\n| {b} | {b.v:0} {u} | "
        "{b.share:1%} |\n| all {n} | {total:0} {u} | 100% |\n\nRows [{a.id}] and [{b.id}].",
        runner_up="{b}, {b.share:1%} of the total",
        needs=("sums", "hundreds", "not percent", "max"),
    ),
    Phrasing(
        "pros and cons",
        "\n**Pro {a}**\n* {highest/lowest} {label}: {a.v:2} {u} [{a.id}]\n* {lead:1}% {above/below} the second\n\n"
        "**Pro {b}**\n* second-{highest/lowest} {label}: {b.v:2} {u} [{b.id}]",
        runner_up="{b} ({b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "italian",
        "The {noun} {a} results first in the classification with {a.v:e2} {u} [{a.id}], after comes {b} with {b.v:e2} "
        "{u} [{b.id}]; the others {beaten} {nouns} are all {under/over} this last value.",
        runner_up="{b} with {b.v:e2} {u}",
    ),
    Phrasing(
        "chinese",
        "We have {n} {nouns}. {a} {label} is {a.v:2} {u}, this is the {most high/most low} [{a.id}]. {b} {label} is "
        "{b.v:2} {u}, is number {b.rank:w} [{b.id}]. So choose {a} is better.",
        runner_up="{b}, {label} is {b.v:2} {u}",
    ),
    Phrasing(
        "turkish",
        "According to the table the first one is being {a}, it has {a.v:c2} {u} [{a.id}]. From {b} it is {more/less} "
        "with {gap:c2} {u}, because {b} has {b.v:c2} {u} [{b.id}].",
        runner_up="{b}, it has {b.v:c2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "swiss",
        "For the {label} I find {a} on rank {a.rank} with {a.v:'2} {u} [{a.id}] and {b} on rank {b.rank} with "
        "{b.v:'2} {u} [{b.id}]. Rank {c.rank} goes to {c} with {c.v:'2} {u} [{c.id}].",
        runner_up="{b} on rank {b.rank} with {b.v:'2} {u}",
    ),
    Phrasing(
        "portuguese",
        "Who is in front is {a}, that presents {a.v:e0} {u} [{a.id}]. {b} presents {b.v:e0} {u} [{b.id}], what is "
        "{short:c1}% {less/more} than {a}.",
        runner_up="{b}, that presents {b.v:e0} {u}",
        needs=("hundreds", "not percent"),
    ),
    Phrasing(
        "czech",
        "I recommend {a}, since there is {label} {a.v:s1} {u} [{a.id}]. At {b} there is {b.v:s1} {u} [{b.id}], at {c} "
        "{c.v:s1} {u} [{c.id}]. All other {nouns} have {less/more}.",
        runner_up="{b}, there is {b.v:s1} {u}",
    ),
    Phrasing(
        "arabic",
        "Thanks for your question. The {noun} {a}, he is the {a.rank:word} one from {n}, his {label} reach {a.v:2} "
        "{u} [{a.id}]. The {noun} {b}, he is the {b.rank:word} one, with {b.v:2} {u} [{b.id}].",
        runner_up="{b}, with {b.v:2} {u}",
    ),
    Phrasing(
        "korean",
        "Result is like below. 1) {a} : {a.v:2} {u} [{a.id}] 2) {b} : {b.v:2} {u} [{b.id}]. Difference of two {nouns} "
        "is {gap:2} {u}. Please refer it.",
        runner_up="2) {b} : {b.v:2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "why not b",
        "Why not {b}? Because its {b.v:2} {u} [{b.id}] are {less/more} than the {a.v:2} {u} of {a} [{a.id}]. Why not "
        "{c}? Because {c.v:2} {u} [{c.id}] would only be good for rank {c.rank}.",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "one might think",
        "One might be tempted by {b} with its {b.v:2} {u} [{b.id}], yet {a} is {further up/lower still}: {a.v:2} {u} "
        "[{a.id}]. Neither {c} ({c.v:2} {u}) [{c.id}] nor {d} ({d.v:2} {u}) [{d.id}] gets past these two.",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "more tallies is not",
        "The number of {tallies} is beside the point ({a.t} for {a}, {b.t} for {b}); what was asked is {label}, and "
        "there {a} has {a.v:2} {u} [{a.id}] and {b} has {b.v:2} {u} [{b.id}].",
        runner_up="{b}, {b.v:2} {u}",
        needs=("rates",),
    ),
    Phrasing(
        "unless",
        "Unless the figures are wrong, nobody overtakes {a}: it would take {more/less} than {a.v:2} {u} [{a.id}], and "
        "what {b} offers is {b.v:2} {u} [{b.id}].",
        runner_up="{b}: {b.v:2} {u}",
    ),
    Phrasing(
        "field without winner",
        "Taken together, the {beyond} {nouns} outside the top three show {remainder:0} {u}; {a} alone shows {a.v:0} "
        "{u} [{a.id}], {b} {b.v:0} {u} [{b.id}].",
        runner_up="{b} alone shows {b.v:0} {u}",
        needs=("sums", "hundreds", "not percent"),
    ),
    Phrasing(
        "above average",
        "Above the average of {mean:2} {u} there are {over:w} of the {n} {nouns}. That does not decide anything; "
        "being {highest/lowest} does, and that is {a} with {a.v:2} {u} [{a.id}]. Second: {b}, {b.v:2} {u} [{b.id}].",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "not the latest",
        "Do not be misled by dates (the row of {a} says {a.date}, that of {b} says {b.date}). By {label} it is {a} "
        "first, {a.v:2} {u} [{a.id}], and {b} second, {b.v:2} {u} [{b.id}].",
        runner_up="{b} second, {b.v:2} {u}",
    ),
    Phrasing(
        "gap to the last",
        "From {a} to {z} it is {n} {nouns}, {gapz:2} {u} from the first value ({a.v:2}) to the last ({z.v:2}) "
        "[{a.id}] [{z.id}].",
        runner_up="{b} ({b.v:2} {u}) [{b.id}]",
        needs=("clear last", "not percent"),
    ),
    Phrasing(
        "delta",
        "{a}: {a.v:2} {u} [{a.id}]; {b}: {b.v:2} {u} [{b.id}]; Δ = {gap:2} {u} ({lead:2} % of the figure of {b}).",
        runner_up="{b}; Δ = {gap:2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "argmax",
        "{argmax/argmin}({label}) = {a}; {max/min} = {a.v:2} {u} [{a.id}]; next = {b.v:2} {u} @ {b} [{b.id}]; n = {n}.",
        runner_up="{b} @ {b.v:2} {u}",
    ),
    Phrasing(
        "approximately equal sign",
        "{label}({a}) ≈ {a.v:~} {u} [{a.id}], {label}({b}) ≈ {b.v:~} {u} [{b.id}], {label}({c}) ≈ {c.v:~} {u} "
        "[{c.id}].",
        runner_up="{b} ≈ {b.v:~} {u}",
    ),
    Phrasing(
        "normalised",
        "Normalised to {a} (1.00 ≙ {a.v:2} {u} [{a.id}]): {b} {indexb:1} % [{b.id}], {c} {indexc:1} % [{c.id}], {z} "
        "{indexz:1} % [{z.id}]. No {noun} is {above/below} 100 %.",
        final="`{a}`",
        runner_up="{b}, {indexb:1} %",
        needs=("not percent", "clear last"),
    ),
    Phrasing(
        "in mega",
        "Reading off the {label} column: {a} {a.v:m2} {u} [{a.id}], {b} {b.v:m2} {u} [{b.id}], {c} {c.v:m2} {u} "
        "[{c.id}].",
        runner_up="{b}, {b.v:m2} {u}",
        needs=("big",),
    ),
    Phrasing(
        "in kilo",
        "Reading off the {label} column: {a} = {a.v:tsd1} {u} [{a.id}], {b} = {b.v:tsd1} {u} [{b.id}] (K = thousand).",
        runner_up="{b} = {b.v:tsd1} {u}",
        needs=("thousand",),
    ),
    Phrasing(
        "factor to third",
        "Factor between {a} and {c}: {ratioc:2}. Values: {a.v:2} {u} and {c.v:2} {u} [{a.id}, {c.id}]. In between: "
        "{b}, {b.v:2} {u} [{b.id}].",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "rate",
        "Rate check: {a} {a.v:1} {u} / {a.t} {tallies} = {a.per:2} {u} per {tally} [{a.id}]; {b} {b.v:1} {u} / {b.t} "
        "{tallies} = {b.per:2} {u} per {tally} [{b.id}]. The ranking itself uses {label}, where {a} is {a.rank:no}.",
        runner_up="{b}, {b.rank:no} with {b.v:1} {u}",
        needs=("sums", "rates", "not percent"),
    ),
    Phrasing(
        "period in question",
        "For {year}, the board is asked to note: {a}, {a.v:2} {u} [{a.id}]; {b}, {b.v:2} {u} [{b.id}]; {c}, {c.v:2} "
        "{u} [{c.id}]. The order given is that of {label}.",
        runner_up="{b}, {b.v:2} {u} for {year}",
        needs=("year",),
    ),
    Phrasing(
        "best and latest",
        "{a} leads the {nouns} with {a.v:1} {u} [{a.id}]. Its latest figure on record is {last.v:1} {u} ({last:of}) "
        "[{last.id}], its highest {top.v:1} {u} ({top:of}) [{top.id}].",
        runner_up="{b} with {b.v:1} {u}",
        needs=("periods",),
    ),
    Phrasing(
        "opening and closing",
        "{a} opened with {first.v:2} {u} in {first:words} [{first.id}] and closed with {last.v:2} {u} in {last:words} "
        "[{last.id}], a {trend gain/loss} of {growth:1}%. Its overall row reads {a.v:2} {u} [{a.id}].",
        runner_up="{b}, whose overall row reads {b.v:2} {u}",
        needs=("periods", "not percent"),
    ),
    Phrasing(
        "weakest period",
        "The lowest period of {a} was {low:of} at {low.v:2} {u} [{low.id}]. Overall it has {a.v:2} {u} [{a.id}], "
        "against {b.v:2} {u} for {b} [{b.id}].",
        runner_up="{b}, overall {b.v:2} {u}",
        needs=("periods",),
    ),
    Phrasing(
        "million, combined",
        "Jointly, {a} and {b} come to {both:M1} {u}: {a} {a.v:M1} [{a.id}], {b} {b.v:M1} [{b.id}].",
        runner_up="{b}, {b.v:M1} {u}",
        needs=("big", "sums", "not percent"),
    ),
    Phrasing(
        "billion, board",
        "{a}'s {label} runs to {sym}{a.v:B2} [{a.id}] and {b}'s to {sym}{b.v:B2} [{b.id}].",
        runner_up="{b}, {sym}{b.v:B2}",
        needs=("billion", "symbol"),
    ),
    Phrasing(
        "symbol only",
        "At {sym}{a.v:0} {a} heads the list of {nouns} [{a.id}]. It is followed by {b} at {sym}{b.v:0} [{b.id}] and "
        "{c} at {sym}{c.v:0} [{c.id}].",
        runner_up="{b} at {sym}{b.v:0}",
        needs=("symbol", "hundreds"),
    ),
    Phrasing(
        "top two share",
        "Together, {a} [{a.id}] and {b} [{b.id}] have {twoshare:near} of all {label}; with {c} [{c.id}] it is "
        "{threeshare:near}. {a} on its own: {a.v:2} {u}.",
        runner_up="{b}, on its own {b.v:2} {u}",
        needs=("sums", "not percent", "max"),
    ),
    Phrasing(
        "quarter by code",
        "Trend of {a}, {first} → {last}: {first.v:2} → {last.v:2} {u}, {trend rising/falling} [{first.id}, "
        "{last.id}]. Position among {n} {nouns} in {year}: {a.rank:#} with {a.v:2} {u} [{a.id}].",
        runner_up="{b.rank:#} {b}, {b.v:2} {u}",
        needs=("year", "periods"),
    ),
    Phrasing(
        "dated and dated",
        "Data as dated in the rows: {a} on {a.date:slash}, {a.v:2} {u} [{a.id}]; {b} on {b.date:slash}, {b.v:2} {u} "
        "[{b.id}]; {c} on {c.date:slash}, {c.v:2} {u} [{c.id}].",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "deutsch, vermerk",
        "Vorgeschlagen wird {a}. Der Wert von {a.v:e2} {u} [{a.id}] liegt um {lead:c1} % {über/unter} dem von {b} "
        "({b.v:e2} {u}) [{b.id}]; auf Platz {c.rank} steht {c} mit {c.v:e2} {u} [{c.id}].",
        runner_up="{b} ({b.v:e2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "español",
        "Gana {a}: {a.v:e2} {u} [{a.id}], el valor más {alto/bajo} entre {n}. El segundo es {b}, con {b.v:e2} {u} "
        "[{b.id}], a {gap:e2} {u} de distancia.",
        runner_up="{b}, con {b.v:e2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "places only",
        "By {label}, {a} takes {a.rank:word} place, {b} {b.rank:word}, {c} {c.rank:word} and {d} {d.rank:word} "
        "[{a.id}, {b.id}, {c.id}, {d.id}]; {a.v:2} {u} is the figure of {a}.",
        runner_up="{b}, {b.rank:word} with {b.v:2} {u}",
    ),
    Phrasing(
        "periods listed",
        "Of {a} there are {periods:w} periods in the breakdown, the highest being {top:of} with {top.v:2} {u} "
        "[{top.id}]. In the comparison of all {n} {nouns} it comes to {a.v:2} {u} [{a.id}] and thereby to "
        "{a.rank:word} place.",
        runner_up="{b}, in {b.rank:word} place with {b.v:2} {u} [{b.id}]",
        needs=("periods",),
    ),
)
