"""A made-up encyclopaedia, and questions of two and three hops over it. Nothing in it is about the world.

People, towns, counties, countries, films, books, bands and companies know each other by relations. Each has a passage
of several sentences, with namesakes and small talk in it, so that words alone mislead a search as in real corpora.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from decisor.lab.training import Hop, HopExample
from decisor.types import Record

FIRST = (
    "Alda Bero Cyra Dorin Elva Fenn Galen Hesta Ivo Jora Kasper Lene Maro Nadia Odo Perla Quin Rasmus Selma Tibor Ulla "
    "Viggo Wanda Xenia Yorick Zora"
)
LAST = "Abel Brandt Corvin Dahl Eskil Fornes Grau Holm Isen Jarre Kolb Lund Moro Nestor Oster Pell Roth Sand Tarn Voss"
HEADS = "Bel Cor Dun Esk Fal Gar Hol Ist Jor Kel Lor Mar Nor Oss Per Quel Ros Sol Tar Ul Vel Wen Yar Zan"
MIDDLES = " en or um al"
PLACES = "by dale fell ford gate ham haven holm mere mouth stead thorpe wick"
REALMS = "ia mark land stan"
THINGS = "River Garden Winter Lantern Bridge Letter Island Harvest Mirror Tower Silence Orchard Harbour Journey"
TONES = "Long Silver Broken Quiet Northern Last Hidden Golden Burning Distant Second Paper"
TRADES = "painter engineer botanist novelist singer economist architect physician historian footballer"
FIRMS = "Works Press Lines Bank Mills"
SUFFIXES = "II,the Younger,of the North,Major,Minor,West"
FILLER = (
    "A festival is held there every other year.",
    "It was mentioned in several newspapers of the period.",
    "Critics were divided, and the public was not.",
    "A plaque was put up in 1931.",
    "Little else is recorded.",
    "The archive was damaged by a fire and restored later.",
    "It has been compared with works of the same years.",
    "Several streets are named in this honour.",
    "The census of 1950 counts fewer than in the year before.",
)

# kind -> relation -> (kind of the value, how a passage tells it, how a question names it)
RELATIONS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "person": {
        "birthplace": ("town", "{s} was born in {o}", "the birthplace of {s}"),
        "spouse": ("person", "{s} married {o}", "the spouse of {s}"),
        "employer": ("company", "{s} worked for {o} for many years", "the employer of {s}"),
    },
    "town": {
        "county": ("county", "{s} lies in {o}", "the county where {s} is located"),
        "mayor": ("person", "The mayor of {s} is {o}", "the mayor of {s}"),
    },
    "county": {
        "seat": ("town", "The seat of {s} is {o}", "the seat of {s}"),
        "country": ("country", "{s} belongs to {o}", "the country that {s} belongs to"),
    },
    "country": {
        "capital": ("town", "The capital of {s} is {o}", "the capital of {s}"),
        "founder": ("person", "{s} was founded by {o}", "the founder of {s}"),
    },
    "film": {
        "director": ("person", "{s} was directed by {o}", "the director of {s}"),
        "writer": ("person", "The script of {s} is by {o}", "the writer of {s}"),
    },
    "book": {
        "author": ("person", "{s} is a novel by {o}", "the author of {s}"),
        "publisher": ("company", "{s} was published by {o}", "the publisher of {s}"),
    },
    "band": {
        "leader": ("person", "{s} is led by {o}", "the leader of {s}"),
        "hometown": ("town", "{s} comes from {o}", "the town that {s} comes from"),
    },
    "company": {
        "seat": ("town", "{s} has its head office in {o}", "the town where {s} has its head office"),
        "founder": ("person", "{s} was founded by {o}", "the founder of {s}"),
    },
}
SHARES = {"person": 8, "town": 4, "county": 1, "country": 1, "film": 3, "book": 2, "band": 1, "company": 2}
WHAT = {kind: "Who" if kind == "person" else f"What {kind}" for kind in SHARES}


@dataclass(frozen=True)
class Encyclopaedia:
    """A made-up encyclopaedia: passages by id, and questions with their gold hops."""

    passages: Mapping[str, Record]
    examples: tuple[HopExample, ...]


@dataclass
class EncyclopaediaEntry:
    id: str
    kind: str
    name: str
    facts: dict[str, str]


def make_encyclopaedia(questions: int = 400, size: int = 60, seed: int = 1) -> Encyclopaedia:
    """Make an encyclopaedia of ``size`` times 22 passages. The same seed gives the same one."""
    rng = Random(seed)
    things = make_encyclopaedia_entries(size, rng)
    by_kind = {kind: [thing for thing in things if thing.kind == kind] for kind in SHARES}
    for thing in things:
        for relation, (kind, _, _) in RELATIONS[thing.kind].items():
            thing.facts[relation] = rng.choice([other for other in by_kind[kind] if other is not thing]).id
    by_id = {thing.id: thing for thing in things}
    passages = {
        thing.id: Record(thing.id, {"title": thing.name}, write_entry_passage(thing, by_id, rng)) for thing in things
    }
    return Encyclopaedia(passages, tuple(make_hop_question(things, by_id, rng) for _ in range(questions)))


def make_encyclopaedia_entries(size: int, rng: Random) -> list[EncyclopaediaEntry]:
    names: set[str] = set()
    things = list[EncyclopaediaEntry]()
    for kind, share in SHARES.items():
        while sum(thing.kind == kind for thing in things) < share * size:
            name = draw_entry_name(kind, rng)
            if name in names:
                name = f"{name} {rng.choice(SUFFIXES.split(','))}"
            if name not in names:
                names.add(name)
                things.append(EncyclopaediaEntry(f"g{len(things):05d}", kind, name, {}))
    return things


def draw_entry_name(kind: str, rng: Random) -> str:
    def one(words: str) -> str:
        return rng.choice(words.split(" "))

    place = one(HEADS) + one(MIDDLES) + one(PLACES)
    if kind == "person":
        return f"{one(FIRST)} {one(LAST)}"
    if kind == "town":
        return place
    if kind == "county":
        return f"{place} County"
    if kind == "country":
        return one(HEADS) + one(MIDDLES) + one(REALMS)
    if kind == "company":
        return f"{one(LAST)} {one(FIRMS)}"
    title = f"The {one(TONES)} {one(THINGS)}"
    return title if kind == "film" else f"{title}s" if kind == "band" else f"{title} of {place}"


def write_entry_passage(thing: EncyclopaediaEntry, by_id: Mapping[str, EncyclopaediaEntry], rng: Random) -> str:
    """Write a passage: its kind, its facts in any order, a namesake or neighbour, and small talk."""
    what = f"a {rng.choice(TRADES.split())}" if thing.kind == "person" else f"a {thing.kind}"
    sentences = [
        form.format(s=thing.name, o=by_id[thing.facts[relation]].name) + "."
        for relation, (_, form, _) in RELATIONS[thing.kind].items()
    ]
    other = rng.choice(list(by_id.values())).name
    # A name without a fact: a search for it also finds this passage.
    sentences += [
        f"It is sometimes confused with {other}." if thing.kind != "person" else f"A letter to {other} survives."
    ]
    sentences += rng.sample(FILLER, 3)
    rng.shuffle(sentences)
    return " ".join([f"{thing.name} is {what}.", *sentences])


def make_hop_question(
    things: Sequence[EncyclopaediaEntry], by_id: Mapping[str, EncyclopaediaEntry], rng: Random
) -> HopExample:
    """Make a question from a chain of two or three relations, nested from the inside."""
    while True:
        start = here = rng.choice(things)
        hops, phrase, passed = list[Hop](), start.name, {start.id}
        for number in range(rng.choice((2, 2, 3))):
            relation = rng.choice(list(RELATIONS[here.kind]))
            _, _, form = RELATIONS[here.kind][relation]
            there = by_id[here.facts[relation]]
            subject = here.name if not number else f"#{number}"
            ask = f"{WHAT[there.kind]} is {form.format(s=subject)}?"
            hops.append(Hop(ask, there.name, here.id))
            phrase, here = form.format(s=phrase), there
            # A chain that comes back to itself asks for what the question names: draw another.
            if here.id in passed:
                break
            passed.add(here.id)
        else:
            asks = tuple(hop.ask for hop in hops) if rng.random() < 0.5 else ()
            return HopExample(f"{WHAT[here.kind]} is {phrase}?", tuple(hops), asks)
