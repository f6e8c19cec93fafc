"""The documentation as a site: pages of docs/, one page for each technique, the API from docstrings, and a menu.

python docs/pages/make.py [FOLDER]    build/docs unless named; then: zensical build -f FOLDER/zensical.toml

`make docs` does both.

Nothing is fetched: the theme has its own files, and no font, script or picture comes from elsewhere.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path

import decisor
from decisor.techniques import TECHNIQUES, find_technique_class

HERE = Path(__file__).parent
DOCS, ROOT = HERE.parent, HERE.parent.parent
BESIDE = {
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
LINK = re.compile(r"(\]\()([^)#\s]*)(#[^)\s]*)?(\))")
ADDRESS = re.compile(r"[a-z]+:")
CODE = re.compile(r"(^```.*?^```[ ]*$|`[^`\n]+`)", re.M | re.S)

Menu = list[tuple[str, "str | Menu"]]


def make(folder: Path) -> Path:
    """Every page below ``folder``/pages, and zensical.toml: its path."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.py", "*.toml", "__pycache__", "index.md"))
    shutil.rmtree(pages / "pages", ignore_errors=True)
    for page in sorted(set(DOCS.rglob("*.md")) - {DOCS / "index.md"}):
        write(pages / page.relative_to(DOCS), moved(page.read_text("utf-8"), page))
    for name, place in BESIDE.items():
        write(pages / place, moved((ROOT / name).read_text("utf-8"), ROOT / name))
    write(pages / "index.md", moved((ROOT / "README.md").read_text("utf-8"), ROOT / "README.md"))
    write(pages / "decisions" / "index.md", decisions())
    write(pages / "glossary.md", glossary())
    techniques = technique_pages(pages)
    api = api_pages(pages)
    config = folder / "zensical.toml"
    write(config, settings(menu(techniques, api)))
    return config


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def moved(text: str, page: Path, depth: int | None = None) -> str:
    """The page with its links as they are on the site: what lies beside docs/ is a page there, and what is on no page
    leads to the one on the code. ``depth``: folders above it on the site, where it is written elsewhere.
    """
    if depth is None:
        depth = len(page.relative_to(DOCS).parts) - 1 if page.is_relative_to(DOCS) else 0

    def link(match: re.Match[str]) -> str:
        before, target, anchor, after = match[1], match[2], match[3] or "", match[4]
        if ADDRESS.match(target):
            return match[0]
        place = (page.parent / target).resolve() if target else page
        if place.is_relative_to(DOCS):
            to = (place.relative_to(DOCS) / "index.md" if place.is_dir() else place.relative_to(DOCS)).as_posix()
        else:
            to = {"README.md": "index.md", **BESIDE}.get(place.name, "architecture.md")
        return f"{before}{'../' * depth}{to}{anchor}{after}"

    parts = CODE.split(text)
    return "".join(part if index % 2 else LINK.sub(link, part) for index, part in enumerate(parts))


def section(text: str, heading: str) -> str:
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0].strip()


def decisions() -> str:
    pages = sorted((DOCS / "decisions").glob("*.md"))
    return "# Why things are as they are\n\n" + "".join(
        f"- [{title(f'decisions/{one.name}')}]({one.name})\n" for one in pages
    )


def glossary() -> str:
    return f"# Glossary\n\n{section((ROOT / 'CONTRIBUTING.md').read_text('utf-8'), 'Words')}\n"


def technique_pages(pages: Path) -> Menu:
    """One page each: what it does and its settings (from techniques.md), when and at what cost, and its algorithm."""
    text = (DOCS / "techniques.md").read_text("utf-8")
    uses = tomllib.loads((HERE / "techniques.toml").read_text("utf-8"))
    entries: Menu = []
    for name in TECHNIQUES:
        module = inspect.getmodule(find_technique_class(name))
        use = uses[name]
        page = (
            f"# {name}\n\n{moved(section(text, name), DOCS / 'techniques.md', 1)}\n\n## When and at what cost\n\n"
            f"{use['when']}\n\nCost: {use['cost']}\n\n## Algorithm\n\n```text\n{inspect.getdoc(module) or ''}\n```\n\n"
            "How replies are asked for, and what all of them share: [techniques](../techniques.md). Figures: "
            "[search](../search.md), [documents](../document-qa.md), [performance](../performance.md).\n"
        )
        write(pages / "techniques" / f"{name}.md", page)
        entries.append((name, f"techniques/{name}.md"))
    return entries


