"""The options of commands that take a request: made from the fields of ``AskRequest``, and checked by it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer
from pydantic.fields import FieldInfo

from decisor.session.request import AskRequest, DataRequest, Flag, LimitsRequest, find_flag, read_request, spell_option
from decisor.system.settings import parse_settings

DATA = tuple(DataRequest.model_fields)
"""Fields that say which data may be read."""
OPTIONS = tuple(name for name, info in AskRequest.model_fields.items() if find_flag(info))
"""All fields that have an option."""


def takes_request(
    *names: str, note: str = "", leave_out: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of request fields; its parameter ``request`` is the request that they make.

    Args:
        names: Fields of ``AskRequest``. ``limits`` stands for an option of each limit.
        note: Words before the help of each option.
        leave_out: Fields and limits among them that the command has no option for.
    """
    fields: dict[str, FieldInfo] = {}
    for field in names:
        fields |= LimitsRequest.model_fields if field == "limits" else {field: AskRequest.model_fields[field]}
    fields = {name: info for name, info in fields.items() if name not in leave_out}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def call(**values: Any) -> None:
            typed = {name: values.pop(name) for name in fields}
            # 0 is a limit, and stands for nothing in any other option.
            limits = {name: typed.pop(name) for name in fields if name in LimitsRequest.model_fields}
            given: dict[str, Any] = {name: value for name, value in typed.items() if value}
            given["limits"] = {name: value for name, value in limits.items() if value is not None}
            given["settings"] = parse_settings(given.get("settings", ()))
            command(request=read_request(given, spell_option), **values)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.name == "request":
                parameters += [option_of_field(name, info, note) for name, info in fields.items()]
            else:
                parameters.append(parameter)
        # typer reads name, help and parameters from the function that it is given.
        call.__name__, call.__doc__, call.__module__ = command.__name__, command.__doc__, command.__module__
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
            [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
        )
        return call

    return decorate


def option_of_field(name: str, info: FieldInfo, note: str = "") -> inspect.Parameter:
    """Return the parameter that typer makes the option of a field of."""
    flag = find_flag(info) or Flag()
    words = f"{note}{' '.join((info.description or '').split())}"
    spelling = flag.names or (spell_option(name),)
    default: object = None
    if name in LimitsRequest.model_fields:
        number: Any = int if "int" in str(info.annotation) else float
        least = 1 if number is int else 0
        option: Any = typer.Option(*spelling, min=least, help=words)
        kind: Any = number | None
    elif info.annotation is bool:
        option, kind, default = typer.Option(*spelling, help=words), bool, False
    else:
        option = typer.Option(*spelling, metavar=flag.metavar, help=words, hidden=bool(flag.key))
        is_many = get_origin(info.annotation) in (tuple, dict)
        kind = list[str] | None if is_many else Path | None if flag.metavar == "FILE" else str | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
