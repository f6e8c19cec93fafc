"""Seventy more ways to answer, nearly all with the rows in square brackets, by one who had not seen the check."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    # Plain prose.
    Phrasing(
        "margin left",
        "{a} has the {highest/lowest} {label} of all {n} {nouns} at {a.v:2} {u} [{a.id}]. {b} has the "
        "next-{highest/lowest} at {b.v:2} {u} [{b.id}], which leaves a margin of {gap:2} {u}.",
        runner_up="{b} ({b.v:2} {u} [{b.id}])",
        needs=("not percent",),
    ),
    Phrasing(
        "cited after the name",
        "{a} [{a.id}] shows {a.v:2} {u}, compared with {b.v:2} {u} for {b} [{b.id}] and {c.v:2} {u} for {c} "
        "[{c.id}]. None of the other {beyond} {nouns} gets {above/below} {c!}.",
        runner_up="{b} [{b.id}] – {b.v:2} {u}",
    ),
    Phrasing(
        "grouped at the end",
        "{a} records {a.v:2} {U} while {b} records {b.v:2} {U}, making {a!} the {noun} with the {highest/lowest} "
        "{label} in the result [{a.id}, {b.id}].",
        runner_up="{b}, which records {b.v:2} {U} [{b.id}]",
    ),
    Phrasing(
        "sources on their own line",
        "With {a.v:0} {u}, {a} ranks {a.rank:word} on {label}; {b} ({b.v:0} {u}) and {c} ({c.v:0} {u}) rank "
        "{b.rank:word} and {c.rank:word}.\nSources: [{a.id}], [{b.id}], [{c.id}]",
        runner_up="{b} – {b.v:0} {u}",
        needs=("hundreds",),
    ),
    Phrasing(
        "what the question asks",
        "The question asks for the {highest/lowest} {label}, and among the {n} {nouns} returned by the query that is "
        "{a} with {a.v:2} {U} [{a.id}].",
        runner_up="{b} with {b.v:2} {U} [{b.id}]",
    ),
    Phrasing(
        "six careful sentences",
        "I compared the {label} of all {n} {nouns}. The {highest/lowest} value belongs to {a}: {a.v:2} {u} [{a.id}]. "
        "The second-{highest/lowest} belongs to {b}: {b.v:2} {u} [{b.id}]. That is a difference of {gap:2} {u}, or "
        "{lead:1}% relative to {b!}. {c} is third with {c.v:2} {u} [{c.id}]. Nothing in the rows suggests a reason to "
        "choose differently.",
        runner_up="{b}, because it has the second-{highest/lowest} {label} ({b.v:2} {u}) [{b.id}].",
        needs=("not percent",),
    ),
    Phrasing(
        "rounded first",
        "{a} comes to roughly {a.v:~} {u} ({a.v:2} {u} before rounding further) [{a.id}]; {b} is the closest "
        "alternative with roughly {b.v:~} {u} ({b.v:2} {u}) [{b.id}].",
        runner_up="{b}, roughly {b.v:~} {u} [{b.id}]",
    ),
    Phrasing(
        "back to back brackets",
        "On {label}, {a} is ahead of {b} and {c}: {a.v:2} {u} versus {b.v:2} {u} and {c.v:2} {u} respectively "
        "[{a.id}][{b.id}][{c.id}].",
        runner_up="{b} ({b.v:2} {u})",
    ),
    Phrasing(
        "one row only",
        "{a.v:2} {u} [{a.id}] – {more/less} than any other {noun} in the table.",
        runner_up="{b}",
    ),
    Phrasing(
        "brackets in parentheses",
        "{a}'s {label} is {a.v:2} {U} ([{a.id}]), which puts it in {a.rank:word} place out of {n}. {b}'s is {b.v:2} "
        "{U} ([{b.id}]), which puts it in {b.rank:word}.",
        runner_up="{b}, {b.rank:word} place, {b.v:2} {U} ([{b.id}])",
    ),
    Phrasing(
        "row says",
        "Row [{a.id}] gives {a} {a.v:2} {u}. Row [{b.id}] gives {b} {b.v:2} {u}. Since {a.v:2} is {greater/smaller} "
        "than {b.v:2}, and every other row is {lower/higher} still, {a!} is the answer.",
        runner_up="{b} (row [{b.id}])",
    ),
    Phrasing(
        "no tie",
        "There is no tie at the top. {a} stands alone in first place with {a.v:2} {U} [{a.id}], followed by {b} with "
        "{b.v:2} {U} [{b.id}], {c} with {c.v:2} {U} [{c.id}] and {d} with {d.v:2} {U} [{d.id}].",
        runner_up="{b} follows with {b.v:2} {U} [{b.id}]",
    ),
    # Lists, tables and fields.
    Phrasing(
        "numbered to four",
        "Ranking by {label} ({u}):\n1. {a} – {a.v:2} [{a.id}]\n2. {b} – {b.v:2} [{b.id}]\n3. {c} – {c.v:2} "
        "[{c.id}]\n4. {d} – {d.v:2} [{d.id}]",
        final="**{a}**",
        runner_up="**{b}** – {b.v:2} {u} [{b.id}]",
    ),
    Phrasing(
        "table with distances",
        "Top of the ranking:\n\n| # | {noun} | {label} ({u}) | distance to first ({u}) | row |\n|---|---|---|---|---|"
        "\n| {a.rank} | **{a}** | **{a.v:2}** | – | [{a.id}] |\n| {b.rank} | {b} | {b.v:2} | {gap:2} | [{b.id}] |\n| "
        "{c.rank} | {c} | {c.v:2} | {gapc:2} | [{c.id}] |",
        runner_up="{b} ({gap:2} {u} away from first) [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "key facts in bold",
        "**Key facts**\n* **{a}**: {a.v:2} {u} [{a.id}]\n* **{b}**: {b.v:2} {u} [{b.id}]\n* **Gap**: {gap:2} {u} "
        "({lead:1}% relative to {b!})\n* **Field**: {n} {nouns}",
        final="**{a}**",
        runner_up="**{b}** with **{b.v:2} {u}** [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "table on its side",
        "\n| | {a} | {b} | {c} |\n|---|---|---|---|\n| {label}, {u} | {a.v:2} | {b.v:2} | {c.v:2} |\n| place | "
        "{a.rank:th} | {b.rank:th} | {c.rank:th} |\n| cited row | [{a.id}] | [{b.id}] | [{c.id}] |",
        runner_up="{b} [{b.id}]",
    ),
    Phrasing(
        "steps",
        "Step 1: take all {n} {nouns}. Step 2: sort by {label}, {descending/ascending}. Step 3: read off the first "
        "entry – {a}, {a.v:2} {u} [{a.id}]. Step 4: read off the second entry – {b}, {b.v:2} {u} [{b.id}].",
        runner_up="{b}, second entry, {b.v:2} {u} [{b.id}]",
    ),
    Phrasing(
        "yaml fields",
        "\nwinner: {a}\n{label}: {a.v:p2} {u}\nsecond: {b}\nsecond_{label}: {b.v:p2} {u}\nrows_compared: {n}\n"
        "evidence: [{a.id}, {b.id}]",
        runner_up="{b} [{b.id}]",
    ),
    Phrasing(
        "semicolon letters",
        "(i) {a} is at {a.v:2} {u} [{a.id}]; (ii) {b} is at {b.v:2} {u} [{b.id}]; (iii) the remaining {beaten} "
        "{nouns} are all {below/above} {b!}.",
        runner_up="{b} [{b.id}], {b.v:2} {u}",
    ),
    Phrasing(
        "dashes and a verdict",
        "- {a}: {a.v:1} {u} [{a.id}]\n- {b}: {b.v:1} {u} [{b.id}]\n- {c}: {c.v:1} {u} [{c.id}]\n\n**Verdict:** {a} "
        "wins on {label}; {z} finishes last with {z.v:1} {u} [{z.id}].",
        runner_up="{b} ({b.v:1} {u})",
        needs=("hundreds", "clear last"),
    ),
    Phrasing(
        "metric and evidence headings",
        "\n**Metric:** {label} ({U})\n**Rule:** {highest/lowest} value wins\n**Evidence:** {a} = {a.v:2} [{a.id}], "
        "{b} = {b.v:2} [{b.id}], {c} = {c.v:2} [{c.id}]\n**Checked:** {n} {nouns}",
        runner_up="{b} = {b.v:2} [{b.id}]",
    ),
    # With the arithmetic shown.
    Phrasing(
        "subtraction",
        "{a} has {a.v:2} {u} [{a.id}] and {b} has {b.v:2} {u} [{b.id}]: {a.v:2} - {b.v:2} ≈ {gap:2}, so {a!} is ahead "
        "by {gap:2} {u}.",
        runner_up="{b}, {gap:2} {u} behind [{b.id}]",
        needs=("max", "not percent"),
    ),
    Phrasing(
        "lead as a formula",
        "Lead of {a} [{a.id}] over {b} [{b.id}] = ({a.v:2} − {b.v:2}) / {b.v:2} ≈ {lead:1}%. Lead over {c} [{c.id}] = "
        "({a.v:2} − {c.v:2}) / {c.v:2} ≈ {leadc:1}%. All amounts in {u}.",
        runner_up="{b} with {b.v:2} {u}",
        needs=("max", "not percent"),
    ),
    Phrasing(
        "share worked out",
        "All {n} {nouns} together come to {total:2} {u}. {a} contributes {a.v:2} {u} of that, i.e. {a.v:2} / "
        "{total:2} ≈ {a.share:1}% [{a.id}]; {b} contributes {b.v:2} {u}, i.e. {b.share:1}% [{b.id}].",
        runner_up="{b}, contributing {b.share:1}% [{b.id}]",
        needs=("sums", "max"),
    ),
    Phrasing(
        "per tally worked out",
        "{a} leads on {label} with {a.v:2} {u} [{a.id}]. Its row lists {tallies}: {a.t}, so {a.v:2} / {a.t} ≈ "
        "{a.per:2} {u} for each {tally}. For {b} it is {b.v:2} / {b.t} ≈ {b.per:2} {u} [{b.id}]. The decision rests "
        "on the total, not on that ratio.",
        runner_up="{b} with {b.v:2} {u} [{b.id}]",
        needs=("rates", "sums"),
    ),
    Phrasing(
        "two added",
        "{a} ({a.v:2} {u}) [{a.id}] and {b} ({b.v:2} {u}) [{b.id}] sum to {a.v:2} + {b.v:2} ≈ {both:2} {u}, which is "
        "{twoshare:1}% of the {total:2} {u} recorded for all {nouns}; {a!} has the {larger/smaller} part of it.",
        runner_up="{b}, the {smaller/larger} part with {b.v:2} {u}",
        needs=("sums",),
    ),
    Phrasing(
        "quotient with the third",
        "{a.v:2} {u} for {a} [{a.id}] divided by {c.v:2} {u} for {c} [{c.id}] is about {ratioc:2}. Even {b}, the only "
        "{noun} in between, stops at {b.v:2} {u} [{b.id}].",
        runner_up="{b} at {b.v:2} {u}",
        needs=("max",),
    ),
    Phrasing(
        "percent of the winner",
        "Taking {a} as the reference ({a.v:2} {u}) [{a.id}], {b} reaches {indexb:1}% of it [{b.id}], {c} {indexc:1}% "
        "[{c.id}] and {z}, at the bottom of the ranking, {indexz:1}% [{z.id}].",
        runner_up="{b} – {b.v:2} {u}, {indexb:1}% of the reference [{b.id}]",
        needs=("not percent", "clear last", "few"),
    ),
    Phrasing(
        "distance to two and three",
        "{a} [{a.id}] is {gap:2} {u} {above/below} second-placed {b} [{b.id}] and {gapc:2} {u} {above/below} "
        "third-placed {c} [{c.id}]. The underlying values: {a.v:2}, {b.v:2} and {c.v:2} {u}.",
        runner_up="{b}, second-placed with {b.v:2} {u} [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "average of the field",
        "The average over the {n} {nouns} is {mean:2} {u}. {a} is {above/below} it with {a.v:2} {u} [{a.id}]; the "
        "number of {nouns} above the average is {over}. Second comes {b} with {b.v:2} {u} [{b.id}].",
        runner_up="{b} ({b.v:2} {u}) [{b.id}]",
    ),
    Phrasing(
        "three against the rest",
        "The top three – {a} [{a.id}], {b} [{b.id}] and {c} [{c.id}] – account for {three:2} {u}, or {threeshare:1}% "
        "of the total of {total:2} {u}. The other {beyond} {nouns} share {remainder:2} {u}. Within the top three {a!} "
        "is first with {a.v:2} {u}.",
        runner_up="{b}: {b.v:2} {u} [{b.id}]",
        needs=("sums", "max"),
    ),
    Phrasing(
        "the others on average",
        "{a} records {a.v:2} {u} [{a.id}]. The mean of the {others} others is {rest:2} {u}, so it is {restlead:1}% "
        "{higher/lower} than a typical {noun}, if the mean is taken as typical. {b} is nearest with {b.v:2} {u} "
        "[{b.id}].",
        runner_up="{b}, nearest with {b.v:2} {u} [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "shortfall of the second",
        "{b} [{b.id}] is {short:1}% {lower/higher} than {a} [{a.id}] – {b.v:2} {u} as opposed to {a.v:2} {u} – and "
        "nobody else comes closer.",
        runner_up="{b}, {short:1}% {lower/higher}",
        needs=("not percent",),
    ),
    # Ranks, thresholds, the middle and the end.
    Phrasing(
        "only one beyond the second",
        "Only one {noun} is {above/below} the {b.v:2} {U} of {b} [{b.id}], and that is {a} with {a.v:2} {U} [{a.id}].",
        runner_up="{b} [{b.id}] with {b.v:2} {U}",
    ),
    Phrasing(
        "only two beyond the third",
        "If {c.v:2} {u}, the {label} of {c} [{c.id}], is used as a threshold, just two {nouns} are {above/below} it: "
        "{a} ({a.v:2} {u}) [{a.id}] and {b} ({b.v:2} {u}) [{b.id}]. Of these {a!} has the {higher/lower} value.",
        runner_up="{b} ({b.v:2} {u}), the other one {above/below} the threshold",
    ),
    Phrasing(
        "first middle last",
        "To give a feel for the range: {a} is {a.rank:th} with {a.v:2} {u} [{a.id}], {m} is {m.rank:th} with {m.v:2} "
        "{u} [{m.id}], and {z} is last of {n} with {z.v:2} {u} [{z.id}]. {b} is {b.rank:th} [{b.id}].",
        runner_up="{b} ({b.rank:th}, {b.v:2} {u}) [{b.id}]",
        needs=("clear last",),
    ),
    Phrasing(
        "spread from end to end",
        "The {n} {nouns} spread over {gapz:2} {u}, from {a.v:2} {u} at {a} [{a.id}] to {z.v:2} {u} at {z} [{z.id}]. "
        "{a!} is the {maximum/minimum} of that range; {b}, with {b.v:2} {u} [{b.id}], is next to it.",
        runner_up="{b}: {b.v:2} {u} [{b.id}]",
        needs=("not percent", "clear last"),
    ),
    Phrasing(
        "multiple of the last",
        "{a}'s {label} of {a.v:2} {u} [{a.id}] is about {ratio:1} times that of {z}, which has {z.v:2} {u} and is "
        "last of {n} [{z.id}]. Against {b} with {b.v:2} {u} [{b.id}] the difference is {gap:2} {u}.",
        runner_up="{b} ({b.v:2} {u} [{b.id}])",
        needs=("max", "not percent", "clear last"),
    ),
    Phrasing(
        "how many are beaten",
        "{a} ({a.v:2} {U}) [{a.id}] beats the {others} other {nouns} on {label}; {b} ({b.v:2} {U}) [{b.id}] beats "
        "{beaten} of them, {c} ({c.v:2} {U}) [{c.id}] beats {beyond}.",
        runner_up="{b}, which beats {beaten} [{b.id}]",
    ),
    Phrasing(
        "fourth shut out",
        "{a.rank:no} {a} ({a.v:0} {u}) [{a.id}], {b.rank:no} {b} ({b.v:0} {u}) [{b.id}], {c.rank:no} {c} ({c.v:0} "
        "{u}) [{c.id}]. {d} is already out of the top three at {d.v:0} {u} [{d.id}].",
        runner_up="{b} ({b.rank:no})",
        needs=("hundreds",),
    ),
    # Years, quarters and dates.
    Phrasing(
        "peak period as support",
        "Overall {a} comes first with {a.v:2} {u} [{a.id}], ahead of {b} with {b.v:2} {u} [{b.id}]. Broken down by "
        "period, its highest value is {top.v:2} {u} in {top} [{top.id}] and its lowest {low.v:2} {u} in {low} "
        "[{low.id}].",
        runner_up="{b}: {b.v:2} {u} overall [{b.id}]",
        needs=("periods",),
    ),
    Phrasing(
        "trend with both ends",
        "{a} is the pick at {a.v:2} {u} [{a.id}]. Its figure {trend rose/fell} from {first.v:2} {u} in {first:of} "
        "[{first.id}] to {last.v:2} {u} in {last:of} [{last.id}], a change of {growth:1}%. That does not affect the "
        "ranking, where {b} is second at {b.v:2} {u} [{b.id}].",
        runner_up="{b}, second at {b.v:2} {u}",
        needs=("periods", "not percent"),
    ),
    Phrasing(
        "in the year",
        "In {year}, {a} had the {highest/lowest} {label} of the {n} {nouns}: {a.v:2} {u} [{a.id}]. In the same year "
        "{b} had {b.v:2} {u} [{b.id}].",
        final="{a} [{a.id}]",
        runner_up="{b} – {b.v:2} {u} in {year} [{b.id}]",
        needs=("year",),
    ),
    Phrasing(
        "year, with the quarters",
        "For {year} as a whole {a} shows {a.v:2} {u} [{a.id}]. Quarter by quarter there are {periods:w} entries for "
        "it, the highest being {top.v:2} {u} for {top:of} [{top.id}]. {b} shows {b.v:2} {u} for the year [{b.id}].",
        runner_up="{b}, {b.v:2} {u} [{b.id}]",
        needs=("year", "periods"),
    ),
    Phrasing(
        "first against last",
        "{a} was {trend stronger/weaker} in {last:words} than in {first:words}, at {last.v:2} {u} against "
        "{first.v:2} {u} [{last.id}, {first.id}]; what decides, though, is its overall {a.v:2} {u} compared with "
        "{b.v:2} {u} for {b} [{a.id}, {b.id}].",
        runner_up="{b}, overall {b.v:2} {u} [{b.id}]",
        needs=("periods", "max"),
    ),
    Phrasing(
        "lowest period named",
        "The lowest period on record for {a} is {low:words}, with {low.v:2} {u} [{low.id}]. Taken as a whole, its "
        "{label} of {a.v:2} {u} [{a.id}] is the {highest/lowest} of all {n}, with {b} next on {b.v:2} {u} [{b.id}].",
        runner_up="{b} on {b.v:2} {u}",
        needs=("periods",),
    ),
    Phrasing(
        "date of the row",
        "{a}: {a.v:2} {u} (row dated {a.date}) [{a.id}]. {b}: {b.v:2} {u} (row dated {b.date}) [{b.id}]. I take both "
        "rows as current; on {label}, {a!} is {higher/lower}.",
        runner_up="{b}, {b.v:2} {u}, dated {b.date} [{b.id}]",
    ),
    Phrasing(
        "as of",
        "As of {a.date:long}, the date in its row, {a} stands at {a.v:2} {u} [{a.id}]. The row for {b}, dated "
        "{b.date:long}, says {b.v:2} {u} [{b.id}]. Those are the best and the second-best value of {n}.",
        runner_up="{b} at {b.v:2} {u} ({b.date:long})",
    ),
    Phrasing(
        "shares just under or over",
        "{a} alone accounts for {a.share:near} of the summed {label} [{a.id}], {b} for {b.share:near} [{b.id}] and {c} "
        "for {c.share:near} [{c.id}]. Expressed in {U}: {a.v:2}, {b.v:2} and {c.v:2}.",
        runner_up="{b} with {b.share:near} [{b.id}]",
        needs=("sums", "max"),
    ),
    Phrasing(
        "in words",
        "{n:W} {nouns} were in play. {others:W} of them lose out to {a}, which has {a.v:2} {U} [{a.id}]; the closest "
        "of those is {b} with {b.v:2} {U} [{b.id}].",
        runner_up="{b}, the closest with {b.v:2} {U}",
        needs=("few",),
    ),
    Phrasing(
        "brackets first",
        "\n- [{a.id}] {a}, {a.v:2} {u}\n- [{b.id}] {b}, {b.v:2} {u}\n- [{c.id}] {c}, {c.v:2} {u}\nThe rest, {beyond} "
        "{nouns}, come {below/above} that.",
        runner_up="[{b.id}] {b}",
    ),
    Phrasing(
        "two front-runners",
        "Comparing the two front-runners [{a.id} and {b.id}], {a} has the {higher/lower} {label} by {gap:2} {u}: "
        "{a.v:2} as against {b.v:2} for {b}.",
        runner_up="{b}, {gap:2} {u} {lower/higher} [{b.id}]",
        needs=("not percent",),
    ),
    # Hedged.
    Phrasing(
        "small print",
        "Based solely on {label}, {a} would be my recommendation: it shows {a.v:2} {u} [{a.id}]. I would add that "
        "this is {lead:1}% {above/below} {b} at {b.v:2} {u} [{b.id}], and that I have not tested whether a gap of this "
        "size matters in practice.",
        runner_up="{b}, {b.v:2} {u} [{b.id}], subject to the same reservation",
        needs=("not percent",),
    ),
    Phrasing(
        "as far as the data show",
        "As far as the returned rows show, {a} probably deserves the top spot – {a.v:2} {u} [{a.id}] – with {b} "
        "({b.v:2} {u}) and {c} ({c.v:2} {u}) behind it [{b.id}; {c.id}]. What lies behind the numbers I "
        "cannot tell.",
        runner_up="{b}, probably ({b.v:2} {u})",
    ),
    Phrasing(
        "assumption stated",
        "Assumption: '{label}' means the column in {U} as returned. Under it, {a} = {a.v:2} [{a.id}] and {b} = "
        "{b.v:2} [{b.id}]; the remaining {nouns} are {lower/higher}. A different reading of the term might change the "
        "order.",
        runner_up="{b} = {b.v:2} {U} [{b.id}]",
    ),
    Phrasing(
        "not the count",
        "Note that the number of {tallies} ({a.t} for {a}, {b.t} for {b}) was ignored. What counts is {label}: {a.v:2} "
        "{u} against {b.v:2} {u} [{a.id}, {b.id}].",
        runner_up="{b} ({tallies}: {b.t}; {label}: {b.v:2} {u}) [{b.id}]",
        needs=("rates",),
    ),
    # Money, millions and other spellings of figures.
    Phrasing(
        "symbol before",
        "{a} comes in at {sym}{a.v:2} [{a.id}], {b} at {sym}{b.v:2} [{b.id}]. The {sym}{gap:2} between them "
        "({lead:1}% of the latter) decides it.",
        runner_up="{b} at {sym}{b.v:2} [{b.id}]",
        needs=("symbol",),
    ),
    Phrasing(
        "code before, whole",
        "{a} – {u} {a.v:0} [{a.id}]\n{b} – {u} {b.v:0} [{b.id}]\n{c} – {u} {c.v:0} [{c.id}]\nRounded to whole {U}. "
        "The order of these three is the same with and without rounding.",
        runner_up="{b} – {u} {b.v:0}",
        needs=("symbol", "thousand"),
    ),
    Phrasing(
        "about so many million",
        "{a} comes to about {a.v:M1} {u} [{a.id}], versus about {b.v:M1} {u} for {b} [{b.id}] and about {c.v:M1} {u} "
        "for {c} [{c.id}]. More exactly, the first is {gap:M2} {u} ahead of the second.",
        runner_up="{b}, about {b.v:M1} {u} [{b.id}]",
        needs=("big", "max"),
    ),
    Phrasing(
        "billions short",
        "{a} [{a.id}] tops the list with {a.v:bn2} {u}; {b} [{b.id}] has {b.v:bn2} {u}. In full: {a.v:0} vs. {b.v:0}.",
        runner_up="{b} ({b.v:bn2} {u}) [{b.id}]",
        needs=("billion",),
    ),
    Phrasing(
        "thousands short",
        "~{a.v:k1} {u} for {a} [{a.id}], ~{b.v:k1} {u} for {b} [{b.id}], ~{c.v:k1} {u} for {c} [{c.id}]. {a!} has the "
        "{most/least}.",
        runner_up="{b} (~{b.v:k1} {u}) [{b.id}]",
        needs=("thousands",),
    ),
    Phrasing(
        "decimal commas",
        "{a} liegt mit {a.v:e2} {u} auf Platz {a.rank} von {n} [{a.id}]; dahinter {b} mit {b.v:e2} {u} [{b.id}] und "
        "{c} mit {c.v:e2} {u} [{c.id}].",
        runner_up="{b} mit {b.v:e2} {u} [{b.id}]",
    ),
    Phrasing(
        "espaces fines",
        "Sur les {n} lignes, {a} affiche {a.v:n2} {u} [{a.id}] contre {b.v:n2} {u} pour {b} [{b.id}] : c'est la "
        "valeur la plus {haute/basse}.",
        runner_up="{b}, {b.v:n2} {u} [{b.id}]",
    ),
    # Voices.
    Phrasing(
        "small model repeats itself",
        "The answer is {a} because {a} has {a.v:2} {U}. {a} is the {noun} with the {highest/lowest} {label}. [{a.id}]",
        runner_up="The runner-up is {b} because it has {b.v:2} {U}. [{b.id}]",
    ),
    Phrasing(
        "based on the provided data",
        "Based on the provided data, {a} has {label} of {a.v:2} {u} [{a.id}], which is {higher/lower} than {b} with "
        "{b.v:2} {u} [{b.id}], {c} with {c.v:2} {u} [{c.id}], and all other {nouns}. Therefore, {a!} is the correct "
        "choice.",
        runner_up="{b}, with {label} of {b.v:2} {u} [{b.id}].",
    ),
    Phrasing(
        "thinking aloud",
        "Okay, scanning the {n} rows: {b} looks good at {b.v:2} {U} [{b.id}], but {a} is {higher/lower} at {a.v:2} "
        "{U} [{a.id}], and I see nothing that beats {a!}. {c} at {c.v:2} {U} is third [{c.id}].",
        runner_up="{b} at {b.v:2} {U}, as noted [{b.id}]",
    ),
    Phrasing(
        "pick and move on",
        "Easy one. {a}'s {a.v:1} {u} [{a.id}] vs {b}'s {b.v:1} {u} [{b.id}] – everyone else is further back, so pick "
        "{a!} and move on.",
        runner_up="{b} w/ {b.v:1} {u}",
        needs=("hundreds",),
    ),
    Phrasing(
        "hereby recommended",
        "It is hereby recommended that {a} be selected, its {label} having been established as {a.v:2} {u} [{a.id}]. "
        "In the event that {a!} is unavailable, recourse may be had to {b}, for which {b.v:2} {u} has been "
        "established [{b.id}]. The remaining {beaten} {nouns} rank after both.",
        runner_up="{b}, {b.v:2} {u} having been established [{b.id}]",
    ),
    # Brackets forgotten.
    Phrasing(
        "ids in round brackets",
        "{a} shows the {highest/lowest} {label} with {a.v:2} {u} ({a.id}), followed by {b} with {b.v:2} {u} ({b.id}) "
        "and {c} with {c.v:2} {u} ({c.id}).",
        runner_up="{b} ({b.v:2} {u}, {b.id})",
    ),
    Phrasing(
        "ids in a clause",
        "According to {a.id}, {a} has {a.v:2} {u}; according to {b.id}, {b} has {b.v:2} {u}. All {n} {nouns} were "
        "ranked by {label}.",
        runner_up="{b}, see {b.id}",
    ),
)
