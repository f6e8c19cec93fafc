"""Real API documents as functions a model can call, with the names and schemas of ToolBench's release.

    name         change(standardize(api)) + "_for_" + standardize(tool), its last 64 characters
    description  cut at 256 characters, as those of parameters
    types        NUMBER integer, BOOLEAN boolean, anything else string
    parameters   the required ones; optional ones only where there is a required one (the release's quirk)

Qin et al., "ToolLLM", ICLR 2024; the release's inference/Downstream_tasks/rapidapi.py. The sentences are ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decisor.types import Value

Schema = Mapping[str, Any]
"""A function as OpenAI\'s function calling takes it."""
LONGEST_NAME, LONGEST_TEXT = 64, 256
TYPES = {"NUMBER": "integer", "STRING": "string", "BOOLEAN": "boolean"}
RESERVED = {"from", "class", "return", "false", "true", "id", "and"}
FINISH, ANSWER, GIVE_UP = "Finish", "give_answer", "give_up_and_restart"


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str = "STRING"
    description: str = ""
    default: Value = ""


@dataclass(frozen=True, slots=True)
class Api:
    """One documented API of one tool, with the names of the release."""

    category: str
    tool: str
    name: str
    description: str = ""
    required: tuple[Parameter, ...] = ()
    optional: tuple[Parameter, ...] = ()

    @property
    def function(self) -> str:
        """The name a model calls it by."""
        return f"{self.pure_name}_for_{standardize(self.tool)}"[-LONGEST_NAME:]

    @property
    def pure_name(self) -> str:
        return change(standardize(self.name))


def standardize(text: str) -> str:
    """
    >>> standardize("10+ Ad Descriptions (~ 25 s)"), standardize("/open-api/v1.0/"), standardize("天气 API")
    ('get_10_ad_descriptions_25_s', 'open_api_v1_0', '天气_api')
    """
    text = re.sub(r"[^\u4e00-\u9fa5a-zA-Z0-9_^]", "_", text)
    text = re.sub(r"_+", "_", text).lower().strip("_")
    return f"get_{text}" if text[:1].isdigit() else text


def change(name: str) -> str:
    """
    >>> change("from"), change("city")
    ('is_from', 'city')
    """
    return f"is_{name}" if name in RESERVED else name


def schema(api: Api) -> Schema:
    """The function as OpenAI's function calling takes it, with the release's extra key ``optional``."""
    about = f'A function of the tool "{standardize(api.tool)}".'
    if what_it_does := api.description.strip().replace(api.name, api.function)[:LONGEST_TEXT]:
        about = f'{about} What it does: "{what_it_does}"'
    optional = api.optional if api.required else ()
    return {
        "name": api.function,
        "description": about,
        "parameters": {
            "type": "object",
            "properties": {change(standardize(one.name)): parameter_schema(one) for one in (*api.required, *optional)},
            "required": [change(standardize(one.name)) for one in api.required],
            "optional": [change(standardize(one.name)) for one in optional],
        },
    }


def parameter_schema(one: Parameter) -> Schema:
    values = {"type": TYPES.get(one.type, "string"), "description": one.description[:LONGEST_TEXT]}
    return {**values, "example_value": one.default} if str(one.default) else values


def finish_schema() -> Schema:
    """The function that ends a sequence."""
    answer = "What the user is told: the whole answer. Needed with give_answer."
    return {
        "name": FINISH,
        "description": "Ends the task: gives the user the final answer, all that they see, or gives the attempt up.",
        "parameters": {
            "type": "object",
            "properties": {
                "return_type": {"type": "string", "enum": [ANSWER, GIVE_UP]},
                "final_answer": {"type": "string", "description": answer},
            },
            "required": ["return_type"],
        },
    }


def distinct(apis: Sequence[Api]) -> dict[str, Api]:
    """By function name; of APIs whose cut names are the same, the first, as the release finds them."""
    by_name: dict[str, Api] = {}
    for api in apis:
        by_name.setdefault(api.function, api)
    return by_name
