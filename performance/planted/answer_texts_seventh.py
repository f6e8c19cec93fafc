"""Sixty-six more ways to answer, by eight writers who had not read the check."""

from __future__ import annotations

from planted.answer_slots import Phrasing

TEXTS = (
    Phrasing(
        "steering committee",
        "Having weighed the {n} {nouns} solely on {label}, we advise the committee to go with {a}, which records "
        "{a.v:2} {u} [{a.id}]; the fallback would be {b}, recording {b.v:2} {u} [{b.id}].",
        runner_up="{b}, recording {b.v:2} {u}",
    ),
    Phrasing(
        "key finding",
        "Key finding: on {label}, {a} sits {lead:1}% {above/below} {b}, at {a.v:2} {u} versus {b.v:2} {u} [{a.id}, "
        "{b.id}]. Implication: unless other criteria matter, {a} should be preferred.",
        runner_up="{b} ({b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "three slides",
        "Three options deserve a slide. Option A, {a}: {a.v:0} {u} [{a.id}]. Option B, {b}: {b.v:0} {u} [{b.id}]. "
        "Option C, {c}: {c.v:0} {u} [{c.id}]. Together the three account for {threeshare:0}% of the {total:0} {u} "
        "observed.",
        runner_up="{b} (Option B)",
        needs=("sums", "hundreds", "not percent"),
    ),
    Phrasing(
        "concentration",
        "Two names describe the field: {a} ({a.share:1}%) [{a.id}] and {b} ({b.share:1}%) [{b.id}] jointly hold "
        "{twoshare:1}% of the overall {label}, and the {beaten} remaining {nouns} divide up what is left.",
        runner_up="{b}, {b.share:1}% of the overall {label}",
        needs=("sums", "not percent", "max"),
    ),
    Phrasing(
        "unit economics",
        "{a} gets to {a.v:0} {u} over {a.t} {tallies}, i.e. {a.per:2} {u} per {tally} [{a.id}]. {b} is second on "
        "{label}: {b.v:0} {u}, number of {tallies} {b.t}, hence {b.per:2} {u} apiece [{b.id}].",
        runner_up="{b} ({b.v:0} {u}, {b.per:2} {u} per {tally})",
        needs=("sums", "rates", "hundreds", "not percent", "max"),
    ),
    Phrasing(
        "contingency",
        "We see {a} in the lead at {a.v:2} {u} [{a.id}]. Should it drop out, {b} would inherit first place with "
        "{b.v:2} {u} [{b.id}], and {c} would move up to second with {c.v:2} {u} [{c.id}].",
        runner_up="{b}, which would inherit first place with {b.v:2} {u}",
    ),
    Phrasing(
        "against the field",
        "Against a field average of {mean:2} {u} across {n} {nouns}, {a} delivers {a.v:2} {u} [{a.id}], which puts it "
        "{above/below} that average and in {a.rank:word} place.",
        runner_up="{b}, in {b.rank:word} place with {b.v:2} {u} [{b.id}]",
    ),
    Phrasing(
        "executive summary",
        "Executive summary. Recommended: {a}. Metric: {label}. Value: {a.v:2} {u} [{a.id}]. Next in line: {b}, "
        "{b.v:2} {u} [{b.id}]. Universe: {n} {nouns}. Weakest value: {z.v:2} {u} [{z.id}].",
        runner_up="{b} | {b.v:2} {u}",
    ),
    Phrasing(
        "telegram",
        "{a}: {a.v:2} {u}. {b}: {b.v:2} {u}. {c}: {c.v:2} {u}. [{a.id}, {b.id}, {c.id}]",
        runner_up="{b}",
    ),
    Phrasing(
        "headline only",
        "{Highest/Lowest} {label}: {a.v:2} {u} [{a.id}].",
        runner_up="{b}: {b.v:2} {u} [{b.id}]",
    ),
    Phrasing(
        "arrows",
        "{a} ({a.v:1}) → {b} ({b.v:1}) → {c} ({c.v:1}), all in {U} [{a.id}, {b.id}, {c.id}]",
        runner_up="{b} ({b.v:1} {U})",
    ),
    Phrasing(
        "slashes",
        "{a.rank:#} {a} {a.v:0} {u} [{a.id}] / {b.rank:#} {b} {b.v:0} {u} [{b.id}] / {c.rank:#} {c} {c.v:0} {u} "
        "[{c.id}] / N={n}",
        runner_up="{b} {b.v:0} {u}",
        needs=("hundreds",),
    ),
    Phrasing(
        "second first",
        "Next best is {b} at {b.v:2} {u} [{b.id}]; {a} has {a.v:2} {u} [{a.id}].",
        runner_up="{b}, next best at {b.v:2} {u}",
    ),
    Phrasing(
        "margin only",
        "{gap:2} {u} separate {a} [{a.id}] from {b} [{b.id}] on {label}.",
        runner_up="{b} [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "up or down on",
        "{label}: {a} {lead:1} % {up/down} on {b} [{a.id}] [{b.id}].",
        final="{a}.",
        runner_up="{b}",
        needs=("not percent",),
    ),
    Phrasing(
        "approximately",
        "Best {label}: {a}, approx. {a.v:~} {u} [{a.id}]; no. 2: {b}, approx. {b.v:~} {u} [{b.id}].",
        runner_up="{b}, approx. {b.v:~} {u}",
    ),
    Phrasing(
        "pipe table",
        "\n| Rank | {noun} | {label} ({u}) | Source |\n|---:|:---|---:|:---|\n| {a.rank} | {a} | {a.v:2} | [{a.id}] "
        "|\n| {b.rank} | {b} | {b.v:2} | [{b.id}] |\n| {c.rank} | {c} | {c.v:2} | [{c.id}] |",
        runner_up="{b} ({b.v:2} {u})",
    ),
    Phrasing(
        "bold bullets",
        "\n- **{a}** has the {highest/lowest} {label}: **{a.v:2} {u}** [{a.id}]\n- **{b}** comes second: **{b.v:2} "
        "{u}** [{b.id}]\n- Gap between them: **{gap:2} {u}** ({lead:1}%)",
        final="**{a}**",
        runner_up="**{b}**, {b.v:2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "headings",
        "\n### Result\n{a} ranks {a.rank:word} of {n} by {label}.\n### Evidence\n{a.v:2} {u} [{a.id}]; compare "
        "{b.v:2} {u} for {b} [{b.id}].\n### Caveat\nOnly {label} was considered.",
        runner_up="{b}, {b.v:2} {u}",
    ),
    Phrasing(
        "ticks and crosses",
        "\n✅ {a} – {a.v:2} {u} [{a.id}]\n❌ {b} – {b.v:2} {u} [{b.id}]\n❌ {c} – {c.v:2} {u} [{c.id}]\n❌ {d} – "
        "{d.v:2} {u} [{d.id}]",
        runner_up="{b} – {b.v:2} {u}",
    ),
    Phrasing(
        "backticks",
        "`{a}` has `{a.v:2} {u}` [{a.id}], `{b}` has `{b.v:2} {u}` [{b.id}], so `{a}` has the {greater/smaller} "
        "{label} of the two and, among all {n} rows, the {greatest/smallest}.",
        runner_up="`{b}` with `{b.v:2} {u}`",
    ),
    Phrasing(
        "nested list",
        "\n1. **Winner:** {a}\n   - {label}: {a.v:2} {u} [{a.id}]\n   - {tallies}: {a.t}\n2. **Second:** {b}\n   - "
        "{label}: {b.v:2} {u} [{b.id}]\n   - {tallies}: {b.t}",
        runner_up="{b} ({label}: {b.v:2} {u}; {tallies}: {b.t})",
        needs=("rates",),
    ),
    Phrasing(
        "quoted block",
        "\n> {a}: {a.v:2} {u} [{a.id}]\n> {b}: {b.v:2} {u} [{b.id}]\n\nThe first figure is the {larger/smaller} one, "
        "and no row of the {n} is {above/below} it.",
        runner_up="{b}: {b.v:2} {u}",
    ),
    Phrasing(
        "italic range",
        "*{a}* comes out on top with *{a.v:2} {u}* [{a.id}]. The remaining {others} {nouns} run from {b.v:2} {u} "
        "(*{b}*) [{b.id}] to {z.v:2} {u} (*{z}*) [{z.id}].",
        runner_up="*{b}*",
        needs=("clear last",),
    ),
    Phrasing(
        "from all is",
        "From all {n} {nouns} is {a} the best one, because it has {label} {a.v:2} {u} [{a.id}], and the next {noun}, "
        "{b}, has {b.v:2} {u} [{b.id}].",
        runner_up="{b}, it has {b.v:2} {u}",
    ),
    Phrasing(
        "in second place it is",
        "The {noun} that has the {biggest/smallest} {label} is {a}, with {a.v:e2} {u} [{a.id}]. In second place it is "
        "{b}, with {b.v:e2} {u} [{b.id}], a difference of {gap:e2} {u}.",
        runner_up="{b}, with {b.v:e2} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "as first comes",
        "As {a.rank:word} comes {a} with {a.v:2} {u} [{a.id}], as {b.rank:word} comes {b} with {b.v:2} {u} [{b.id}], "
        "as {c.rank:word} comes {c} with {c.v:2} {u} [{c.id}]. Therefore I would take {a}.",
        runner_up="{b} with {b.v:2} {u}",
    ),
    Phrasing(
        "kindly note",
        "Kindly note that {a} is having {a.v:2} {u} of {label} [{a.id}]. Balance {others} {nouns} are {lower/higher}, "
        "the nearest being {b} at {b.v:2} {u} only [{b.id}]. Request to proceed with {a}.",
        runner_up="{b} at {b.v:2} {u} only",
    ),
    Phrasing(
        "no articles",
        "In table is {n} {nouns}. {Biggest/Smallest} {label} has {a} - {a.v:s2} {u} [{a.id}]. After it goes {b} - "
        "{b.v:s2} {u} [{b.id}]. On last place is {z} - {z.v:s2} {u} [{z.id}].",
        runner_up="{b} - {b.v:s2} {u}",
        needs=("clear last",),
    ),
    Phrasing(
        "when I look to",
        "When I look to the {label}, then {a} has with {a.v:e1} {u} the {highest/lowest} value [{a.id}]; {b} comes on "
        "{b.v:e1} {u} [{b.id}], this is {short:e1}% {less/more}.",
        runner_up="{b}, {b.v:e1} {u}",
        needs=("not percent",),
    ),
    Phrasing(
        "checked carefully",
        "I checked carefully. {a} is number {a.rank:w} about {label}. The value is {a.v:2} {u} [{a.id}]. Number "
        "{b.rank:w} is {b}, the value is {b.v:2} {u} [{b.id}]. I think {a} is good choice, thank you.",
        runner_up="{b}, the value is {b.v:2} {u}",
    ),
    Phrasing(
        "arrives at the head",
        "Among the {n} {nouns}, it is {a} who arrives at the head, with {a.v:n2} {u} [{a.id}]; {b} follows with "
        "{b.v:n2} {u} [{b.id}] and {c} closes the podium with {c.v:n2} {u} [{c.id}].",
        runner_up="{b}, with {b.v:n2} {u}",
    ),
    Phrasing(
        "index of 100",
        "Index, {a} = 100: {b} {indexb:1} [{b.id}], {c} {indexc:1} [{c.id}]. Base value of {label}: {a.v:2} {u} "
        "[{a.id}].",
        runner_up="{b}, index {indexb:1}",
        needs=("not percent",),
    ),
    Phrasing(
        "mean and exceedance",
        "Mean {label} over {n} {nouns} is {mean:2} {u}; number of them above it: {over}. {a}, at {a.v:2} {u}, is the "
        "{maximum/minimum} [{a.id}]. {b}, at {b.v:2} {u}, is next to it in rank [{b.id}].",
        runner_up="{b} (rank {b.rank}, {b.v:2} {u})",
    ),
    Phrasing(
        "spread",
        "Values run from {a.v:2} {u} ({a}) [{a.id}] to {z.v:2} {u} ({z}) [{z.id}], a spread of {gapz:2} {u}. Nearest "
        "to the winning end is {b}: {b.v:2} {u} [{b.id}].",
        runner_up="{b}: {b.v:2} {u}",
        needs=("not percent", "clear last"),
    ),
    Phrasing(
        "ratio of extremes",
        "The ratio between the extremes, {a} and {z}, is {ratio:1} : 1 ({larger/smaller} one first: {a.v:2} {u} "
        "[{a.id}], {z.v:2} {u} [{z.id}]).",
        runner_up="{b} ({b.v:2} {u}) [{b.id}]",
        needs=("clear last", "max"),
    ),
    Phrasing(
        "shares, near",
        "{a} contributes {a.share:near} of the summed {label} [{a.id}], {b} contributes {b.share:near} [{b.id}] and "
        "{c} contributes {c.share:near} [{c.id}].",
        runner_up="{b}, contributing {b.share:near}",
        needs=("sums", "not percent", "max"),
    ),
    Phrasing(
        "leaving one out",
        "Leaving {a} out, the average over the other {others} {nouns} is {rest:2} {u}; {a} itself has {a.v:2} {u} "
        "[{a.id}], which is {restlead:1}% {more/less}.",
        runner_up="{b}: {b.v:2} {u} [{b.id}]",
        needs=("not percent",),
    ),
    Phrasing(
        "order statistics",
        "Sample size {n}. Order statistics of {label}: x(1) = {a.v:2} ({a}), x(2) = {b.v:2} ({b}), x(3) = {c.v:2} "
        "({c}), unit {u} [{a.id}, {b.id}, {c.id}].",
        runner_up="{b}, x(2) = {b.v:2} {u}",
    ),
    Phrasing(
        "relative to third",
        "Compared with {c} ({c.v:2} {u}) [{c.id}], {a} is {leadc:1}% {higher/lower}; compared with {b} ({b.v:2} {u}) "
        "[{b.id}], it is {lead:1}% {higher/lower}. Its own figure: {a.v:2} {u} [{a.id}].",
        runner_up="{b} ({b.v:2} {u})",
        needs=("not percent",),
    ),
    Phrasing(
        "one has to come first",
        "Out of {n:w} {nouns}, one has to come first, and it is {a}: {label} of {a.v:2} {u} [{a.id}]. {b} had to "
        "settle for second place with {b.v:2} {u} [{b.id}].",
        runner_up="{b}, which settled for second place with {b.v:2} {u}",
    ),
    Phrasing(
        "passive places",
        "First place is taken by {a}, for which {a.v:2} {u} were recorded [{a.id}]; second place is held by {b}, for "
        "which {b.v:2} {u} were recorded [{b.id}].",
        runner_up="{b}, for which {b.v:2} {u} were recorded",
    ),
    Phrasing(
        "somewhere between",
        "Somewhere {a.v:range} {u} is where {a} lands on {label} [{a.id}]; {b} is to be found {b.v:range} {u} "
        "[{b.id}].",
        runner_up="{b}, {b.v:range} {u}",
    ),
    Phrasing(
        "roughly",
        "Roughly {a.v:~} {u}: that is the figure that puts {a} in front of {others:w} other {nouns} [{a.id}]. Roughly "
        "{b.v:~} {u}: that is what {b} has to show [{b.id}].",
        runner_up="{b}, roughly {b.v:~} {u}",
    ),
    Phrasing(
        "so many times",
        "{a} has {ratio:times} the {label} of {z}, the {noun} at the bottom: {a.v:2} {u} against {z.v:2} {u} [{a.id}] "
        "[{z.id}].",
        runner_up="{b}, {b.v:2} {u}",
        needs=("times", "clear last"),
    ),
    Phrasing(
        "take the middle",
        "Take {m}, ranked {m.rank:th} of {n}: {m.v:2} {u} [{m.id}]. Then take {a}, ranked {a.rank:th}: {a.v:2} {u} "
        "[{a.id}]. One of those in between is {b}, ranked {b.rank:th}, with {b.v:2} {u} [{b.id}].",
        runner_up="{b}, ranked {b.rank:th}",
    ),
    Phrasing(
        "medals",
        "Gold goes to {a} ({a.v:1} {u}) [{a.id}], silver to {b} ({b.v:1} {u}) [{b.id}], bronze to {c} ({c.v:1} {u}) "
        "[{c.id}]; {d} misses the podium with {d.v:1} {u} [{d.id}].",
        runner_up="{b} (silver, {b.v:1} {u})",
    ),
    Phrasing(
        "while the last",
        "While {z}, at the far end of the {n} {nouns}, shows {z.v:2} {u} [{z.id}], {a} can point to {a.v:2} {u} "
        "[{a.id}] and {b} to {b.v:2} {u} [{b.id}].",
        runner_up="{b}, which can point to {b.v:2} {u}",
        needs=("clear last",),
    ),
    Phrasing(
        "symbol and variance",
        "{sym}{a.v:2} for {a} [{a.id}]; {sym}{b.v:2} for {b} [{b.id}]; variance {sym}{gap:2}.",
        runner_up="{b}, {sym}{b.v:2}",
        needs=("symbol",),
    ),
    Phrasing(
        "millions",
        "In {label}, {a} books {a.v:M2} {u} [{a.id}], {b} {b.v:M2} {u} [{b.id}] and {c} {c.v:M2} {u} [{c.id}].",
        runner_up="{b}, {b.v:M2} {u}",
        needs=("big",),
    ),
    Phrasing(
        "billions, code first",
        "{a} stands at {u} {a.v:bn2} [{a.id}] and {b} at {u} {b.v:bn2} [{b.id}]; {a} is the {larger/smaller} of the "
        "two.",
        runner_up="{b} at {u} {b.v:bn2}",
        needs=("billion",),
    ),
    Phrasing(
        "thousands, k",
        "{a} {a.v:k1} {u} [{a.id}], {b} {b.v:k1} {u} [{b.id}], {c} {c.v:k1} {u} [{c.id}] – rounded figures, ranked on "
        "{label}.",
        runner_up="{b}, {b.v:k1} {u}",
        needs=("thousands",),
    ),
    Phrasing(
        "thousands, word",
        "To the nearest thousand, {a} comes to {a.v:K0} {u} [{a.id}] and {b} to {b.v:K0} {u} [{b.id}]. More "
        "precisely, {a} has {a.v:2} {u}.",
        runner_up="{b}, some {b.v:K0} {u}",
        needs=("thousands",),
    ),
    Phrasing(
        "grand total",
        "{a} and {b} add up to {both:2} {u}: {a.v:2} {u} from {a} [{a.id}] plus {b.v:2} {u} from {b} [{b.id}]. The "
        "grand total of the {n} {nouns} is {total:2} {u}.",
        runner_up="{b} ({b.v:2} {u})",
        needs=("sums", "not percent"),
    ),
    Phrasing(
        "top three and rest",
        "Top three: {three:0} {u} ({a} {a.v:0}, {b} {b.v:0}, {c} {c.v:0}) [{a.id}, {b.id}, {c.id}]. Other {beyond}: "
        "{remainder:0} {u}.",
        runner_up="{b}, {b.v:0} {u}",
        needs=("sums", "hundreds", "not percent"),
    ),
    Phrasing(
        "code in front",
        "{a} {u} {a.v:2} [{a.id}]; {b} {u} {b.v:2} [{b.id}]; {c} {u} {c.v:2} [{c.id}]. Amounts are in {U}; criterion: "
        "{label}.",
        runner_up="{b}, {u} {b.v:2}",
        needs=("symbol",),
    ),
    Phrasing(
        "peak and trough",
        "{a} is at {a.v:1} {u} [{a.id}]; its highest reading was {top.v:1} {u} in {top:of} [{top.id}] and its lowest "
        "{low.v:1} {u} in {low:of} [{low.id}].",
        runner_up="{b} is at {b.v:1} {u} [{b.id}]",
        needs=("periods",),
    ),
    Phrasing(
        "trend in words",
        "With {a.v:2} {u}, {a} is in front [{a.id}]. Between {first:words} and {last:words} its {label} {trend "
        "increased/decreased} by {growth:1}%, from {first.v:2} to {last.v:2} {u} [{first.id}] [{last.id}].",
        runner_up="{b}, {b.v:2} {u}",
        needs=("periods", "not percent"),
    ),
    Phrasing(
        "the figures of the year",
        "The {year} figures put {a} at {a.v:2} {u} [{a.id}] and {b} at {b.v:2} {u} [{b.id}].",
        runner_up="{b}, at {b.v:2} {u} in {year}",
        needs=("year",),
    ),
    Phrasing(
        "quarters on record",
        "{periods:W} quarters of {year} are on record for {a}; the {last:of} figure, {last.v:2} {u} [{last.id}], is "
        "{trend above/below} the {first:of} figure, {first.v:2} {u} [{first.id}]. What counts here is the overall "
        "{a.v:2} {u} [{a.id}].",
        runner_up="{b}, {b.v:2} {u} overall",
        needs=("year", "periods"),
    ),
    Phrasing(
        "dated rows",
        "{a}: {a.v:2} {u}, row dated {a.date:long} [{a.id}]. {b}: {b.v:2} {u}, row dated {b.date:long} [{b.id}].",
        runner_up="{b}: {b.v:2} {u}",
    ),
    Phrasing(
        "date in brackets",
        "On {label}, {a} (date in its row: {a.date:us}) has {a.v:2} {u} [{a.id}], {b} (date in its row: {b.date:us}) "
        "has {b.v:2} {u} [{b.id}].",
        runner_up="{b} (date in its row: {b.date:us})",
    ),
    Phrasing(
        "tallies apart",
        "{label}: {a} {a.v:2} {u}, {b} {b.v:2} {u}. {tallies}: {a} {a.t}, {b} {b.t}, so {moretallies} apart [{a.id}, "
        "{b.id}].",
        runner_up="{b} with {b.v:2} {u}",
        needs=("rates",),
    ),
    Phrasing(
        "see the row",
        "See [{top.id}] for {top:of}, when {a} reached {top.v:2} {u}, its most in any one period, and [{low.id}] for "
        "{low:of}, when it had {low.v:2} {u}, its least. Overall it shows {a.v:2} {u} [{a.id}].",
        runner_up="{b}, overall {b.v:2} {u}",
        needs=("periods",),
    ),
    Phrasing(
        "deutsch, kurz",
        "{a} liegt bei {label} mit {a.v:e2} {u} [{a.id}] vorn, {b} folgt mit {b.v:e2} {u} [{b.id}]. Verglichen wurden "
        "{n} {nouns}; kein Wert ist {höher/niedriger}.",
        runner_up="{b}, {b.v:e2} {u}",
    ),
    Phrasing(
        "en français",
        "{a} arrive en tête avec {a.v:s2} {u} [{a.id}], soit la valeur la plus {élevée/basse} des {n} lignes ; {b} "
        "est deuxième avec {b.v:s2} {u} [{b.id}].",
        runner_up="{b}, {b.v:s2} {u}",
    ),
)
