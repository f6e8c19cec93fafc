"""The provenance and the inputs of a run: what was read, by whom, with which data, tools and options.

Provenance stands in the trace; a reader who may not know where the data lie gets no places and no conditions. Inputs
stand in the history, so that a run can be continued without naming everything again. Passwords, objects and commands
of MCP servers are left out, and noted as left out.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.decision_models.file import DecisionModel
from decisor.history.recorder import Keeping
from decisor.llms.providers import LLMSpec, hide_llm_password
from decisor.session.run_setup import name_of_technique
from decisor.session.sources import Source, Sources
from decisor.session.user_tools import ToolSpecs, starts_process
from decisor.system.secrets import hide_password
from decisor.system.text import fit_on_one_line
from decisor.trace.events import DataSource, Provenance, RowPolicy, UsedFile
from decisor.types import Tool
from decisor.version import __version__

if TYPE_CHECKING:
    from decisor.session.request import AskRequest, Attachments

# Texts in quotes and numbers, but no digits that are part of a name.
LITERAL = re.compile(r"'(?:[^']|'')*'|(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def build_provenance(sources: Sources, tools: Sequence[Tool], tells_places: bool) -> Provenance:
    """Build the provenance that all runs on these data share. tools: the opened tools. tells_places: whether the person
    who asks may know where the data lie.
    """
    return Provenance(
        version=__version__,
        sources=tuple(build_data_source(source, tells_places) for source in sources.places),
        tables=sources.tables,
        deny_tables=sources.deny_tables if tells_places else (),
        definitions=tuple(build_used_file(path, tells_places, about=name) for name, path in sources.definitions),
        model=build_used_model(sources.model, tools, tells_places) if sources.model is not None else None,
    )


def build_data_source(source: Source, tells_place: bool) -> DataSource:
    """Build the provenance of a source.

    A connection is known by its name; its place stands in the config file. Without the right to know the place a person
    may not know the conditions either, which could name a table that is not theirs to see.
    """
    place = source.label if tells_place and source.connection is None else ""
    masks = source.policy.mask
    rows = tuple(
        RowPolicy(table, hide_masked_values(condition, masks) if tells_place else "")
        for table, condition in source.policy.rows
    )
    return DataSource(source.name, source.form, place, rows, masks, source.policy.seed if masks else "")


def hide_masked_values(condition: str, masks: tuple[str, ...]) -> str:
    """Replace the values of a condition by ``?`` if it is about a masked column.

    >>> (hide_masked_values("region = 'EU'", ("customers.email",)),
    ...     hide_masked_values("email <> 'a@b.c'", ("customers.email",)))
    ("region = 'EU'", 'email <> ?')
    """
    columns = {name.rpartition(".")[2].strip('"`[]').lower() for name in masks}
    return LITERAL.sub("?", condition) if columns & set(re.findall(r"\w+", condition.lower())) else condition


def build_used_model(path: Path, tools: Sequence[Tool], tells_place: bool) -> UsedFile:
    """Build the provenance of the decision model, as it was opened."""
    file = build_used_file(path, tells_place)
    # The text of the opened model goes before that of the file, which may have changed since.
    text = next(iterate_model_texts(tools), "")
    if text:
        return UsedFile(file.path, digest_of_content(text.encode()), text)
    return UsedFile(file.path, file.digest, path.read_text("utf-8", "replace") if file.digest else "")


def iterate_model_texts(tools: Sequence[Tool]) -> Iterator[str]:
    """Yield the texts of the decision models among tools."""
    for tool in tools:
        model = getattr(getattr(getattr(tool, "tool", tool), "model", None), "model", None)
        if isinstance(model, DecisionModel):
            yield model.text


def build_used_file(path: Path, tells_place: bool, about: str = "") -> UsedFile:
    try:
        digest = digest_of_content(path.read_bytes())
    except OSError:
        digest = ""
    return UsedFile(str(path) if tells_place else path.name, digest, about=about)


def digest_of_content(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def history_of_request(request: AskRequest, attached: Attachments, sources: Sources) -> Keeping | None:
    """Return where to record a run, with its request. None means that it is not recorded."""
    if not request.history:
        return None
    keeping = attached.keeping or Keeping()
    keeping.inputs = inputs_to_keep(request, attached, sources)
    return keeping


def inputs_to_keep(request: AskRequest, attached: Attachments, sources: Sources) -> dict[str, object]:
    """Return a request as the history keeps it, with the data that were opened."""
    from decisor.session.request import write_kept_request

    left_out: list[str] = []
    policies = [
        source for source in sources.places if source.connection is None
    ]  # a connection has its rules in its file
    technique, max_scans = attached.technique, [most for source in sources.places for most in source.max_scans]
    settings = {**request.settings, **attached.settings}
    kept = {
        **{name: places_to_keep(sources, form, left_out) for name, form in FORMS.items()},
        "tools": tools_to_keep(sources.tools, left_out),
        "methods": tuple(sources.tools.methods),
        "base_url": sources.tools.base_url,
        "auth": tuple(sources.tools.auth),
        "row_values": sources.tools.row_values,
        "model": str(sources.model or ""),
        "tables": sources.tables,
        "deny_tables": sources.deny_tables,
        "definitions": tuple(f"{name}={path}" if name else str(path) for name, path in sources.definitions),
        "rows": tuple(
            f"{source.name}.{table}={condition}" for source in policies for table, condition in source.policy.rows
        ),
        "mask": tuple(f"{source.name}.{column}" for source in policies for column in source.policy.mask),
        "audit": next((str(source.audit.path) for source in sources.places if source.audit), ""),
        "max_scan": request.max_scan or str(next(iter(max_scans), "")),
        "technique": name_of_technique(technique) if technique else request.technique,
        "settings": settings_to_keep(settings, left_out),
        "llm": llm_to_keep(attached.llm or request.llm, left_out),
        "folder": str(Path.cwd()),
        "left_out": tuple(left_out),
    }
    return write_kept_request(request.model_copy(update=kept))


FORMS = {"db": "sql", "graph": "cypher", "docs": "passages"}


def places_to_keep(sources: Sources, form: str, left_out: list[str]) -> tuple[str, ...]:
    """Return the places of one form as a person names them; a DataFrame or a password is noted in ``left_out``."""
    texts: list[str] = []
    for source in sources.places:
        if source.form != form:
            continue
        if source.connection is not None:
            texts.append(source.name)
        elif sources.frames is not None and source.place == sources.frames.url:
            # A table that a program handed over is gone with the program.
            left_out.append(f"the table {source.name}")
        else:
            text = source.place if source.name == source.form else f"{source.name}={source.place}"
            texts += keep_without_password(text, left_out)
    return tuple(texts)


def tools_to_keep(tools: ToolSpecs, left_out: list[str]) -> tuple[str, ...]:
    texts: list[str] = []
    for spec in tools.specs:
        if starts_process(spec):  # a command is started where a person typed it, and nowhere else
            left_out.append(f"the MCP server {fit_on_one_line(hide_password(str(spec)), 100)}")
        elif isinstance(spec, str | os.PathLike):
            texts += keep_without_password(os.fspath(spec), left_out)
        else:
            left_out.append(f"the tool {getattr(spec, 'name', getattr(spec, '__name__', spec))}")
    return tuple(texts)


def keep_without_password(text: str, left_out: list[str], is_llm: bool = False) -> list[str]:
    """Return the text in a list, or an empty list if it holds a password.

    Such a text is noted in ``left_out``: the person names it again, or a variable does.
    """
    safe = hide_llm_password(text) if is_llm else hide_password(text)
    if safe == text:
        return [text]
    left_out.append(safe)
    return []


def llm_to_keep(llm: object, left_out: list[str]) -> str:
    if isinstance(llm, LLMSpec):
        llm = " ".join([llm.name, *(f"{key}={value}" for key, value in settings_in(llm).items())])
    if llm is None or isinstance(llm, str):
        return next(iter(keep_without_password(llm or "", left_out, is_llm=True)), "")
    left_out.append(f"the LLM {getattr(llm, 'name', llm)}")
    return ""


def settings_in(spec: LLMSpec) -> dict[str, object]:
    names = ("timeout", "context", "max_tokens", "temperature", "price")
    return {name: value for name in names if (value := getattr(spec, name)) is not None}


def settings_to_keep(settings: Mapping[str, object], left_out: list[str]) -> dict[str, str]:
    texts = {}
    for name, value in settings.items():
        if not isinstance(value, str | int | float | bool):
            left_out.append(f"the setting {name}")
        elif keep_without_password(str(value), left_out, is_llm=name.endswith("_llm")):
            texts[name] = str(value)
    return texts
