"""Claims of answers against the rows they cite: true ones pass in many spellings, false ones are named."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import pytest

import decisor
from decisor.llms.scripted import ScriptedLLM
from decisor.techniques.shared.objections import Claims, find_objections
from decisor.types import Objection, Record

QUESTION = "Which supplier has the most returns in 2024? Compare all suppliers. Service has 5 levels."
ROWS = [
    ("Borealis", 17, 5495, 0.2, 1234500.5, 87.0, "2024-03-05"),
    ("Aurora", 23, 4120, 0.35, 2310000.0, 64.5, "2024-07-19"),
    ("Castell Ltd", 42, 3075, 0.125, 980250.0, 112.25, "2023-11-30"),
    ("Dunmore & Co", 58, 2210, 0.08, 455000.0, 95.4, "2024-01-02"),
    ("Elbing", 61, 1377, 0.41, 3120999.0, 71.75, "2022-06-14"),
    ("Fenwick", 77, 986, 0.05, 120400.0, 133.1, "2024-09-08"),
]
COLUMNS = ("supplier", "supplier_id", "returns", "share_late", "revenue_usd", "price_eur", "last_order")
RECORDS = {f"o1.r{at}": Record(f"o1.r{at}", dict(zip(COLUMNS, row, strict=True))) for at, row in enumerate(ROWS, 1)}
SERIES = [("2022", 3100), ("2023", 4400), ("2024", 5495)]
RECORDS |= {
    f"o2.r{at}": Record(f"o2.r{at}", {"supplier": "Borealis", "year": int(year), "returns": number})
    for at, (year, number) in enumerate(SERIES, 1)
}


def objections(because: str, answer: str = "Borealis", runner_up: str = "") -> tuple[Objection, ...]:
    cited = {"o1.r1": None} | {id: None for id in RECORDS if f"{id}]" in because or f"{id}," in because}
    return find_objections(Claims(answer, because, runner_up, tuple(cited)), RECORDS, QUESTION)


TRUE = [
    "First, Borealis has 5,495 returns [o1.r1], and second, Aurora has only 4,120 [o1.r2].",
    "Aurora leads nobody by much. [o1.r2] shows 4,120 for it; [o1.r1] shows 5,495 for Borealis.",
    "Behind Borealis (5,495) [o1.r1] comes Aurora (4,120) [o1.r2].",
    "| | Borealis | Aurora |\n|---|---|---|\n| returns | 5,495 | 4,120 |\n| rank | 1 | 2 |\n[o1.r1, o1.r2]",
    "Borealis and Aurora have 5,495 [o1.r1] and 4,120 [o1.r2], so the former is higher.",
    "There is no doubt that Borealis is higher than Aurora [o1.r1, o1.r2].",
    "Versus Aurora, Borealis is 1,375 higher [o1.r2, o1.r1].",
    "Ahead of Aurora with 5,495 [o1.r1].",
    "Borealis wins, 1,375 between it and Aurora (5,495 vs 4,120, see [o1.r1] and [o1.r2]).",
    "Borealis;5495;[o1.r1]\nAurora;4120;[o1.r2]\nCastell Ltd;3075;[o1.r3]",
    "Borealis has the most returns, 5,495 [o1.r1].\n* 33.4% above the second\nAurora is that.",
    "1) Borealis 5,495 [o1.r1] 2) Aurora 4,120 [o1.r2]. The difference of two suppliers is 1,375.",
    "The 3 suppliers outside the top three have 4,573 returns; Borealis has 5,495 [o1.r1].",
    "| | returns |\n|---|---|\n| Borealis | 5,495 [o1.r1] |\n| all 6 | 17,263 |",
    "Borealis: 1st in returns, 4th in revenue [o1.r1].",
    "Between Borealis and Aurora the former has more returns: 5,495 [o1.r1] against 4,120 [o1.r2].",
    "None of Aurora and Elbing has more returns than Borealis: 4,120 and 1,377 against 5,495 [o1.r2, o1.r5, o1.r1].",
    "Compared with Aurora (4,120 returns) [o1.r2], it is higher: 5,495 [o1.r1].",
    "10:16 best Borealis 5,495 returns [o1.r1]",
    "Aurora goes 75 % of the way to Borealis (4,120 of 5,495 returns) [o1.r2] [o1.r1].",
    "Returns reach from 5,495 down to 986. At the good end Borealis [o1.r1], at the bad end Fenwick [o1.r6].",
    "Shares in points: Borealis 31.8, Aurora 23.9 [o1.r1, o1.r2].",
    "Borealis tops Aurora by 33.4 % [o1.r1, o1.r2].",
    "Were Aurora (4,120) [o1.r2] to gain 1,375 returns, it would be as high as Borealis [o1.r1].",
    "Between 5,400 and 5,500 returns are those of Borealis [o1.r1].",
    "Borealis has 5,495 returns [o1.r1].",
    "The most returns are 5,495, that of Borealis [o1.r1], against 4,120 for Aurora [o1.r2].",
    "The most returns are 5,495, that of Borealis.",
    "With 5495 returns, Borealis is the worst of them [o1.r1].",
    "Borealis: 5 495 returns [o1.r1]",
    "Borealis had 5.495 returns [o1.r1], Aurora 4.120 [o1.r2].",
    "Borealis had 5'495 returns [o1.r1].",
    "Borealis had about 5,500 returns [o1.r1].",
    "Borealis had nearly 5,500 returns [o1.r1].",
    "Borealis had more than 5,000 returns [o1.r1].",
    "Borealis made 1.23 million USD in revenue [o1.r1].",
    "Borealis made $1.23M [o1.r1].",
    "Borealis made $1,234,500.50 [o1.r1].",
    "Borealis made 1,234.5 thousand dollars [o1.r1].",
    "Borealis brought in USD 1,234,500.5 [o1.r1].",
    "Borealis asks 87EUR [o1.r1].",
    "Borealis asks €87 [o1.r1], Aurora €64.50 [o1.r2].",
    "Borealis asks 87 euros a piece [o1.r1].",
    "Borealis is late in 20 % of the cases [o1.r1].",
    "Borealis is late in 20 percent of the cases [o1.r1].",
    "Castell Ltd is late in 12.5% of the cases [o1.r3].",
    "Castell Ltd is late for a share of 0.125 [o1.r3].",
    "Borealis ordered last on 05.03.2024 [o1.r1].",
    "Borealis ordered last on 5 March 2024 [o1.r1].",
    "Borealis ordered last on March 5, 2024 [o1.r1].",
    "Borealis ordered last in March 2024 [o1.r1].",
    "Borealis ordered last in Q1 2024 [o1.r1].",
    "Borealis has 1,375 more returns than Aurora [o1.r1, o1.r2].",
    "Borealis (5,495) is ahead of Aurora (4,120) by 1,375 [o1.r1, o1.r2].",
    "Borealis beats Aurora with 5,495 returns [o1.r1].",
    "Borealis and Aurora have 5,495 and 4,120 returns, respectively [o1.r1, o1.r2].",
    "5,495 returns are Borealis's [o1.r1]; 4,120 are Aurora's [o1.r2].",
    "Borealis has 33.4 % more returns than Aurora [o1.r1, o1.r2].",
    "Borealis has 1.33 times the returns of Aurora [o1.r1, o1.r2].",
    "All 6 suppliers together have 17,263 returns; Borealis has 5,495 of them, a share of 31.8 % [o1.r1].",
    "The mean over the six suppliers is 2,877.2 returns; Borealis is above it with 5,495 [o1.r1].",
    "Borealis has the highest number of returns, 5,495 [o1.r1].",
    "Fenwick has the fewest returns, 986 [o1.r6].",
    "Aurora ranks second with 4,120 returns [o1.r2].",
    "Aurora is second with 4,120, Castell Ltd third with 3,075 [o1.r2, o1.r3].",
    "Returns: Borealis 5,495 (#1 of 6) [o1.r1].",
    "Borealis is No. 1 with 5,495 returns [o1.r1].",
    "Borealis rose from 3,100 in 2022 [o2.r1] to 5,495 in 2024 [o2.r3].",
    "Returns of Borealis grew from 4,400 to 5,495, by 24.9 % [o2.r2, o2.r3].",
    "In 2023 Borealis had 4,400 returns [o2.r2].",
    "Borealis costs 87 EUR, which is 22.5 EUR more than Aurora at 64.5 EUR [o1.r1, o1.r2].",
    "1. Borealis: 5,495 [o1.r1]\n2. Aurora: 4,120 [o1.r2]\n3. Castell Ltd: 3,075 [o1.r3]",
    "- Borealis, 5,495 returns [o1.r1]\n- Aurora, 4,120 returns [o1.r2]",
    "| supplier | returns |\n|---|---|\n| Borealis | 5,495 |\n| Aurora | 4,120 |",
    "It has 5,495 returns [o1.r1], Aurora only 4,120 [o1.r2].",
    "It leads with 5,495 returns [o1.r1]. The next one has 4,120 [o1.r2].",
    "Its returns, 5,495, are far above the others' [o1.r1].",
    "Of the 6 suppliers, two lie above 4,000: Borealis and Aurora.",
    "**Borealis** wins with **5,495** returns [o1.r1].",
    "5,495 - 4,120 = 1,375 is the distance from Borealis to Aurora [o1.r1, o1.r2].",
    "Dunmore & Co. has 2,210 returns [o1.r4]. Elbing has 1,377 [o1.r5].",
    "Castell has 3,075 returns [o1.r3].",
    "Service has 5 levels, and Borealis has 5,495 returns [o1.r1].",
    "Borealis (supplier_id 17) has 5,495 returns [o1.r1].",
    "Borealis has the most returns, 5,495 [o1.r1]. Aurora has the next-most at 4,120 [o1.r2].",
    "Aurora has the next-highest number of returns at 4,120 [o1.r2].",
    "Taken as a whole, its 5,495 returns [o1.r1] are the highest of all 6, with Aurora next on 4,120 [o1.r2].",
    "Row [o1.r1] gives Borealis 5,495. Row [o1.r2] gives Aurora 4,120. Since 5,495 is more than 4,120, Borealis is it.",
    "Lead over Aurora [o1.r2] = 5,495 − 4,120; lead over Castell Ltd [o1.r3] = (5,495 − 3,075) / 3,075 ≈ 78.7%.",
    "Year by year there are three entries for it, the last being 5,495 returns in 2024 [o2.r3].",
    "Borealis (5,495 returns) [o1.r1] tops the 5 other suppliers; Aurora (4,120 returns) [o1.r2] tops 4 of them.",
    "Aurora's price of 64.50 EUR is lower than that of Borealis, 87.00 EUR [o1.r2, o1.r1].",
    "There were 100 % of the rows compared; Borealis has 5,495 [o1.r1].",
    "Fenwick, at 133.10 EUR, is the most expensive [o1.r6].",
    "Compared with Elbing at 1,377, Borealis has 5,495 returns [o1.r5, o1.r1].",
    "Borealis hat 5.495 Retouren [o1.r1], Aurora folgt mit 4.120 [o1.r2].",
    "Returns at Borealis, the most of all suppliers, number 5,495 [o1.r1].",
    "One supplier stands out: Borealis, whose 5,495 returns exceed those of Aurora (4,120) [o1.r1, o1.r2].",
    "Borealis beats Aurora by 1,375 and has the most returns [o1.r1].",
    "Borealis, unlike Aurora, has the highest number of returns [o1.r1].",
    "Aurora has fewer returns than Borealis but more than Castell Ltd [o1.r2].",
    "Borealis leads Aurora, and ranks first of all suppliers [o1.r1].",
    "I recommend Borealis [o1.r1]; if price counts, choose Aurora.",
    "Without its rules I would pick Aurora, not Borealis [o1.r1].",
    "It had 3,100 in 2022 [o2.r1] and 5,495 in 2024 [o2.r3], so the returns went up by 77 %.",
    "Returns range from 5,495 [o1.r1] down to 986 (Fenwick) [o1.r6].",
    "All 5 alternatives have less than 5,495 [o1.r1]; suppliers compared: 6.",
    "I compared the returns of every supplier (6 rows); Borealis has 5,495 [o1.r1].",
    "Castell Ltd has the third-highest number of returns, 3,075 [o1.r3].",
    "Although Fenwick has the highest price at 133.1 EUR [o1.r6], Borealis has the most returns, 5,495 [o1.r1].",
    "Borealis has more returns than any other supplier: 5,495 [o1.r1].",
    "No supplier has more returns than Borealis with 5,495 [o1.r1].",
    "Compared with the average of 2,877, Borealis with 5,495 is 91 % higher [o1.r1].",
    "Aurora, the runner-up, is 25 % below Borealis [o1.r1, o1.r2].",
    "Of the six suppliers, only three exceed the mean: Borealis, Aurora and Castell Ltd.",
    "Among the 6 suppliers, 4 have fewer than 4,000 returns; Borealis has 5,495 [o1.r1].",
    "Elbing has the largest revenue (3.12 million USD) [o1.r5], but Borealis the most returns (5,495) [o1.r1].",
    "Borealis asks 87 EUR, less than Castell Ltd (112.25 EUR) and Fenwick (133.10 EUR) [o1.r1, o1.r3, o1.r6].",
    "Its share of late deliveries is 20 %, lower than Aurora's 35 % [o1.r1, o1.r2].",
    "Borealis accounts for nearly a third of all 17,263 returns [o1.r1].",
    "Borealis has roughly 5.5k returns, i.e. about 1.4k more than Aurora [o1.r1, o1.r2].",
    "Fenwick comes last with 986 returns [o1.r6].",
    "Ranking: 1) Borealis 5,495; 2) Aurora 4,120; 3) Castell Ltd 3,075 [o1.r1, o1.r2, o1.r3].",
    "Borealis > Aurora > Castell Ltd (5,495 > 4,120 > 3,075) [o1.r1, o1.r2, o1.r3].",
    "Borealis had its best year in 2024, with 5,495 returns [o2.r3], up from 3,100 in 2022 [o2.r1].",
    "Borealis's returns were lowest in 2022 (3,100) [o2.r1] and highest in 2024 (5,495) [o2.r3].",
    "The second-placed Aurora has 4,120 returns [o1.r2], 1,375 fewer than the winner Borealis [o1.r1].",
    "With 5,495 returns, Borealis tops the list, followed by Aurora (4,120), Castell Ltd (3,075) and Dunmore & "
    "Co (2,210) [o1.r1].",
    "Borealis is the supplier with the most returns; its price of 87 EUR is neither the highest nor the lowest "
    "[o1.r1].",
    "Neither Aurora (4,120) [o1.r2] nor Castell Ltd (3,075) [o1.r3] comes close to the 5,495 of Borealis [o1.r1].",
    "The gap between Borealis and Aurora is 1,375 returns; that between Aurora and Castell Ltd is 1,045 [o1.r1, "
    "o1.r2, o1.r3].",
    "If late share mattered, Fenwick (5 %) would be best [o1.r6]; by returns it is Borealis with 5,495 [o1.r1].",
    "Three suppliers have more than 3,000 returns, and Borealis is first among them [o1.r1].",
    "Borealis has 5,495 returns, which is more than twice the 2,210 of Dunmore & Co [o1.r1, o1.r4].",
    "Borealis liefert die meisten Retouren: 5.495, das sind 1.375 mehr als Aurora [o1.r1, o1.r2].",
    "Borealis compte 5 495 retours, soit 1 375 de plus qu'Aurora [o1.r1, o1.r2].",
    "Top 3 by returns are Borealis, Aurora and Castell Ltd; the other three suppliers have fewer than 2,500 "
    "each [o1.r1].",
    "Aurora is second by returns and also second by revenue among the suppliers [o1.r2].",
    "Of 5 levels of service Borealis has level 2; it has 5,495 returns [o1.r1].",
    "Dunmore & Co is number four with 2,210 returns [o1.r4].",
    "Only Borealis and Aurora have more than 4,000 returns [o1.r1, o1.r2].",
    "The two largest, Borealis and Aurora, have 9,615 returns together, more than the other four combined "
    "[o1.r1, o1.r2].",
    "Excluding Borealis, Aurora has the most returns (4,120) [o1.r2].",
    "Aurora's 4,120 returns [o1.r2] are higher than Castell Ltd's 3,075 [o1.r3], but lower than the 5,495 of "
    "Borealis [o1.r1].",
    "Elbing has a higher late share (41 %) than Borealis (20 %) [o1.r5, o1.r1].",
    "Borealis has the most returns but Elbing is more often late (0.41) [o1.r1, o1.r5].",
    "Elbing earns more than Borealis: 3.1 million against 1.2 million USD [o1.r5, o1.r1].",
    "Aurora was ordered from later than Borealis (2024-07-19 vs 2024-03-05) [o1.r2, o1.r1].",
    "On average a supplier has 2,877 returns; Elbing and Fenwick are well below that [o1.r5, o1.r6].",
    "Borealis (rank 1), Aurora (rank 2) and Castell Ltd (rank 3) lead [o1.r1].",
    "1st: Borealis (5,495) [o1.r1]; 2nd: Aurora (4,120) [o1.r2]; 3rd: Castell Ltd (3,075) [o1.r3].",
    "| # | supplier | returns | vs. Borealis |\n|---|---|---|---|\n| 1 | Borealis | 5,495 | 0 |\n| 2 | Aurora | "
    "4,120 | -1,375 |\n| 6 | Fenwick | 986 | -82 % |",
    "Borealis returned 5,495 items in 2024, Aurora 4,120; nobody else exceeded 4,000 [o1.r1, o1.r2].",
    "The most expensive supplier is Fenwick with 133.10 EUR; the cheapest is Aurora with 64.50 EUR [o1.r6, o1.r2].",
    "I recommend Borealis. It posts the highest returns here, 5,495 [o1.r1], while Aurora manages 4,120 [o1.r2].",
    "I recommend Borealis. Its 5,495 returns are the best of the 6 suppliers [o1.r1], ahead of Aurora at 4,120 "
    "[o1.r2], the second choice.",
    "No other supplier has more returns than Borealis (5,495) [o1.r1]; Aurora is number 2 with 4,120 [o1.r2].",
    "I checked all 6. Borealis is ahead with 5,495 [o1.r1].",
    "Over the 3 years shown, Borealis rose from 3,100 in 2022 [o2.r1] to 5,495 in 2024 [o2.r3].",
    "Borealis has 5,495 returns [o1.r1]. The nearest alternative is Aurora; [o1.r2] gives it 4,120.",
]
FALSE = [
    "Borealis has 5,495 returns [o1.r1]; rank=3/6.",
    "Borealis: 5,495 [o1.r1]. Aurora: 4,120, fourth [o1.r2].",
    "Borealis stood third with 5,495 [o1.r1].",
    "Its 5,495 returns [o1.r1] undercut the 4,120 of Aurora [o1.r2].",
    "Aurora is ahead of Borealis [o1.r2, o1.r1].",
    "Borealis and Aurora have 5,495 [o1.r1] and 4,120 [o1.r2], so the former is lower.",
    "Borealis has 5,495 returns, and no supplier has fewer [o1.r1].",
    "Borealis has 5,495 returns [o1.r1]. The remaining 9 are all below that.",
    "9 lie below Borealis (5,495) [o1.r1].",
    "Borealis has 54.95 returns [o1.r1].",
    "imho Aurora. It has 5,495 returns [o1.r1].",
    "Borealis, first out of 9, has 5,495 [o1.r1].",
    "I went through the 9. Borealis has 5,495 [o1.r1].",
    "5 of 6 suppliers came in above the average of 2,877 returns; Borealis has 5,495 [o1.r1].",
    "According to [o1.r1], 5,495 are of Borealis; according to [o1.r6], 4,120 are of Aurora.",
    "| | Aurora | Castell Ltd |\n|---|---|---|\n| returns | 5,495 | 3,075 |",
    '[1, "Borealis", 5495]\n[4, "Aurora", 4120]\n[3, "Castell Ltd", 3075]\nSee [o1.r1], [o1.r2], [o1.r3].',
    "Borealis has the most returns, 5,495 [o1.r1].\n* 33.4% below the second",
    "Hence Elbing.",
    "I recommend Borealis. It posts the lowest returns here, 5,495 [o1.r1], while Aurora manages 4,120 [o1.r2].",
    "No other supplier has more returns than Aurora (4,120) [o1.r2].",
    "Borealis has 5,495 [o1.r1]; Aurora (4,120) [o1.r2] is number 4.",
    "I checked all 9. Borealis is ahead with 5,495 [o1.r1].",
    "Over the 5 years shown, Borealis rose from 3,100 in 2022 [o2.r1] to 5,495 in 2024 [o2.r3].",
    "Borealis has 5,495 returns [o1.r1]. The nearest alternative is Aurora; [o1.r5] gives it 4,120.",
    "The price of Borealis is about 87,000 EUR [o1.r1], with Aurora at 64.5 EUR [o1.r2].",
    "I'd say Aurora: 5,495 returns [o1.r1], the most of all.",
    "Borealis has the most returns, 4,120 [o1.r1], before Aurora with 4,120 [o1.r2].",
    "The most returns are 4,120, that of Borealis [o1.r1], against 4,120 for Aurora [o1.r2].",
    "Borealis has 5,495 [o1.r1]. So I recommend Aurora.",
    "Best supplier: Aurora\nreturns: 5,495 [o1.r1]",
    "Borealis has 5,495 [o1.r1]; Aurora is the answer, with Elbing as the fallback.",
    "It had 3,100 in 2022 [o2.r1] and 5,495 in 2024 [o2.r3], so the returns went down by 77 %.",
    "Returns range from 5,495 [o1.r1] up to 986 (Fenwick) [o1.r6].",
    "All 3 alternatives have less than 5,495 [o1.r1].",
    "Borealis has 5,495 [o1.r1]; suppliers compared: 5.",
    "I compared the returns of every supplier (4 rows); Borealis has 5,495 [o1.r1].",
    "Borealis rose from 3,100 in 2022 [o2.r1] to 5,495 in 2022 [o2.r3].",
    "Borealis has 5494 returns [o1.r1].",
    "Borealis has 4,120 returns [o1.r1].",
    "With 5,945 returns, Borealis is the worst of them [o1.r1].",
    "Borealis has 5,495 thousand returns [o1.r1].",
    "Borealis had 54,950 returns [o1.r1].",
    "Borealis had about 6,500 returns [o1.r1].",
    "Borealis made 1.32 million USD in revenue [o1.r1].",
    "Borealis made $1.23B [o1.r1].",
    "Borealis made €1.23M [o1.r1].",
    "Borealis made 1,234.5 euros in revenue [o1.r1].",
    "Borealis asks 78EUR [o1.r1].",
    "Borealis asks $87 [o1.r1].",
    "Borealis asks 64.5 EUR [o1.r1].",
    "Borealis is late in 0.2 % of the cases [o1.r1].",
    "Borealis is late in 5 % of the cases [o1.r1].",
    "Castell Ltd is late in 21.5% of the cases [o1.r3].",
    "Borealis ordered last on 06.03.2024 [o1.r1].",
    "Borealis ordered last on 5 May 2024 [o1.r1].",
    "Borealis ordered last on July 19, 2024 [o1.r1].",
    "Borealis ordered last in Q3 2024 [o1.r1].",
    "Borealis had 4,400 returns in 2022 [o2.r2].",
    "In 2021 Borealis had 5,495 returns [o2.r3].",
    "Borealis has 1,735 more returns than Aurora [o1.r1, o1.r2].",
    "Borealis has 1,375 fewer returns than Aurora [o1.r1, o1.r2].",
    "Borealis (4,120) is ahead of Aurora (5,495) [o1.r1, o1.r2].",
    "Borealis and Aurora have 4,120 and 5,495 returns, respectively [o1.r1, o1.r2].",
    "Borealis has 43.4 % more returns than Aurora [o1.r1, o1.r2].",
    "Between 50 and 55 EUR is what Borealis asks [o1.r1].",
    "Borealis has 2.47 times the returns of Aurora [o1.r1, o1.r2].",
    "All 7 suppliers were compared; Borealis has 5,495 [o1.r1].",
    "Of the nine suppliers Borealis has the most, 5,495 [o1.r1].",
    "All suppliers together have 18,263 returns; Borealis has 5,495 [o1.r1].",
    "Borealis has 5,495 returns, a share of 38.1 % of all [o1.r1].",
    "The mean of all suppliers is 2,977.2 returns; Borealis has 5,495 [o1.r1].",
    "The mean over the suppliers is 2,877.2; Borealis is below it with 5,495 [o1.r1].",
    "Borealis has the lowest number of returns, 5,495 [o1.r1].",
    "Aurora has the highest number of returns, 4,120 [o1.r2].",
    "Borealis ranks second with 5,495 returns [o1.r1].",
    "Aurora is third with 4,120, Castell Ltd fourth with 3,075 [o1.r2, o1.r3].",
    "Returns: Borealis 5,495 (#1 of 9) [o1.r1].",
    "Borealis is No. 4 with 5,495 returns [o1.r1].",
    "Returns of Borealis fell from 3,100 [o2.r1] to 5,495 [o2.r3].",
    "Returns of Borealis grew from 4,400 to 5,495, by 42.9 % [o2.r2, o2.r3].",
    "Borealis has 5,495 returns [o1.r2].",
    "Aurora has 5,495 returns [o1.r1].",
    "Borealis costs 87 EUR, which is 32.5 EUR more than Aurora at 64.5 EUR [o1.r1, o1.r2].",
    "1. Borealis: 5,495 [o1.r1]\n2. Aurora: 4,210 [o1.r2]",
    "- Borealis, 5,495 returns [o1.r1]\n- Aurora, 3,075 returns [o1.r2]",
    "| supplier | returns |\n|---|---|\n| Borealis | 5,495 |\n| Aurora | 4,121 |",
    "It has 4,595 returns [o1.r1], Aurora only 4,120 [o1.r2].",
    "It has 5,495 returns [o1.r1], Aurora only 3,120 [o1.r2].",
    "**Borealis** wins with **5,459** returns [o1.r1].",
    "Dunmore & Co. has 2,120 returns [o1.r4].",
    "Elbing has 1,377 returns [o1.r5]. Fenwick has 1,377 as well [o1.r6].",
    "Fenwick, at 113.10 EUR, asks more than Borealis [o1.r6, o1.r1].",
    "Compared with Elbing at 1,733, Borealis has 5,495 returns [o1.r5, o1.r1].",
    "Borealis hat 5.945 Retouren [o1.r1].",
    "Borealis has 5,495 returns and asks 93 EUR [o1.r1].",
    "Borealis made 12,345,005 USD [o1.r1].",
    "5,495 - 4,120 = 1,475 is the distance from Borealis to Aurora [o1.r1, o1.r2].",
    "Fewer parcels will save another 4,200 EUR, and Borealis has 5,495 returns [o1.r1].",
    "Aurora is the sixth-placed with 4,120 returns [o1.r2].",
    "Borealis liegt auf Platz 4 mit 5.495 Retouren [o1.r1].",
    "Borealis fica em 3º com 5.495 [o1.r1].",
    "Borealis has 5,495 returns [o1.r1], 33.4 % more than the third-placed Aurora at 4,120 [o1.r2].",
    "Borealis has 5,495 returns [o1.r1], compared with 4,120 for Aurora [o1.r2]. All other suppliers are higher.",
    "Borealis has 5,495 returns [o1.r1]. Aurora is second with 4,120 [o1.r2], about 25.0 % more.",
    "Borealis has 5,495 returns [o1.r1]. This is 1,375 less than Aurora, which has 4,120 [o1.r2].",
    "5,495 is less than 4,120, so it is Borealis [o1.r1, o1.r2].",
    "| Rank | supplier | returns |\n|---|---|---|\n| 1 | Borealis | 5,495 |\n| 4 | Aurora | 4,120 |",
    "The three suppliers with the lowest number of returns are Borealis (5,495), Aurora (4,120) and Castell Ltd "
    "(3,075).",
    "The other 7 suppliers have fewer than the 5,495 returns of Borealis [o1.r1].",
    "Of the six suppliers, four exceed the mean of 2,877, Borealis among them [o1.r1].",
    "Aurora tops the list with 5,495 returns [o1.r1].",
    "Borealis has 5,495 returns and Aurora 4,120 [o1.r1], [o1.r2]. Of the two Borealis has less.",
    "Borealis has 5,495 returns [o1.r1], the fewest of all 6 suppliers.",
    "Borealis costs $87 or so [o1.r1].",
    "Borealis had 16 returns [o1.r1].",
]


@pytest.mark.parametrize("because", TRUE)
def test_a_true_claim_is_accepted(because: str) -> None:
    assert objections(because) == ()


@pytest.mark.parametrize("because", FALSE)
def test_a_false_claim_is_objected_to(because: str) -> None:
    assert objections(because)


def test_an_objection_names_the_row_and_what_it_says() -> None:
    assert objections("Borealis has 5494 returns [o1.r1].") == (
        Objection("figure", "You wrote 5494 for Borealis; row o1.r1 says 5495 (returns)."),
    )


def test_an_answer_in_no_row_and_one_in_a_row_that_is_not_cited() -> None:
    assert objections("it has 5,495 returns [o1.r1].", "Zeta Corp") == (
        Objection("candidate", "Zeta Corp stands in no row that you were shown."),
    )
    objection, *_ = objections("it is far ahead [o1.r1].", "Aurora")
    assert objection.kind == "row" and "o1.r2" in objection.text


def test_a_key_is_no_operand() -> None:
    assert objections("Borealis has 16 of them, 17 less 1 [o1.r1].")


def test_a_runner_up_is_the_next_by_what_decides() -> None:
    because = "Borealis has the most returns, 5,495 [o1.r1]."
    assert objections(because, runner_up="Aurora, 4,120 [o1.r2]") == ()
    (objection,) = objections(because, runner_up="Elbing, 1,377 [o1.r5]")
    assert objection.kind == "runner_up"


def test_words_that_look_like_numbers_never_end_a_run() -> None:
    chance = random.Random(1)
    keys = [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(1000)]
    keys += [f"{chance.getrandbits(160):040x}" for _ in range(1000)]
    odd = ["4E801", "1e400", "1.2,3.4 + 1 = 2", "9" * 400, "1e-999", "12e5", "0x1p3", *keys]
    for at in range(0, len(odd), 20):
        part = odd[at : at + 20]
        records = {f"o1.r{n}": Record(f"o1.r{n}", {"key": key, "name": key, "n": n}) for n, key in enumerate(part)}
        text = " and ".join(f"{key} [o1.r{n}]" for n, key in enumerate(part))
        find_objections(Claims(part[0], text, part[1], tuple(records)), records, text)


@pytest.mark.parametrize("word", ["4E801", "1e400", "1.2,3.4 + 1 = 2", "6e8f2a31-0000-4e80-9e99-12e400000000"])
def test_such_words_pass_through_a_whole_run(tmp_path: Path, word: str) -> None:
    path = tmp_path / "keys.csv"
    path.write_text(f'key,amount\n"{word}",3\n"b",2\n', "utf-8")
    llm = ScriptedLLM(
        [
            "Plan: [Step 1: look]\nThought: t\nAction: sql\nAction input: SELECT * FROM keys ORDER BY amount DESC",
            f"Re-plan: N\nFinal answer: {word}\nBecause: {word} has 3 [o1.r1]",
        ]
    )
    result = decisor.ask(f"Which key like {word} has most?", db=path, llm=llm, settings={"calling": "text"})
    assert result.answer == word


BUILDINGS = {
    f"o1.r{at}": Record(f"o1.r{at}", {"id": id, "name": "fishing wharf", "supply_after": supply, "price": price})
    for at, (id, supply, price) in enumerate([(2523, 116.7615, 7.41041), (2530, 49.044, 10.73858)], 1)
} | {"o2.r1": Record("o2.r1", {"goods": "grain", "supply": 2377.135})}


@pytest.mark.parametrize(
    ("because", "said"),
    [
        ("id 2523, fishing wharf, price 7.41041 [o1.r1]. Next is 2530, price 10.73858 [o1.r2].", ()),
        ("2523 and 2530 are the only two; 2523 leads with 7.41041 [o1.r1] against 10.73858 [o1.r2].", ()),
        ("2523 has a price of 8.41041 [o1.r1].", ("You wrote 8.41041 for 2523; row o1.r1 says 7.41041 (price).",)),
        (
            "2530 has a price of 7.41041 [o1.r2].",
            ("You wrote 7.41041 for 2530; row o1.r2 says 10.73858 (price).",),
        ),
        ("2523 costs 7.41041 [o1.r1], 2530 costs 10.73858 [o1.r1].", ("You cite o1.r1 (fishing wharf) for 2530,",)),
    ],
)
def test_a_key_names_a_row_where_candidates_are_keys(because: str, said: tuple[str, ...]) -> None:
    found = find_objections(
        Claims("2523", because, "2530", ("o1.r1", "o1.r2")), BUILDINGS, "Which id lowers the price?"
    )
    assert len(found) == len(said)
    assert all(objection.text.startswith(text) for objection, text in zip(found, said, strict=True))


def test_a_word_of_all_before_a_colon_names_no_column() -> None:
    rows = {"o1.r1": Record("o1.r1", {"supplier": "Elm", "revenue": 4504.36, "products": 1})}
    because = "Smallest revenue over all its products: 4504.36 [o1.r1]."
    assert not find_objections(Claims("Elm", because, "", ("o1.r1",)), rows, "Which supplier?")


SITES = {
    f"o1.r{at}": Record(f"o1.r{at}", {"site": name, "late": late, "orders": orders, "late_share": late / orders})
    for at, (name, late, orders) in enumerate([("Elm", 2, 123), ("Oak", 4, 104), ("Ash", 5, 127)], 1)
}
LINKS = {
    "o2.r1": Record("o2.r1", {"source": "Elm", "target": "Basel", "flow": 2.5}),
    "o2.r2": Record("o2.r2", {"source": "Oak", "target": "Basel", "flow": 1.75}),
    "o3.r1": Record("o3.r1", {"node": "Elm", "gain": 0.95904, "profit_gain": 0.02691}),
    "o3.r2": Record("o3.r2", {"node": "Oak", "gain": 0.19786, "profit_gain": 0.00555}),
}


@pytest.mark.parametrize(
    ("because", "records", "texts"),
    [
        ("Elm: late 2 of orders 123 [o1.r1]. Next, Oak: late 4 of orders 104 [o1.r2].", SITES, []),
        ("Elm is first with 2 over 123 orders = 0.01626 [o1.r1].", SITES, []),
        ("Into Basel: Elm gain 0.95904, profit_gain 0.02691 [o3.r1]; Oak gain 0.19786 [o3.r2].", LINKS, []),
        ("Elm makes 0.95904 * 0.02691 = 0.02580 of it [o3.r1].", LINKS, []),  # cut off, not rounded: 0.025808
        (
            "Elm has 2 of them [o1.r1], Oak has 5 of them [o1.r2].",
            SITES,
            ["5 for Oak; it stands in o1.r3 (Ash) alone."],
        ),
        ("Elm: late 3 of orders 123 [o1.r1].", SITES, ["3 for Elm; row o1.r1 says 2 (late)."]),
        ("Elm grows by 61.7 [o1.r1].", SITES, ["61.7 for Elm; no row that you cite says so."]),
    ],
)
def test_figures_of_answers_that_were_written_by_hand(
    because: str, records: dict[str, Record], texts: list[str]
) -> None:
    cited = tuple(id for id in records if f"{id}]" in because)
    found = find_objections(Claims("Elm", because, "", cited), records, "Which site has the smallest share of late?")
    assert [one.text for one in found] == [f"You wrote {text}" for text in texts]
