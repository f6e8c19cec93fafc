"""Seventy more ways to answer, by eight other writers who had not read the check."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    # Headings, lists and tables.
    Phrasing(
        "bold paragraphs",
        "**Selection.** {a} leads on {label} with **{a.v:2} {u}** [{a.id}].\n**Nearest rival.** {b}, ranked "
        "{b.rank:word}, has {b.v:2} {u} [{b.id}].\n**Coverage.** All {n} {nouns} in the result were compared.",
        runner_up="{b} ({b.v:2} {u})",
    ),
    Phrasing(
        "ranked table",
        "The head of the ranking:\n\n| rank | {noun} | {label} ({u}) | row |\n|---|---|---|---|\n| {a.rank} | {a} | "
        "{a.v:2} | {a.id} |\n| {b.rank} | {b} | {b.v:2} | {b.id} |\n| {c.rank} | {c} | {c.v:2} | {c.id} |\n\nThe other "
        "{beyond} {nouns} come after these three.",
        runner_up="{b}",
    ),
    Phrasing(
        "bulleted evidence",
        "the evidence in short:\n- Criterion: the {highest/lowest} {label}, in {U}\n- {a}: {a.v:2} [{a.id}]\n- {b}: "
        "{b.v:2} [{b.id}]\n- Difference: {gap:2}\n- Candidates compared: {n}",
        needs=("not percent",),
    ),
    Phrasing(
        "three numbered reasons",
        "1. {a} has {a.v:2} {u} in {label} [{a.id}], the {highest/lowest} of the {n} values. 2. Its lead over {b} "
        "[{b.id}] comes to {gap:2} {u}, or {lead:1}% of the {b.v:2} {u} that {b!} has. 3. {c} is only {c.rank:word}, "
        "at {c.v:2} {u} [{c.id}].",
        final="**{a}**",
        runner_up="**{b}** ({b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "table with shares",
        "Two rows are enough to see it.\n\n| {noun} | {label}, {u} | share of the sum |\n|:--|--:|--:|\n| **{a}** | "
        "{a.v:2} | {a.share:1}% |\n| {b} | {b.v:2} | {b.share:1}% |\n\nRows used: {a.id} for the first line, {b.id} "
        "for the second. The sum over the {n} {nouns} is {total:2} {u}.",
        runner_up="{b}, {b.share:1}% of the sum",
        needs=("sums",),
    ),
    Phrasing(
        "dotted fields",
        "**Verdict:** {a} · **Metric:** {label} · **Value:** {a.v:2} {u} · **Rank:** {a.rank} of {n} · **Source:** "
        "{a.id}. The next {noun}, {b}, sits at {b.v:2} {u} (source: {b.id}).",
        runner_up="{b} · {b.v:2} {u} · {b.id}",
    ),
    Phrasing(
        "why and why not",
        "### Why {a}?\nWhen the {nouns} are sorted by {label}, {highest/lowest} value at the top, it comes "
        "{a.rank:word} out of {n} [{a.id}].\n### Why not {b}?\nIts {b.v:2} {u} [{b.id}] are {gap:2} {u} {less/more} "
        "than the {a.v:2} {u} of the choice.",
        runner_up="{b}, {gap:2} {u} {less/more}",
        needs=("not percent",),
    ),
    Phrasing(
        "ticked list",
        "- ✅ {n} {nouns} read, one row for each\n- ✅ {highest/lowest} {label}: {a}, {a.v:2} {u} ({a.id})\n- ✅ "
        "second place: {b}, {b.v:2} {u} ({b.id})\n- ✅ third place: {c}, {c.v:2} {u} ({c.id})\n- ❌ not looked at: "
        "anything that has no bearing on {label}",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "indented list",
        "On {label}, {a} comes out best.\n  - In all: {a.v:2} {u} [{a.id}]\n  - Highest single period: {top:of}, with "
        "{top.v:2} {u} [{top.id}]\n  - Lowest single period: {low:of}, with {low.v:2} {u} [{low.id}]\n  - Next {noun} "
        "in all: {b}, {b.v:2} {u} [{b.id}]",
        needs=("periods",),
    ),
    # Telegrams and logs.
    Phrasing(
        "short gap",
        "{a} {highest/lowest} {label}: {a.v:2} {u} [{a.id}]. Next {b}: {b.v:2} {u} [{b.id}]. Gap {gap:2} {u} "
        "({lead:1}% on {b!}). N={n}.",
        runner_up="{b}. {b.v:2} {u}.",
        needs=("not percent",),
    ),
    Phrasing(
        "cable",
        "{a} {a.v:p2} {u} STOP NEXT {b} AT {b.v:p2} {u} STOP {n} {nouns} SEEN STOP NONE {HIGHER/LOWER} THAN {a!} STOP "
        "ROWS {a.id} AND {b.id} STOP",
        runner_up="{b} {b.v:p2} {u}",
    ),
    Phrasing(
        "greater than signs",
        "{a} > {b} > {c} > the other {beyond}. In {u}: {a.v:2} > {b.v:2} > {c.v:2}. Rows in the same order: {a.id}, "
        "{b.id}, {c.id}.",
        runner_up="{b}",
        needs=("max",),
    ),
    Phrasing(
        "key and value",
        "choice={a}; value={a.v:p2}; unit={u}; row={a.id}; rank={a.rank}/{n}; second={b}; second_value={b.v:p2}; "
        "second_row={b.id}",
        runner_up="{b}; value={b.v:p2}; rank={b.rank}",
    ),
    Phrasing(
        "dated rows",
        "Best: {a}, {a.v:2} {u}, row date {a.date} ({a.id}). 2nd: {b}, {b.v:2} {u}, row date {b.date} ({b.id}). 3rd: "
        "{c}, {c.v:2} {u}, row date {c.date} ({c.id}).",
        runner_up="{b}, {b.v:2} {u}, row date {b.date}",
    ),
    Phrasing(
        "versus versus",
        "{sym}{a.v:2} vs {sym}{b.v:2} vs {sym}{c.v:2}. That's {a} [{a.id}], {b} [{b.id}], {c} [{c.id}], in that order. "
        "{n} {nouns} checked.",
        runner_up="{b} at {sym}{b.v:2}",
        needs=("symbol",),
    ),
    Phrasing(
        "in thousands",
        "{a} {a.v:k2} {u}, {b} {b.v:k2} {u}, {c} {c.v:k2} {u}. Other {beyond} all {below/above} that. Rows {a.id}, "
        "{b.id}, {c.id} respectively.",
        runner_up="{b}, {b.v:k2} {u}",
        needs=("thousands",),
    ),
    Phrasing(
        "against the mean",
        "Mean {mean:2} {u}; above it {over} of {n}. {a}: {a.v:2} {u} [{a.id}], {restlead:1}% {above/below} the mean of "
        "the other {others}. {b}: {b.v:2} {u} [{b.id}].",
        needs=("not percent",),
    ),
    Phrasing(
        "question mark answer",
        "Year {year}. {a}? Yes: {a.v:2} {u} [{a.id}]. {b}? No, {b.v:2} {u}, {b.rank:word} [{b.id}]. {c}? No, {c.v:2} "
        "{u}, {c.rank:word} [{c.id}].",
        runner_up="{b} ({year}: {b.v:2} {u})",
        needs=("year",),
    ),
    # Talk.
    Phrasing(
        "went through all",
        "So I went through all {n} {nouns}, and {a} it is: {a.v:2} {u}, which you'll find in {a.id}. {b} came in "
        "{b.rank:word} with {b.v:2} {u} (that's {b.id}), so we're talking about {gap:2} {u} between the two.",
        runner_up="{b} with its {b.v:2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "line one",
        "Honestly, taste doesn't come into it. Sort by {label}, {biggest/smallest} first, and {a} is on line one with "
        "{a.v:1} {u} [{a.id}]. Line two is {b}, {b.v:1} {u} [{b.id}]. I didn't look into why.",
        runner_up="{b}, the one on line two",
        needs=("hundreds",),
    ),
    Phrasing(
        "for every hundred",
        "Quick answer: go with {a}. Think of it like this: for every 100 {U} it shows, {b} shows {indexb:1} and {c} "
        "shows {indexc:1}. The raw numbers are {a.v:2} [{a.id}], {b.v:2} [{b.id}] and {c.v:2} [{c.id}].",
        runner_up="{b} – {indexb:1} for every 100",
        needs=("not percent",),
    ),
    Phrasing(
        "by the way the date",
        "{a} gets my vote; nobody {tops/undercuts} its {a.v:2} {u} [{a.id}]. Its row carries the date {a.date:long}, "
        "by the way. You'd have {b} as a fallback, at {b.v:2} {u}, with {b.date:long} on its row [{b.id}].",
        runner_up="{b}, that fallback with {b.v:2} {u}",
    ),
    Phrasing(
        "all told",
        "All told the {n} {nouns} add up to roughly {total:~} {u}, and {a} accounts for {a.v:2} {u} of it [{a.id}], "
        "that's {a.share:near}. {b} accounts for {b.v:2} {u} [{b.id}], that's {b.share:near}.",
        runner_up="{b}, {b.share:near} of it all",
        needs=("sums",),
    ),
    Phrasing(
        "share of the column",
        "Fun fact: {a.share:1}% of everything in that column sits with {a}, {a.v:0} {u} out of {total:0} {u} [{a.id}]. "
        "Since you asked for the {most/least}, that settles it; {b} is {b.rank:word} with {b.v:0} {u} [{b.id}].",
        runner_up="{b} – {b.v:0} {u}",
        needs=("sums", "hundreds"),
    ),
    Phrasing(
        "could it still win",
        "Could {b} still win this? Nope. It has {b.v:2} {u} [{b.id}] and would need another {gap:2} {u} just to draw "
        "level with {a} and its {a.v:2} {u} [{a.id}]. And {c} would need {gapc:2} {u}, so forget it.",
        runner_up="{b}, {gap:2} {u} short",
        needs=("max", "not percent"),
    ),
    Phrasing(
        "podium",
        "My podium, in order: {a} ({a.v:0} {u}), {b} ({b.v:0} {u}) and {c} ({c.v:0} {u}). See {a.id} for the first, "
        "{b.id} for the second and {c.id} for the third. The remaining {beyond:w} didn't make it.",
        runner_up="{b}, silver with {b.v:0} {u}",
        needs=("hundreds",),
    ),
    Phrasing(
        "one number decides",
        "What's in the row of {a}: {a.v:2} {u}, and {a.t} under {tallies} [{a.id}]. What's in the row of {b}: {b.v:2} "
        "{u}, and {b.t} under {tallies} [{b.id}]. The first number decides, the second one doesn't.",
        runner_up="{b} ({b.v:2} {u}; {b.t} under {tallies})",
    ),
    # Advice with caveats.
    Phrasing(
        "one caveat",
        "We recommend {a}, with one caveat: this review covers {label} and nothing else. On that basis it records {u} "
        "{a.v:2} [{a.id}] against {u} {b.v:2} for {b} [{b.id}], a difference of {lead:1}% measured on the latter.",
        runner_up="{b}, {u} {b.v:2}, same caveat",
        needs=("symbol",),
    ),
    Phrasing(
        "provided complete",
        "Provided the extract is complete – it holds {n} {nouns} – we see {a} in {a.rank:word} place ({a.v:2} {u}, "
        "{a.id}), {b} in {b.rank:word} ({b.v:2} {u}, {b.id}) and {c} in {c.rank:word} ({c.v:2} {u}, {c.id}). We did "
        "not audit the underlying records.",
        runner_up="{b}, in {b.rank:word} place",
    ),
    Phrasing(
        "distance to third",
        "{a}, at {a.v:2} {u} [{a.id}], should be chosen. The next two are {gap:2} {u} ({b} [{b.id}]) and {gapc:2} {u} "
        "({c} [{c.id}]) away from it. Neither distance allows for errors in the source, which we could not estimate.",
        runner_up="{b}, {gap:2} {u} away",
        needs=("not percent",),
    ),
    Phrasing(
        "year under review",
        "The period under review is {year}. Within it {a} posted {a.v:2} {u} [{a.id}] and {b} {b.v:2} {u} [{b.id}], "
        "the {two highest/two lowest} entries among {n} {nouns}. Whether the same order holds in other years lies "
        "outside this answer.",
        final="{a} (for {year})",
        runner_up="{b}, {b.v:2} {u} in {year}",
        needs=("year",),
    ),
    Phrasing(
        "concentration",
        "{a} ranks {a.rank:word} with {a.v:2} {u} [{a.id}]. A word on concentration: together with {b} [{b.id}] and "
        "{c} [{c.id}] it holds {threeshare:1}% of the summed {label}, so that {remainder:2} {u} are left to the other "
        "{beyond} {nouns}.",
        runner_up="{b} with {b.v:2} {u}",
        needs=("sums",),
    ),
    Phrasing(
        "movement to note",
        "{a} remains our choice at {a.v:2} {u} [{a.id}]; {b} follows at {b.v:2} {u} [{b.id}]. The client should note, "
        "however, that the figure of {a!} went {trend up/down} by {growth:1}% between {first:of} [{first.id}] and "
        "{last:of} [{last.id}]. We make no forecast from two points.",
        runner_up="{b}, following at {b.v:2} {u}",
        needs=("periods", "not percent"),
    ),
    Phrasing(
        "order of magnitude",
        "In order of magnitude, {a} falls {a.v:range} {u} and {c} {c.v:range} {u}. The exact entries read {a.v:2} {u} "
        "[{a.id}] and {c.v:2} {u} [{c.id}]; the one of {b} reads {b.v:2} {u} [{b.id}]. A different criterion could "
        "well lead to a different choice.",
        needs=("hundreds",),
    ),
    Phrasing(
        "dates of entries",
        "Subject to the entries being current, {a} is the preferred {noun}: {a.v:2} {u}, entry dated {a.date:us} "
        "[{a.id}]. The alternative is {b}: {b.v:2} {u}, entry dated {b.date:us} [{b.id}]. Changes after these dates "
        "have not been considered.",
        runner_up="{b}, entry dated {b.date:us}",
    ),
    # From the German.
    Phrasing(
        "lies in front",
        "According to the table, {a} lies in front with {a.v:e2} {u} [{a.id}]. On place {b.rank} follows {b} with "
        "{b.v:e2} {u} [{b.id}]. The distance amounts to {gap:e2} {u}.",
        runner_up="{b} with {b.v:e2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "short and good",
        "Short and good: of all {n} {nouns}, the {highest/lowest} value has {a}, namely {a.v:2} {u} (see {a.id}). {b} "
        "reaches {b.v:2} {u} (see {b.id}) and {c} reaches {c.v:2} {u} (see {c.id}). More was not to be examined.",
        runner_up="{b}, it reaches {b.v:2} {u}",
    ),
    Phrasing(
        "roman reasons",
        "The decision falls on {a}. (i) Its {label} figure is {a.v:e2} {u}, row {a.id}. (ii) That is {lead:c1 %} "
        "{more/less} than at {b}, row {b.id}. (iii) With {c}, row {c.id}, the comparison gives {leadc:c1 %}.",
        runner_up="{b}: {b.v:e2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "dotted dates",
        "The row {a.id}, dated {a.date:dot}, shows for {a} the value {a.v:e2} {u}. The row {b.id}, dated {b.date:dot}, "
        "shows for {b} the value {b.v:e2} {u}. {a!} is thereby {gap:e2} {u} {higher/lower}.",
        runner_up="{b}, value {b.v:e2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "millions",
        "Rounded to millions with two digits, {a} comes to {a.v:M2} {u}, {b} to {b.v:M2} {u} and {c} to {c.v:M2} {u}. "
        "The belonging rows are {a.id}, {b.id} and {c.id}, in this order. In total {n} {nouns} stood in comparison.",
        runner_up="{b} with {b.v:mn2} {u}",
        needs=("big",),
    ),
    Phrasing(
        "over the average",
        "{a} has with {a.v:e2} {u} the {highest/lowest} value [{a.id}], {b} with {b.v:e2} {u} the next one [{b.id}]. "
        "For orientation: the average of the {n} {nouns} is {mean:e2} {u}, and the number of those over it is {over}.",
    ),
    Phrasing(
        "elimination",
        "By elimination: {c} drops out as number {c.rank} ({c.v:2} {u}, row {c.id}), then {b} as number {b.rank} "
        "({b.v:2} {u}, row {b.id}). Remains {a} as number {a.rank} ({a.v:2} {u}, row {a.id}). The {beyond} further "
        "{nouns} need not be mentioned singly.",
        runner_up="{b} as number {b.rank}",
    ),
    Phrasing(
        "quarters or years",
        "For {a} the data know {periods} periods. The {trend increase/decrease} from {first.v:2} {u} in {first:words} "
        "[{first.id}] to {last.v:2} {u} in {last:words} [{last.id}] changes nothing in the result: with {a.v:2} {u} it "
        "stands before {b} with {b.v:2} {u} [{a.id}; {b.id}].",
        runner_up="{b}, with {b.v:2} {u}",
        needs=("periods",),
    ),
    Phrasing(
        "proportion to hundred",
        "Set {a} equal to 100 (that are {a.v:e2} {u}, {a.id}), then {b} stands at {indexb:c1} ({b.id}) and {c} at "
        "{indexc:c1} ({c.id}). All others of the {n} {nouns} stand still {lower/higher}.",
        runner_up="{b}, index {indexb:c1}",
    ),
    # From India.
    Phrasing(
        "kindly note",
        "Kindly note that {a} is having the {highest/lowest} {label}, i.e. {a.v:2} {u} [{a.id}]. {b} is coming "
        "{b.rank:word} only, i.e. {b.v:2} {u} [{b.id}]. Hence {a!} may be selected.",
        runner_up="{b}, i.e. {b.v:2} {u}",
    ),
    Phrasing(
        "stood first",
        "As per the data, a total of {n} {nouns} were there. Out of these, {a} stood {a.rank:word} with {a.v:2} {u} "
        "(ref. {a.id}), {b} stood {b.rank:word} with {b.v:2} {u} (ref. {b.id}) and {c} stood {c.rank:word} with "
        "{c.v:2} {u} (ref. {c.id}).",
        runner_up="{b} (ref. {b.id})",
    ),
    Phrasing(
        "for the year",
        "For the year {year}, the position is as under: {a} – {a.v:p1} {u} [{a.id}]; {b} – {b.v:p1} {u} [{b.id}]; {c} "
        "– {c.v:p1} {u} [{c.id}]. Balance {beyond} {nouns} are {below/above} the third one. Figures of other years "
        "have not been taken into account.",
        runner_up="{b} – {b.v:p1} {u}",
        needs=("year", "hundreds"),
    ),
    Phrasing(
        "works out to",
        "The difference between {a} [{a.id}] and {b} [{b.id}] is {u} {gap:2} only, which works out to {lead:2}% on the "
        "base of the latter. Still, {u} {a.v:2} is {more/less} than {u} {b.v:2}, and the criterion given is the "
        "{maximum/minimum}.",
        runner_up="{b} (difference of {u} {gap:2} only)",
        needs=("symbol",),
    ),
    Phrasing(
        "basis of each",
        "{a} is suggested, its {label} figure being {a.v:2} {u} [{a.id}]. Per {tally} it comes to {a.per:2} {u}, the "
        "count of {tallies} being {a.t}. For {b} the respective figures are {b.v:2} {u}, {b.per:2} {u} and {b.t} "
        "[{b.id}].",
        runner_up="{b}, its figure being {b.v:2} {u}",
        needs=("rates", "sums"),
    ),
    Phrasing(
        "lowest period",
        "{a} touched its lowest figure of {low.v:2} {u} in {low:of} [{low.id}]; overall, however, it is standing at "
        "{a.v:2} {u} [{a.id}], and overall is what was asked. {b} is standing at {b.v:2} {u} [{b.id}].",
        runner_up="{b}, standing at {b.v:2} {u}",
        needs=("periods",),
    ),
    Phrasing(
        "gone through rows",
        "I have gone through all the {n} rows, and not a single one is having {a larger/a smaller} {label} figure than "
        "{a.v:2} {u}, which pertains to {a} [{a.id}]. After that comes {b.v:2} {u}, which pertains to {b} [{b.id}].",
        runner_up="{b}, to which {b.v:2} {u} pertains",
    ),
    Phrasing(
        "position wise",
        "Position-wise it is like this: {a.rank:th} {a} ({a.v:2} {u}), {b.rank:th} {b} ({b.v:2} {u}), {c.rank:th} {c} "
        "({c.v:2} {u}), {d.rank:th} {d} ({d.v:2} {u}). Refer {a.id}, {b.id}, {c.id} and {d.id} in the same sequence.",
        runner_up="{b} in {b.rank:th} position",
    ),
    Phrasing(
        "combined figure",
        "{a} and {b} put together are giving {both:2} {u}, i.e. {twoshare:1}% of the grand total of {total:2} {u}. "
        "Between the two, {a!} is on the {higher/lower} side with {a.v:2} {u} [{a.id}] as compared to {b.v:2} {u} "
        "[{b.id}].",
        runner_up="{b}, on the {lower/higher} side with {b.v:2} {u}",
        needs=("sums",),
    ),
    # With words of another language, and for the newspaper.
    Phrasing(
        "et voila",
        "Et voilà, {a}: {a.v:2} {u}, no {noun} shows {more/less} [{a.id}]. Bon, {b} comes next, position {b.rank} with "
        "{b.v:2} {u} [{b.id}], mais non, second is not first.",
        runner_up="{b}, position {b.rank}",
    ),
    Phrasing(
        "sin misterio",
        "Sin misterio: {n} {nouns}, one winner, {a}. Los números, por favor – {a.v:2} {u} for the winner [{a.id}], "
        "{b.v:2} {u} for {b} [{b.id}], {c.v:2} {u} for {c} [{c.id}]. Y ya está.",
        runner_up="{b}, con {b.v:2} {u}",
    ),
    Phrasing(
        "unterm strich",
        "Unterm Strich – bottom line, as my colleagues say – it's {a}. {u} {a.v:'2} stand against {u} {b.v:'2} for "
        "{b}, macht {u} {gap:'2} of difference. Belege: {a.id} for the former, {b.id} for the latter.",
        runner_up="{b} ({u} {b.v:'2})",
        needs=("symbol",),
    ),
    Phrasing(
        "ergo",
        "Primo, {a} has {a.v:2} {U} [{a.id}]. Secundo, {b} has {b.v:2} {U} [{b.id}]. Tertio, all other {beaten} "
        "{nouns} have {smaller/larger} figures than {b!}. Ergo {a!}.",
        runner_up="{b}, {b.v:2} {U}",
    ),
    Phrasing(
        "basta",
        "{a}, punto e basta. Allora, the {U} count: {a.v:s2} here [{a.id}], {b.v:s2} there (there being {b}) [{b.id}]. "
        "And in the cellar, position {z.rank} of {n}, {z} with {z.v:s2} [{z.id}].",
        runner_up="{b} ({b.v:s2} {u})",
        needs=("clear last",),
    ),
    Phrasing(
        "crown",
        "The crown for {label} goes to {a}, whose {a.v:2} {u} [{a.id}] left {others} rival {nouns} behind. {b} had to "
        "be content with {b.v:2} {u} and the {b.rank:word} place [{b.id}]. From {first:of} to {last:of}, the figure of "
        "the winner had moved {trend up/down} by {growth:1}% [{first.id}, {last.id}].",
        runner_up="{b}, content with {b.v:2} {u}",
        needs=("periods", "not percent"),
    ),
    Phrasing(
        "por si acaso",
        "I checked twice, por si acaso. {a.v:2} {u} it is for {a}, whose row is dated {a.date:my} [{a.id}]; {b.v:2} "
        "{u} for {b}, whose row is dated {b.date:my} [{b.id}]. Nothing in the column is {higher/lower} than the first "
        "of them.",
        runner_up="{b} – {b.v:2} {u}, {b.date:my}",
    ),
    Phrasing(
        "best moment",
        "Chapeau to {a}. In {top:words} alone it recorded {top.v:2} {u} [{top.id}], and its entry in the main table, "
        "{a.v:2} {u} [{a.id}], is {gap:2} {u} {above/below} that of {b} [{b.id}]. Pas mal.",
        runner_up="{b}, {gap:2} {u} {below/above}",
        needs=("periods", "not percent"),
    ),
    # Memos and statistics.
    Phrasing(
        "memo",
        "Memo. Subject: {label} of {n} {nouns}. Finding: {a} {exceeds/undercuts} {b} by {gap:2} {u} ({a.v:2} {u} vs. "
        "{b.v:2} {u}). Basis: {a.id}, {b.id}. Open: nothing on causes, nothing on next year.",
        final="{a} [{a.id}]",
        runner_up="{b} [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "beats by",
        "{a} beats {b} by {gap:2} {u} and {c} by {gapc:2} {u}. It does so with {a.v:2} {u} [{a.id}]; the beaten two "
        "have {b.v:2} {u} [{b.id}] and {c.v:2} {u} [{c.id}]. Beaten as well: the other {beyond} {nouns}.",
        runner_up="{b}, beaten by {gap:2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "how many below",
        "Of {n} {nouns}, {others} lie {below/above} {a} ({a.v:2} {u}, {a.id}), {beaten} lie {below/above} {b} ({b.v:2} "
        "{u}, {b.id}) and {beyond} lie {below/above} {c} ({c.v:2} {u}, {c.id}). Counting settles the choice.",
        runner_up="{b} ({b.v:2} {u}, {b.id})",
    ),
    Phrasing(
        "first middle last",
        "Three points describe the ranking by {label}: rank {a.rank}, {a}, {a.v:2} {u} [{a.id}]; rank {m.rank}, {m}, "
        "{m.v:2} {u} [{m.id}]; rank {z.rank}, {z}, {z.v:2} {u} [{z.id}]. {b}, rank {b.rank}, is the only {noun} "
        "{above/below} which there is just one other [{b.id}].",
        runner_up="{b}, rank {b.rank}",
        needs=("clear last",),
    ),
    Phrasing(
        "billions",
        "{a} accounts for {a.v:B2} {u} [{a.id}] and {b} for {b.v:B2} {u} [{b.id}]. The mean of the {n} {nouns} is "
        "{mean:B2} {u}; {over:w} of them above the mean, the rest not. {a!} is {lead:1}% {above/below} {b!}.",
        runner_up="{b}, {b.v:B2} {u}",
        needs=("billion", "not percent"),
    ),
    Phrasing(
        "factor to last",
        "A factor of {ratio:1} lies between {a} ({a.v:2} {u} [{a.id}]) and the {noun} at the far end, {z} ({z.v:2} {u} "
        "[{z.id}]). Between {a!} and {c} it is a factor of {ratioc:2} [{c.id}]. {b} is the closest of the {others} "
        "other {nouns}, with {b.v:2} {u} [{b.id}].",
        runner_up="{b}, the closest with {b.v:2} {u}",
        needs=("clear last",),
    ),
    Phrasing(
        "count is no criterion",
        "By count of {tallies}, {a} has {a.t} and {b} has {b.t}, a difference of {moretallies}; that was not the "
        "criterion. By {label}, the criterion, {a!} has {a.v:2} {u} [{a.id}] and {b!} has {b.v:2} {u} [{b.id}], so the "
        "former is {higher/lower}.",
        runner_up="{b}: {b.v:2} {u}, {tallies} {b.t}",
    ),
    Phrasing(
        "rest of the field",
        "The other {others} {nouns} average {rest:2} {u}; {a}, with {a.v:2} {u} [{a.id}], stands {restlead:1}% "
        "{above/below} this. Nearest to it is {b}, whose {b.v:2} {u} [{b.id}] {falls short of/exceeds} the figure of "
        "{a!} by {short:1}% of the latter.",
        runner_up="{b} at {b.v:2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "row first",
        "[{a.id}] puts {a} at {a.v:2} {u} ({a.rank:#} of {n}), [{b.id}] puts {b} at {b.v:2} {u} ({b.rank:#}) and "
        "[{d.id}] puts {d} at {d.v:2} {u} ({d.rank:#}). Only {label} was weighed; the dates of the rows, such as "
        "{a.date:slash} in the first of them, were not.",
        runner_up="{b} ({b.rank:#})",
    ),
)
