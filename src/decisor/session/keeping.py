"""What is kept of how a question was asked, so that it can be gone on from without naming everything again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from decisor.budget import Limits
from decisor.history.past_run import Inputs
from decisor.history.recording import Keeping
from decisor.lms.spec import LMSpec, lm_without_password
from decisor.outside import one_line
from decisor.secrets import without_password
from decisor.session.options import Options
from decisor.session.sources import Source, Sources
from decisor.session.technique import name_of
from decisor.session.tools import names_command


def keeping_of(options: Options, sources: Sources) -> Keeping | None:
    """As ``history`` says; what was named is filled in."""
    wanted = options.get("history", False)
    if not wanted:
        return None
    keeping = wanted if isinstance(wanted, Keeping) else Keeping()
    keeping.inputs = inputs_of(sources, options)
    return keeping


def owner_of(options: Options) -> str:
    """Of the history that the run is kept in, '' where there is none."""
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
        return fit_to_keep(text, left_out)

    def places(form: str) -> tuple[str, ...]:
        return tuple(text for source in sources.places if source.form == form for text in place(source))

    specs = [spec for spec in sources.tools.specs if not names_command(spec)]
    tools = [text for spec in specs if isinstance(spec, str | os.PathLike)
             for text in fit_to_keep(os.fspath(spec), left_out)]  # fmt: skip
    left_out += [f"the MCP server {one_line(without_password(str(spec)), 100)}" for spec in sources.tools.specs
                 if names_command(spec)]  # a command is started where a person typed it, and nowhere else  # fmt: skip
    left_out += [f"the tool {getattr(spec, 'name', getattr(spec, '__name__', spec))}" for spec in specs
                 if not isinstance(spec, str | os.PathLike)]  # fmt: skip
    technique = options.get("technique", "")
    return Inputs(
        db=places("sql"), graph=places("cypher"), docs=places("passages"), tools=tuple(tools),
        methods=tuple(sources.tools.methods), base_url=sources.tools.base_url, auth=tuple(sources.tools.auth),
        model=str(sources.model or ""), tables=sources.tables, deny_tables=sources.deny_tables,
        definitions=tuple(f"{name}={path}" if name else str(path) for name, path in sources.definitions),
        rows=tuple(f"{one.name}.{table}={condition}" for one in sources.places if one.connection is None
                   for table, condition in one.policy.rows),
        mask=tuple(f"{one.name}.{column}" for one in sources.places if one.connection is None
                   for column in one.policy.mask),
        audit=next((str(one.audit.path) for one in sources.places if one.audit), ""),
        max_scan=str(options.get("max_scan") or next((most for one in sources.places for most in one.max_scans), "")),
        technique=technique if isinstance(technique, str) else name_of(technique),
        settings=settings_to_keep(options.get("settings", {}), left_out), lm=lm_to_keep(options.get("lm"), left_out),
        limits=options.get("limits", Limits()), folder=str(Path.cwd()), left_out=tuple(left_out),
        row_values=sources.tools.row_values,
    )  # fmt: skip


def fit_to_keep(text: str, left_out: list[str], is_lm: bool = False) -> list[str]:
    """Itself, or nothing where it holds a password: that is named again by the person, or by a variable."""
    safe = lm_without_password(text) if is_lm else without_password(text)
    if safe == text:
        return [text]
    left_out.append(safe)
    return []


def lm_to_keep(lm: object, left_out: list[str]) -> str:
    if isinstance(lm, LMSpec):
        lm = " ".join([lm.name, *(f"{key}={value}" for key, value in settings_in(lm).items())])
    if lm is None or isinstance(lm, str):
        return next(iter(fit_to_keep(lm or "", left_out, is_lm=True)), "")
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
        elif fit_to_keep(str(value), left_out, is_lm=name.endswith("_lm")):
            texts[name] = str(value)
    return texts
