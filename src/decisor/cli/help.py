"""What ``--help`` says beside an option's own words: examples, and what kind of value is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

EXAMPLES = {
    "demo": ("decisor demo",),
    "ask": (
        "decisor ask --example trade",
        'decisor ask "Which supplier should we drop?" --db offers.csv --rules rules.txt --lm gpt-4.1-mini',
        'decisor ask "Which site?" --db sqlite:///sites.db --docs reports.index --lm qwen3:8b@localhost:11434',
        'decisor ask "Which site?" --db sqlite:///sites.db --model sites.toml --html decision.html',
        'decisor ask "And without oak?" --continue',
    ),
    "history": ("decisor history --search supplier", "decisor history mark 12 right"),
    "show": ("decisor show last", "decisor show 12 --html decision.html"),
    "trace": ("decisor trace run.jsonl", 'decisor trace run.jsonl --edit 2 --thought "Prices first." --db offers.csv'),
    "resume": ("decisor resume last --calls 20",),
    "record": ("decisor show 12 --record decision.json", "decisor record decision.json --html decision.html"),
    "approve": ('decisor approve 12 --by "Ada Lovelace"', 'decisor approve decision.json --by Ada --note "Until May."'),
    "verify": ("decisor verify last", "decisor verify run.jsonl --db offers.csv"),
    "index": ("decisor index reports/ --out reports.index",),
    "graph": ("decisor graph load plants.csv roads.csv --source from --target to --out roads.kgl",),
    "serve": ("decisor serve --db sqlite:///sites.db --lm qwen3:8b@localhost:11434",),
    "mcp": ("decisor mcp --demo", "decisor mcp --db sales.db --lm gpt-4.1-mini"),
    "doctor": (
        "decisor doctor", "decisor doctor --lm qwen3:8b@localhost:11434", "decisor doctor --db offers.csv --lm none",
    ),
    "model": (
        'decisor model draft "Which office?" --rules rules.txt --db offices/ --out office.toml --lm gpt-4.1-mini',
        "decisor model check office.toml --db offices/",
        'decisor model whatif office.toml "turning points" --db offices/',
    ),
    "model whatif": (
        'decisor model whatif office.toml "why oak" --db offices/',
        'decisor model whatif office.toml "turning points" --db offices/',
        'decisor model whatif office.toml "team.people × 1.2" --db offices/',
    ),
    "definitions": ("decisor definitions draft --db sales.db --lm none --out words.toml",),
    "eval": ("decisor eval -b dqa -t plan_rag -t iter_rag --lm gpt-4.1-mini --store run.db",),
    "config": ("decisor config", "decisor config trust"),
    "train": ("decisor train query-scorer --corpus corpus.jsonl --questions questions.jsonl --out scorer",),
    "bench": ("decisor bench list", "decisor bench dqa run --data DIR -t exact -o semantics=released"),
    "report": ("decisor report run.db --html report.html", "decisor report run.db --against before.db"),
    "prompts": ("decisor prompts plan_rag > mine.toml",),
}  # fmt: skip
KINDS = {Path: "FILE", int: "N", float: "X", str: "TEXT"}


def dress(command: Any, words: tuple[str, ...] = ()) -> None:
    """A command and those below it: each value gets a word that a stranger knows, and examples stand at the end."""
    if lines := EXAMPLES.get(" ".join(words)):
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            say_argument(parameter)
        elif parameter.metavar is None and not getattr(parameter, "is_flag", False):
            parameter.metavar = kind(parameter)
    for name, one in getattr(command, "commands", {}).items():
        one.short_help = one.short_help or (one.help or "").partition("\n\n")[0].replace("\n", " ")
        dress(one, (*words, name))


def say_argument(argument: Any) -> None:
    """By its word alone, in brackets where it may be left out: click's own line names a type of Python."""
    word = argument.metavar = argument.metavar or argument.name.upper()
    record = argument.get_help_record
    argument.get_usage_pieces = lambda context: [word if argument.required else f"[{word}]"]
    argument.get_help_record = lambda context: (word, record(context)[1])


def kind(option: object) -> str | None:
    """A word for the values of an option; None where typer does not say their type."""
    annotation = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    value = next(iter(get_args(annotation)), annotation)
    return KINDS.get(value) if isinstance(value, type) else None
