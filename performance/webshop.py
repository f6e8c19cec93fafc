"""WebShop: loading, a step, a fork, beside bm25s; ranks beside Lucene itself (from the wheel arcadedb-embedded).

python performance/webshop.py [FOLDER] [--times N]    N copies of the products, to see how cost grows

A minute. Needs decisor[lab] and bm25s.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from decisor.lab.webshop.products import load_products, product_search_text
from decisor.lab.webshop.shop import Shop, WebShop, build_bm25_index, extract_terms, list_clickable, open_shop
from decisor.types import Action

DATA = Path(os.environ.get("DECISOR_DATA", "../shared/data")) / "webshop"


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(act: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    got = act(*given)
    return time.perf_counter() - began, got


async def walk(shop: Shop, steps: int = 5000) -> dict[str, list[float]]:
    """Random shoppers; seconds of each step by its kind, and of forks."""
    rng, env = random.Random(1), WebShop(shop, "")
    took: dict[str, list[float]] = {"search": [], "click": [], "fork": []}
    queries = [goal.text for goal in shop.goals[:500]]
    for _ in range(steps):
        offered = list_clickable(env.view)
        if not offered or env.view.page == "bought" or rng.random() < 0.2:
            action = Action("search", rng.choice(queries))
            env = env if env.view.page != "bought" else WebShop(shop, "")
        else:
            action = Action("click", rng.choice(offered))
        began = time.perf_counter()
        await env.step(action)
        took[action.tool].append(time.perf_counter() - began)
        began = time.perf_counter()
        env = env.fork()
        took["fork"].append(time.perf_counter() - began)
    return took


def ranks(shop: Shop, find: Callable[[str], Sequence[int]]) -> str:
    found = [(shop.numbers[goal.asin], list(find(goal.text.lower()))) for goal in shop.goals[:500]]
    at = [hits.index(gold) if gold in hits else -1 for gold, hits in found]
    return f"first {at.count(0)}, in ten {sum(0 < one < 10 for one in at)} more, missing {at.count(-1)}"


def bm25s_find(texts: Sequence[str]) -> Callable[[str], Sequence[int]]:
    import bm25s

    peer = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    peer.index([extract_terms(text) for text in texts], show_progress=False)

    def find(query: str) -> Sequence[int]:
        hits, _ = peer.retrieve([extract_terms(query)], k=50, show_progress=False)
        return [int(hit) for hit in hits[0]]

    return find


def lucene_find(texts: Sequence[str]) -> Callable[[str], Sequence[int]]:
    import arcadedb_embedded
    import jpype

    home = Path(arcadedb_embedded.__file__).parent
    library = next(home.glob("jre/lib/server/libjvm.*"))
    jpype.startJVM(str(library), "-Xmx512m", classpath=[str(jar) for jar in home.glob("jars/lucene*.jar")])
    lucene: Any = jpype.JPackage("org").apache.lucene
    analyzer, folder = lucene.analysis.en.EnglishAnalyzer(), lucene.store.ByteBuffersDirectory()
    scores = lucene.search.similarities.BM25Similarity(0.9, 0.4)
    settings = lucene.index.IndexWriterConfig(analyzer)
    settings.setSimilarity(scores)
    writer = lucene.index.IndexWriter(folder, settings)
    for text in texts:
        document = lucene.document.Document()
        document.add(lucene.document.TextField("text", text, lucene.document.Field.Store.NO))
        writer.addDocument(document)
    writer.forceMerge(1)
    writer.close()
    searcher = lucene.search.IndexSearcher(lucene.index.DirectoryReader.open(folder))
    searcher.setSimilarity(scores)

    def find(query: str) -> Sequence[int]:
        stream = analyzer.tokenStream("text", query)
        word = stream.addAttribute(lucene.analysis.tokenattributes.CharTermAttribute.class_)
        stream.reset()
        words: Counter[str] = Counter()
        while stream.incrementToken():
            words[str(word.toString())] += 1
        stream.end()
        stream.close()
        clauses = lucene.search.BooleanQuery.Builder()
        for text, times in words.items():
            one = lucene.search.TermQuery(lucene.index.Term("text", text))
            clauses.add(lucene.search.BoostQuery(one, float(times)), lucene.search.BooleanClause.Occur.SHOULD)
        return [int(hit.doc) for hit in searcher.search(clauses.build(), 50).scoreDocs]

    return find


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("folder", nargs="?", type=Path, default=DATA)
    reader.add_argument("--times", type=int, default=1)
    given = reader.parse_args()
    if given.times > 1:
        grown(given.folder, given.times)
        return
    before = peak_mb()
    seconds, shop = timed(open_shop, given.folder)
    size = f"{len(shop.products):,} products, {len(shop.goals):,} goals"
    print(f"{size}: loaded in {seconds:.2f} s, {peak_mb() - before:.0f} MB")
    took = asyncio.run(walk(shop))
    for kind, times in [*took.items(), ("step", took["search"] + took["click"])]:
        slow = sorted(times)[int(0.99 * len(times))]
        print(f"{kind:7} {milli(times)} ms median, {1000 * slow:.3f} ms at 99 %, {len(times)} times")
    texts = list(map(product_search_text, shop.products))
    queries = [goal.text.lower() for goal in shop.goals[:500]]
    ours = [timed(shop.index.find, query, 50)[0] for query in queries]
    print(f"ours   {ranks(shop, lambda query: shop.index.find(query, 50))}; {milli(ours)} ms")
    for name, opened in (("bm25s", bm25s_find), ("lucene", lucene_find)):
        try:
            find = opened(texts)
        except ImportError as error:
            print(f"{name}: not here ({error})")
            continue
        theirs = [timed(find, query)[0] for query in queries]
        same = sum(list(find(query))[:10] == shop.index.find(query, 10) for query in queries)
        ratio = statistics.median(ours) / statistics.median(theirs)
        print(f"{name:6} {ranks(shop, find)}; {milli(theirs)} ms (ours {ratio:.2f} of it); same first ten {same}")


def grown(folder: Path, times: int) -> None:
    """The search index of a shop of many copies."""
    before, items = peak_mb(), list(load_products(folder))
    copies = [replace(item, asin=f"{item.asin}{number}") for number in range(times) for item in items]
    began = time.process_time()
    index = build_bm25_index(map(product_search_text, copies), extract_terms)
    seconds = time.process_time() - began
    print(f"{len(copies):,} products: indexed in {seconds:.1f} s of CPU, {peak_mb() - before:.0f} MB more")
    found = [timed(index.find, item.title, 50)[0] for item in items[:300]]
    print(f"search {milli(found)} ms median")


def milli(seconds: Sequence[float]) -> str:
    return f"{1000 * statistics.median(seconds):.3f}"


if __name__ == "__main__":
    main()