def api_pages(pages: Path) -> Menu:
    """One page for each public name, from its signature and docstrings."""
    entries: Menu = []
    for name in sorted(decisor.__all__, key=str.casefold):
        write(pages / "api" / f"{name}.md", api_page(name, getattr(decisor, name)))
        entries.append((name, f"api/{name}.md"))
    return entries


def api_page(name: str, thing: object) -> str:
    parts = [f"# decisor.{name}", "" if is_dataclass(thing) else signature(name, thing), docstring(thing)]
    if inspect.isclass(thing):
        if is_dataclass(thing):
            rows = [
                f"| `{one.name}` | `{str(one.type).replace('|', chr(92) + '|')}` |"
                for one in fields(thing)
                if one.name[0] != "_"
            ]
            parts.append("\n".join(["| field | type |", "|---|---|", *rows]) if rows else "")
        for key, member in vars(thing).items():
            inner = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if not key.startswith("_") and inspect.isfunction(inner) and inner.__doc__:
                parts += [f"## {key}", "" if isinstance(member, property) else signature(key, inner), docstring(inner)]
    return "\n\n".join(part for part in parts if part) + "\n"


def signature(name: str, thing: object) -> str:
    try:
        text = str(inspect.signature(thing)).replace("'", "") if callable(thing) else ""
    except (TypeError, ValueError):
        return ""
    return f"```python\n{name}{text}\n```"


def docstring(thing: object) -> str:
    """As it stands, with the names in double backquotes as code and indented blocks kept."""
    return (inspect.getdoc(thing) or "").replace("``", "`")


def menu(techniques: Menu, api: Menu) -> Menu:
    def pages(*names: str, folder: str = "") -> Menu:
        return [(title(f"{folder}{name}.md"), f"{folder}{name}.md") for name in names]

    tutorials = ("first-decision", "own-csv", "own-documents", "own-decision-model", "notebook", "page", "mcp")
    decisions = [
        (title(f"decisions/{path.name}"), f"decisions/{path.name}")
        for path in sorted((DOCS / "decisions").glob("*.md"))
    ]
    guides = (
        *(
            "how-to",
            "command",
            "config",
            "server",
            "history",
            "llms",
            "files",
            "sources",
            "graphs",
            "documents",
            "tools",
        ),
        *("big-schemas", "definitions", "pitfalls", "decision-models", "what-if", "model-first", "python"),
    )
    measured = ("benchmarks", "evaluation", "reports", "document-qa", "decision-qa-worlds", "generator")
    others = {"index", "techniques", "search", "reasoning-dag", "furepa", "performance", "architecture", "faq"}
    rest = sorted({path.stem for path in DOCS.glob("*.md")} - others - {*guides, *measured})
    subjects = sorted(path.stem for path in (DOCS / "measurements").glob("*.md") if path.stem != "index")
    house = [("The house", "architecture.md"), ("Contributing", "contributing.md"), ("Decisions", decisions)]
    return [
        ("Home", "index.md"),
        ("Tutorials", pages(*tutorials, folder="tutorials/")),
        ("How to", pages(*guides, *rest)),
        ("Techniques", [("All", "techniques.md"), *techniques, *pages("search", "reasoning-dag", "furepa")]),
        ("Benchmarks", pages(*measured)),
        ("Performance", [("Performance", "performance.md"), *pages("index", *subjects, folder="measurements/")]),
        ("Safety", "security.md"),
        ("API", api),
        ("Architecture", house),
        ("FAQ", "faq.md"),
        ("Glossary", "glossary.md"),
        ("Changes", "changes.md"),
    ]


def title(page: str) -> str:
    return next(line for line in (DOCS / page).read_text("utf-8").splitlines() if line.startswith("# "))[2:].replace(
        "`", ""
    )


def settings(entries: Menu) -> str:
    return (HERE / "zensical.toml").read_text("utf-8") + f"nav = {toml(entries)}\n" + THEME


def toml(entries: Menu) -> str:
    def one(name: str, target: str | Menu) -> str:
        value = f'"{target}"' if isinstance(target, str) else toml(target)
        return f'{{ "{name}" = {value} }}'

    return "[" + ", ".join(one(name, target) for name, target in entries) + "]"


THEME = """
[project.theme]
language = "en"
font = false
features = ["navigation.sections", "navigation.top", "content.code.copy", "search.highlight"]
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
[project.markdown_extensions]
tables = {}
attr_list = {}
toc.permalink = true
pymdownx.superfences = {}
pymdownx.highlight = {}
"""

if __name__ == "__main__":
    print(make(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs")))
