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

from decisor.decision_models.file import DecisionModel
from decisor.history.recorder import Keeping
from decisor.history.store import Inputs
from decisor.llms.providers import LMSpec, hide_lm_password
from decisor.runtime.budget import Limits
from decisor.session.request import Options, Source, Sources
from decisor.session.run_setup import name_of_technique
from decisor.session.user_tools import starts_process
from decisor.system.secrets import hide_password
from decisor.system.text import fit_on_one_line
from decisor.trace.events import DataSource, Provenance, RowPolicy, UsedFile
from decisor.types import Tool
from decisor.version import __version__

LITERAL = re.compile(r"'(?:[^']|'')*'|(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def build_provenance(sources: Sources, tools: Sequence[Tool], tells_places: bool) -> Provenance:
    """Build the provenance that all runs on these data share. tools: the opened tools. tells_places: whether the person
    who asks may know where the data lie.
    """
    return Provenance(
        version=__version__,
        sources=tuple(build_data_source(one, tells_places) for one in sources.places),
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


def prepare_keeping(options: Options, sources: Sources) -> Keeping | None:
    """Return where to record a run, by the option ``history``; its inputs are filled in.

    None means that it is not recorded.
    """
    wanted = options.get("history", False)
    if not wanted:
        return None
    keeping = wanted if isinstance(wanted, Keeping) else Keeping()
    keeping.inputs = inputs_of(sources, options)
    return keeping


def history_owner(options: Options) -> str:
    """Return the owner of the history that records the run, '' if there is none."""
    keeping = options.get("history", False)
    return keeping.owner if isinstance(keeping, Keeping) else ""


def inputs_of(sources: Sources, options: Options) -> Inputs:
    left_out: list[str] = []

    def place(source: Source) -> list[str]:
        if source.connection is not None:
            return [source.name]
        text = source.place if source.name == source.form else f"{source.name}={source.place}"
        if sources.frames is not None and source.place == sources.frames.url:
            left_out.append(f"the table {source.name}")
            return []
        return keep_without_password(text, left_out)

    def places(form: str) -> tuple[str, ...]:
        return tuple(text for source in sources.places if source.form == form for text in place(source))

    specs = [spec for spec in sources.tools.specs if not starts_process(spec)]
    tools = [
        text
        for spec in specs
        if isinstance(spec, str | os.PathLike)
        for text in keep_without_password(os.fspath(spec), left_out)
    ]
    left_out += [
        f"the MCP server {fit_on_one_line(hide_password(str(spec)), 100)}"
        for spec in sources.tools.specs
        if starts_process(spec)
    ]  # a command is started where a person typed it, and nowhere else
    left_out += [
        f"the tool {getattr(spec, 'name', getattr(spec, '__name__', spec))}"
        for spec in specs
        if not isinstance(spec, str | os.PathLike)
    ]
    technique = options.get("technique", "")
    return Inputs(
        db=places("sql"),
        graph=places("cypher"),
        docs=places("passages"),
        tools=tuple(tools),
        methods=tuple(sources.tools.methods),
        base_url=sources.tools.base_url,
        auth=tuple(sources.tools.auth),
        model=str(sources.model or ""),
        tables=sources.tables,
        deny_tables=sources.deny_tables,
        definitions=tuple(f"{name}={path}" if name else str(path) for name, path in sources.definitions),
        rows=tuple(
            f"{one.name}.{table}={condition}"
            for one in sources.places
            if one.connection is None
            for table, condition in one.policy.rows
        ),
        mask=tuple(
            f"{one.name}.{column}" for one in sources.places if one.connection is None for column in one.policy.mask
        ),
        audit=next((str(one.audit.path) for one in sources.places if one.audit), ""),
        max_scan=str(options.get("max_scan") or next((most for one in sources.places for most in one.max_scans), "")),
        technique=technique if isinstance(technique, str) else name_of_technique(technique),
        settings=settings_to_keep(options.get("settings", {}), left_out),
        lm=lm_to_keep(options.get("lm"), left_out),
        limits=options.get("limits", Limits()),
        folder=str(Path.cwd()),
        left_out=tuple(left_out),
        row_values=sources.tools.row_values,
    )


def keep_without_password(text: str, left_out: list[str], is_lm: bool = False) -> list[str]:
    """Return the text in a list, or an empty list if it holds a password.

    Such a text is noted in ``left_out``: the person names it again, or a variable does.
    """
    safe = hide_lm_password(text) if is_lm else hide_password(text)
    if safe == text:
        return [text]
    left_out.append(safe)
    return []


def lm_to_keep(lm: object, left_out: list[str]) -> str:
    if isinstance(lm, LMSpec):
        lm = " ".join([lm.name, *(f"{key}={value}" for key, value in settings_in(lm).items())])
    if lm is None or isinstance(lm, str):
        return next(iter(keep_without_password(lm or "", left_out, is_lm=True)), "")
    left_out.append(f"the LM {getattr(lm, 'name', lm)}")
    return ""


def settings_in(spec: LMSpec) -> dict[str, object]:
    names = ("timeout", "context", "max_tokens", "temperature", "price")
    return {name: value for name in names if (value := getattr(spec, name)) is not None}


def settings_to_keep(settings: Mapping[str, object], left_out: list[str]) -> dict[str, str]:
    texts = {}
    for name, value in settings.items():
        if not isinstance(value, str | int | float | bool):
            left_out.append(f"the setting {name}")
        elif keep_without_password(str(value), left_out, is_lm=name.endswith("_lm")):
            texts[name] = str(value)
    return texts
