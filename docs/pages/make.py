"""Make the documentation as a site: the pages of docs/, and a reference that is read from the code.

python docs/pages/make.py [FOLDER]    build/docs unless named; then: zensical build -f FOLDER/zensical.toml

`make docs` does both. The reference has a page for each technique, each command, each public name, and the events of a
trace. llms.txt names the pages for programs that read them, llms-full.txt holds them whole. Nothing is fetched: the
theme has its own files, and search works from the folder (iframe-worker.js).
"""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import sys
import tomllib
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import decisor
from decisor.techniques import TECHNIQUES, find_technique_class
from decisor.trace.file import CLASSES

HERE = Path(__file__).parent
DOCS, ROOT = HERE.parent, HERE.parent.parent
USE = ("data", "access", "asking", "decision-models", "meaning", "saved")
WAYS = ("server", "python", "mcp", "llms")
RESEARCH = ("evaluation", "papers")
TUTORIALS = ("own-csv", "own-documents", "own-decision-model", "mcp")
USER_PAGES = ("start", *USE, *WAYS, *RESEARCH, "faq", "architecture")
BESIDE = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
LINK = re.compile(r"(\]\()([^)#\s]*)(#[^)\s]*)?(\))")
ADDRESS = re.compile(r"[a-z]+:")
CODE = re.compile(r"(^```.*?^```[ ]*$|`[^`\n]+`)", re.M | re.S)

Menu = list[tuple[str, "str | Menu"]]


