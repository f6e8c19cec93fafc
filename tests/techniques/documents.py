"""A few real documents behind a tool that finds by shared words, and a policy that plays the experts from a table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from decisor.errors import ToolError
from decisor.types import Message, Observation, Record

DOCUMENTS = (
    ("Arrival (film)", "Arrival is a 2016 film. It was directed by Denis Villeneuve."),
    ("Denis Villeneuve", "Denis Villeneuve was born in Gentilly, Quebec."),
    ("Dune (1984 film)", "Dune is a 1984 film. It was directed by David Lynch."),
    ("David Lynch", "David Lynch was born in Missoula, Montana. He liked coffee."),
    ("Missoula", "Missoula is a city in Montana."),
)


@dataclass
class Passages:
    """Satisfies ``types.Tool`` and ``RowSource``. ``broken``: a word; a query with it fails."""

    documents: Sequence[tuple[str, str]] = DOCUMENTS
    name: str = "passages"
    form: str = "passages"
    is_restricted: bool = False
    broken: str = "\0"
    queries: list[str] = field(default_factory=list)

    def describe(self) -> str:
        return "Articles about films and people. Input: a few words."

    async def call(self, text: str) -> Observation:
        self.queries.append(text)
        if self.broken in text:
            raise ToolError("The index is gone.")
        words = set(re.findall(r"\w+", text.lower()))
        scored = [
            (-len(words & set(re.findall(r"\w+", f"{title} {body}".lower()))), place)
            for place, (title, body) in enumerate(self.documents)
        ]
        found = [self.documents[place] for score, place in sorted(scored) if score]
        return Observation(
            tuple(Record(f"r{n}", {"title": title}, body, title) for n, (title, body) in enumerate(found, 1))
        )

    def examples(self) -> Sequence[str]:
        return ()

    async def close(self) -> None:
        return None


def part_of(prompt: str, heading: str) -> str:
    """What stands under a heading of a prompt."""
    return prompt.partition(f"\n# {heading}\n")[2].partition("\n# ")[0].strip()


def role_of(prompt: str) -> str:
    form = prompt.rpartition("# Form of your reply\n")[2]
    known = {
        "One JSON": "planner",
        "Question:": "dynamic query",
        "Answer:": "generator",
        "Next:": "continue",
        "Evidence": "critic",
        "Helps:": "relevance",
        "Search:": "rewrite",
        "Query:": "query writer",
        "Final": "aggregator",
    }
    return next(role for start, role in known.items() if form.startswith(start))


@dataclass
class Policy:
    """Plays all experts: knows the plan, and who directed what and was born where, but believes it only from a
    document. ``says`` comes first: role to a function of the prompt that may give a reply."""

    plan: str
    says: Mapping[str, Callable[[str], str | None]] = field(default_factory=dict)
    prompts: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, messages: Sequence[Message]) -> str:
        prompt = messages[0].content
        role = role_of(prompt)
        self.prompts.append((role, prompt if len(messages) == 1 else messages[-1].content))
        said = self.says[role](prompt) if role in self.says else None
        return self.reply(role, prompt) if said is None else said

    def of(self, role: str) -> list[str]:
        return [prompt for one, prompt in self.prompts if one == role]

    def reply(self, role: str, prompt: str) -> str:
        asked, documents = part_of(prompt, "Question"), part_of(prompt, "Documents")
        if role == "planner":
            return self.plan
        if role == "generator":
            return self.answer(asked, documents)
        if role == "critic":
            return f"Evidence needed: {'yes' if documents == '(none)' else 'no'}"
        if role == "relevance":
            numbers = [n for n, text in numbered(documents) if subject(asked) in text.partition("|")[0]]
            return f"Helps: {f'[{numbers[0]}]' if numbers else '[No]'}"
        if role == "rewrite":
            return f"Search: {subject(asked)}"
        parts = part_of(prompt, "Parts and their answers").splitlines()
        return f"Final answer: {parts[-1].rpartition('-> ')[2]}\nBecause: {parts[-1].partition(':')[0]} says so."

    def answer(self, asked: str, documents: str) -> str:
        sentences = [one for _, text in numbered(documents) for one in re.findall(r"[^.|]+\.", text)]
        key = "directed by" if asked.startswith("Who directed") else "born in"
        for sentence in sentences:
            if key in sentence:
                return f"Answer: {sentence.partition(key)[2].strip(' .')}\nQuote: {sentence.strip()}"
        return "Answer: unknown\nQuote: none"


def numbered(documents: str) -> list[tuple[int, str]]:
    return [(int(number), text) for number, text in re.findall(r"^\[(\d+)\] (.*)$", documents, re.M)]


def subject(asked: str) -> str:
    found = re.search(r"directed (?:the film )?(.+?)\?|Where was (.+?) born", asked)
    return next(filter(None, found.groups())) if found else asked.strip("?")


def nodes(*parts: tuple[str, str]) -> str:
    """A plan in the form that is asked for, from (id, question) pairs; what a part needs, its tags say."""
    return json.dumps(
        {"nodes": [{"id": id, "ask": ask, "needs": re.findall(r"<A([\d.]+)>", ask)} for id, ask in parts]}
    )