def make(folder: Path) -> Path:
    """Write every page below ``folder``/pages, and zensical.toml; return its path."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.py", "*.toml", "__pycache__"))
    shutil.rmtree(pages / "pages", ignore_errors=True)
    for page in sorted(DOCS.rglob("*.md")):
        write(pages / page.relative_to(DOCS), moved(page.read_text("utf-8"), page))
    shutil.copy(HERE / "iframe-worker.js", pages)
    for name, place in BESIDE.items():
        write(pages / place, moved((ROOT / name).read_text("utf-8"), ROOT / name))
    write(pages / "decisions" / "index.md", decisions())
    write(pages / "glossary.md", glossary())
    write(pages / "events.md", events_page())
    write(pages / "connections.md", connections_page())
    menus = technique_pages(pages), command_pages(pages), api_pages(pages)
    write(pages / "llms.txt", llms_index())
    write(pages / "llms-full.txt", "\n\n".join((DOCS / f"{name}.md").read_text("utf-8") for name in USER_PAGES))
    config = folder / "zensical.toml"
    write(config, settings(menu(*menus)))
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
            to = BESIDE.get(place.name if place.parent == ROOT else "", "architecture.md")
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
    """Write a page for each technique: what techniques.toml says of it, its settings, and its algorithm."""
    uses = tomllib.loads((HERE / "techniques.toml").read_text("utf-8"))
    entries: Menu = []
    for name in TECHNIQUES:
        kind, use = find_technique_class(name), uses[name]
        rows = [
            f"| `{field.name}` | {default_text(field)} | {use['settings'][field.name]} |"
            for field in fields(kind)
            if is_dataclass(kind)
        ]
        settings = (
            "\n".join(["## Settings", "", "| setting | default | means |", "|---|---|---|", *rows]) if rows else ""
        )
        parts = (
            f"# {name}",
            use["about"].strip(),
            f"**When:** {use['when']}",
            f"**Cost:** {use['cost']}",
            settings,
            f"## Algorithm\n\n```text\n{inspect.getdoc(inspect.getmodule(kind)) or ''}\n```",
            "What all techniques share: [asking](../asking.md).",
        )
        write(pages / "techniques" / f"{name}.md", "\n\n".join(filter(None, parts)) + "\n")
        entries.append((name, f"techniques/{name}.md"))
    return entries


def default_text(field: Field[Any]) -> str:
    if field.default is MISSING or callable(field.default):
        return ""
    if isinstance(field.default, bool):
        return "yes" if field.default else "no"
    return f"`{field.default}`" if field.default not in (None, "") and is_plain(field.default) else ""


def is_plain(value: object) -> bool:
    return isinstance(value, str | int | float)


def command_pages(pages: Path) -> Menu:
    """Write a page for each command, from its help; of one whose extra is not installed, its summary alone."""
    from typer.main import get_command

    from decisor.cli import COMMANDS, MORE, build_app
    from decisor.cli.output import improve_help
    from decisor.errors import SetupError

    entries: Menu = []
    for name, (_, summary) in {**COMMANDS, **MORE}.items():
        try:
            command: Any = get_command(build_app([name]))
            improve_help(command)
            body = command_text(f"decisor {name}", command.commands[name])
        except SetupError:
            body = f"# decisor {name}\n\n{summary} It needs the extra `lab`.\n"
        write(pages / "commands" / f"{name}.md", body)
        entries.append((name, f"commands/{name}.md"))
    return entries


def command_text(path: str, command: Any, depth: int = 1) -> str:
    """Return the help of a command, and of those below it, as Markdown."""
    rows = []
    for parameter in command.params:
        if parameter.name in ("help", "install_completion", "show_completion"):
            continue
        value = cell(f"`{parameter.metavar}`") if getattr(parameter, "metavar", None) else ""
        options = [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")]
        names = " ".join(filter(None, (", ".join(f"`{name}`" for name in options), value))) or f"`{parameter.name}`"
        rows.append(f"| {names} | {cell(getattr(parameter, 'help', '') or '')} |")
    parts = [f"{'#' * depth} {path}", inspect.cleandoc(command.help or "")]
    if rows:
        parts.append("\n".join(["| option | means |", "|---|---|", *rows]))
    if command.epilog:
        parts.append(
            f"```console\n{inspect.cleandoc(command.epilog.partition('Examples:')[2] or command.epilog).strip()}\n```"
        )
    parts += [
        command_text(f"{path} {name}", inner, depth + 1).strip()
        for name, inner in getattr(command, "commands", {}).items()
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def events_page() -> str:
    """Return the events of a trace file with their fields."""
    parts = ["# Events of a trace", "What a [trace file](saved.md#the-trace-file) holds, and the API streams."]
    for name, kind in CLASSES.items():
        about, notes = inspect.getdoc(kind) or "", field_notes(kind)
        rows = [f"| `{one.name}` | `{cell(str(one.type))}` | {cell(notes.get(one.name, ''))} |" for one in fields(kind)]
        parts += [f"## {name}", about.replace("``", "`"), "\n".join(["| field | type | |", "|---|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def connections_page() -> str:
    """Return the keys of a connection in decisor.toml."""
    from decisor.session.config import Connection

    notes = field_notes(Connection)
    rows = [f"| `{name}` | {cell(notes[name])} |" for name in notes if name != "folder"]
    lines = ["# Connections", "", "Keys of `[connections.NAME]` in [decisor.toml](start.md#settings).", ""]
    return "\n".join([*lines, "| key | means |", "|---|---|", *rows]) + "\n"


def field_notes(kind: type) -> dict[str, str]:
    """Return the text below each field of a class."""
    notes, name = {}, ""
    for line in ast.parse(inspect.cleandoc(inspect.getsource(kind))).body[0].body:  # type: ignore[attr-defined]
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            name = line.target.id
        elif name and isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
            notes[name], name = inspect.cleandoc(str(line.value.value)).replace("``", "`"), ""
    return notes


def llms_index() -> str:
    """Return llms.txt (https://llmstxt.org): the pages with the first sentence of each."""
    about = tomllib.loads((HERE / "zensical.toml").read_text("utf-8"))["project"]["site_description"]
    lines = [
        "# Decisor",
        "",
        f"> {about}",
        "",
        "All of it as one text: [llms-full.txt](llms-full.txt)",
        "",
        "## Documentation",
        "",
    ]
    lines += [f"- [{title(f'{name}.md')}]({name}.html): {first_sentence(DOCS / f'{name}.md')}" for name in USER_PAGES]
    lines += ["", "## Tutorials", ""]
    lines += [f"- [{title(f'tutorials/{name}.md')}](tutorials/{name}.html)" for name in TUTORIALS]
    return "\n".join(lines) + "\n"


def first_sentence(page: Path) -> str:
    """Return the first sentence that is no heading, code, list or table; without its links."""
    text = CODE.sub(lambda match: "" if match[0].startswith("```") else match[0], page.read_text("utf-8"))
    blocks = (block.strip() for block in text.split("\n\n"))
    first = next(block for block in blocks if block and not block.startswith(("#", "|", "-", "1", " ", "![")))
    return re.split(r"(?<=[.?!])\s", LINK.sub("", " ".join(first.split())).replace("[", ""))[0]


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


def menu(techniques: Menu, commands: Menu, api: Menu) -> Menu:
    def pages(*names: str, folder: str = "") -> Menu:
        return [(title(f"{folder}{name}.md"), f"{folder}{name}.md") for name in names]

    def room(name: str) -> Menu:
        return pages(
            *sorted(path.stem for path in (DOCS / name).glob("*.md") if path.stem != "index"), folder=f"{name}/"
        )

    reference: Menu = [
        ("Commands", commands),
        ("Techniques", techniques),
        ("Python names", api),
        ("Connections", "connections.md"),
        ("Events of a trace", "events.md"),
    ]
    inside: Menu = [
        *pages("architecture"),
        ("Decisions", [("All", "decisions/index.md"), *room("decisions")]),
        ("Contributing", "contributing.md"),
        ("Changes", "changes.md"),
        ("Glossary", "glossary.md"),
    ]
    return [
        ("Home", "index.md"),
        *pages("start"),
        ("Tutorials", pages(*TUTORIALS, folder="tutorials/")),
        ("Use", pages(*USE)),
        ("Page, Python, MCP, LLMs", pages(*WAYS)),
        ("Research", pages(*RESEARCH)),
        ("Measured", [*pages("performance"), *pages("index", folder="measurements/"), *room("measurements")]),
        ("Reference", reference),
        ("Security", "security.md"),
        *pages("faq"),
        ("Inside", inside),
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
[project.plugins.offline]
[[project.extra.polyfills]]
path = "iframe-worker.js"
[project.markdown_extensions]
tables = {}
attr_list = {}
toc.permalink = true
pymdownx.superfences = {}
pymdownx.highlight = {}
"""

if __name__ == "__main__":
    print(make(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs")))
