"""ToolBench's tasks as environments: functions made of API documents, calls answered as recorded, live or simulated.

A folder has ``test_queries.jsonl.gz`` (one instruction a line, with its ``split``), or the release's own
``G1_instruction.json``, ``G2_category.json`` and so on (lists). StableToolBench's solvable queries have that form too.
StableToolBench (Guo et al., Findings of ACL 2024) answers from a cache, then live, then simulated; so does
``ApiAnswers``. Every observation is one record with ``error`` and ``response``, cut at 1,024 characters as in the
release; a simulated one says so. ``Finish`` hands the answer in. Nothing tells whether the task is solved.

Functions have the names and schemas of ToolBench's release (Qin et al., "ToolLLM", ICLR 2024;
inference/Downstream_tasks/rapidapi.py). The sentences are ours.

    name         the last 64 characters of
                 avoid_reserved_name(standardize_api_name(api)) + "_for_" + standardize_api_name(tool)
    description  cut at 256 characters, as those of parameters
    types        NUMBER integer, BOOLEAN boolean, anything else string
    parameters   the required ones; optional ones only if there is a required one (the release's quirk)

A call ends with a code of the release by its error, or with 13 if it was not recorded:

    0 answered         4 gave up           8 not subscribed      12 could not be sent or read
    1 no such function 5 took too long     9 too many requests   13 not recorded (ours)
    2 bad input        6 API not working  10 rate limit
    3 final answer     7 not authorized   11 the API's own error
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal

from decisor.errors import LLMError, SetupError
from decisor.lab.benchmark import Row, read_question_rows
from decisor.lab.judges import CaseLLM
from decisor.system.secrets import Secret, redact_known
from decisor.tools.arguments import ToolArguments
from decisor.types import Action, Message, Observation, Record, Sampling, Usage, Value

if TYPE_CHECKING:
    import aiohttp


Schema = Mapping[str, Any]
"""A function as OpenAI's function calling takes it."""
LONGEST_NAME, LONGEST_TEXT = 64, 256
TYPES = {"NUMBER": "integer", "STRING": "string", "BOOLEAN": "boolean"}
RESERVED = {"from", "class", "return", "false", "true", "id", "and"}
FINISH, ANSWER, GIVE_UP = "Finish", "give_answer", "give_up_and_restart"


@dataclass(frozen=True, slots=True)
class ApiParameter:
    name: str
    type: str = "STRING"
    description: str = ""
    default: Value = ""


@dataclass(frozen=True, slots=True)
class Api:
    """A documented API of one tool, with the names of the release."""

    category: str
    tool: str
    name: str
    description: str = ""
    required: tuple[ApiParameter, ...] = ()
    optional: tuple[ApiParameter, ...] = ()

    @property
    def function(self) -> str:
        """The name by which an LLM calls the API."""
        return f"{self.pure_name}_for_{standardize_api_name(self.tool)}"[-LONGEST_NAME:]

    @property
    def pure_name(self) -> str:
        return avoid_reserved_name(standardize_api_name(self.name))


def standardize_api_name(text: str) -> str:
    """Convert a name to letters, digits and _, as ToolBench's release does.

    >>> (standardize_api_name("10+ Ad Descriptions (~ 25 s)"),
    ...     standardize_api_name("/open-api/v1.0/"), standardize_api_name("天气 API"))
    ('get_10_ad_descriptions_25_s', 'open_api_v1_0', '天气_api')
    """
    text = re.sub(r"[^\u4e00-\u9fa5a-zA-Z0-9_^]", "_", text)
    text = re.sub(r"_+", "_", text).lower().strip("_")
    return f"get_{text}" if text[:1].isdigit() else text


def avoid_reserved_name(name: str) -> str:
    """Return a name that is no reserved word.

    >>> avoid_reserved_name("from"), avoid_reserved_name("city")
    ('is_from', 'city')
    """
    return f"is_{name}" if name in RESERVED else name


def build_function_schema(api: Api) -> Schema:
    """Return a function for OpenAI's function calling, with the release's extra key ``optional``."""
    about = f'A function of the tool "{standardize_api_name(api.tool)}".'
    if what_it_does := api.description.strip().replace(api.name, api.function)[:LONGEST_TEXT]:
        about = f'{about} What it does: "{what_it_does}"'
    # The release's quirk: optional parameters are shown only if there is a required one.
    optional = api.optional if api.required else ()
    return {
        "name": api.function,
        "description": about,
        "parameters": {
            "type": "object",
            "properties": {
                avoid_reserved_name(standardize_api_name(one.name)): {
                    "type": TYPES.get(one.type, "string"),
                    "description": one.description[:LONGEST_TEXT],
                    **({"example_value": one.default} if str(one.default) else {}),
                }
                for one in (*api.required, *optional)
            },
            "required": [avoid_reserved_name(standardize_api_name(one.name)) for one in api.required],
            "optional": [avoid_reserved_name(standardize_api_name(one.name)) for one in optional],
        },
    }


FINISH_SCHEMA: Schema = {
    "name": FINISH,
    "description": "Ends the task: gives the user the final answer, all that they see, or gives the attempt up.",
    "parameters": {
        "type": "object",
        "properties": {
            "return_type": {"type": "string", "enum": [ANSWER, GIVE_UP]},
            "final_answer": {
                "type": "string",
                "description": "What the user is told: the whole answer. Needed with give_answer.",
            },
        },
        "required": ["return_type"],
    },
}
"""The function that ends a sequence."""


def apis_by_function(apis: Sequence[Api]) -> dict[str, Api]:
    """Return the APIs by function name. Of APIs whose cut names are equal, the first one counts, as in the release."""
    by_name: dict[str, Api] = {}
    for api in apis:
        # Names are cut to their last 64 characters, so two APIs may get the same one.
        by_name.setdefault(api.function, api)
    return by_name


QUERIES, CALLS = "test_queries.jsonl.gz", "recorded_calls.jsonl.gz"


@dataclass(frozen=True, slots=True)
class ToolTask:
    """A test instruction with its APIs."""

    id: str
    split: str
    query: str
    apis: tuple[Api, ...]
    relevant: tuple[tuple[str, str], ...] = ()
    """(tool, API) pairs that its author had in mind; for reports only."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that was made in June 2023, and its output."""

    category: str
    tool: str
    """Has the form ``name_for_Category``."""
    api: str
    input: str
    output: Value


def load_tasks(folder: Path, split: str = "all") -> list[ToolTask]:
    """Load the tasks of a split in file order.

    Raises:
        SetupError: no file is there, one is not of the released form, or there is no such split.
    """
    rows = list(iterate_instructions(folder))
    splits = Counter(name for name, _ in rows)
    if split != "all" and split not in splits:
        raise SetupError(f"{folder} has no split {split!r}; it has all, {', '.join(sorted(splits))}.")
    tasks, counts = [], Counter[str]()
    for name, row in rows:
        if split in ("all", name):
            try:
                task = parse_tool_task(name, row)
            except (KeyError, TypeError, AttributeError) as error:
                raise SetupError(f"An instruction of {folder} is not of the released form: {error!r}.") from error
            # An id may occur twice in a split, and a case needs its own.
            counts[task.id] += 1
            tasks.append(replace(task, id=f"{task.id}-{counts[task.id]}") if counts[task.id] > 1 else task)
    return tasks


def load_calls(folder: Path) -> list[RecordedCall]:
    """Load the recorded calls, none if there is no such file."""
    path = folder / CALLS
    if not path.is_file():
        return []
    return [
        RecordedCall(row["category"], row["tool"], row["api"], row["input"], row["output"])
        for row in read_question_rows(path)
    ]


def iterate_instructions(folder: Path) -> Iterator[tuple[str, Row]]:
    if (folder / QUERIES).is_file():
        for row in read_question_rows(folder / QUERIES):
            yield str(row.get("split", "test")), row
        return
    files = sorted(folder.glob("G[123]_*.json"))
    if not files:
        raise SetupError(
            f"{folder} holds neither {QUERIES} nor G1_instruction.json and the like: they are in "
            "data/test_instruction of ToolBench's released data."
        )
    for file in files:
        for row in read_question_rows(file):
            yield file.stem, row


def parse_tool_task(split: str, row: Row) -> ToolTask:
    apis = tuple(
        Api(
            api["category_name"],
            api["tool_name"],
            api["api_name"],
            api.get("api_description") or "",
            *(
                tuple(
                    ApiParameter(part["name"], part["type"], part.get("description") or "", part.get("default", ""))
                    for part in api[parameters]
                )
                for parameters in ("required_parameters", "optional_parameters")
            ),
        )
        for api in row["api_list"]
    )
    relevant = tuple((str(tool), str(api)) for tool, api in row.get("relevant APIs", ()))
    return ToolTask(f"{split}-{row['query_id']}", split, str(row["query"]).strip(), apis, relevant)


NO_FUNCTION = "No such function name"
BAD_INPUT = "Bad input"
NOT_RECORDED = "Not recorded"
FAILED = "Request failed"
ERRORS: Mapping[str, int] = {
    NO_FUNCTION: 1,
    BAD_INPUT: 2,
    "Timeout error": 5,
    "API not working error": 6,
    "Unauthorized error": 7,
    "Unsubscribed error": 8,
    "Too many requests error": 9,
    "Rate limit per minute error": 10,
    "Rate limit error": 10,
    "Message error": 11,
    "Tool building error": 12,
    "Tool running error": 12,
    FAILED: 12,
    NOT_RECORDED: 13,
}
UNAVAILABLE = frozenset({5, 6, 7, 8, 9, 10, 12})


def status_of_error(error: str) -> int:
    """Return the status code of an error message: 0 for none, 12 for an unknown one.

    >>> (status_of_error(""), status_of_error("Message error..."),
    ...     status_of_error("Tool building error...\\n'x'"), status_of_error("?"))
    (0, 11, 12, 12)
    """
    if not error:
        return 0
    return next((code for prefix, code in ERRORS.items() if error.startswith(prefix)), 12)


def split_server_output(output: Value) -> tuple[str, str]:
    """Return the error and the response in the output of a server.

    The output is an object with both, its text, or something else.

    >>> (split_server_output('{"error": "", "response": "7"}'),
    ...     split_server_output({"error": "Timeout error...", "response": ""}))
    (('', '7'), ('Timeout error...', ''))
    """
    value = output
    if isinstance(output, str):
        try:
            value = json.loads(output)
        except ValueError:
            # Some recorded outputs are bare messages; near the beginning they are errors, later they are content.
            error = next((prefix for prefix in ERRORS if prefix in output[:80]), "")
            return (error, output) if error else (f"{FAILED}: the answer is not JSON", output)
    if not isinstance(value, Mapping) or not {"error", "response"} & value.keys():
        return "", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    response = value.get("response", "")
    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    return str(value.get("error") or ""), text


By = Literal["recorded", "live", "simulated", "nobody"]
MAX_BYTES, EXAMPLES, EXAMPLE_CHARS = 1_000_000, 5, 2048
REFUSALS = ("404", "500", "rate limit", "not authorized", "unauthorized", "authentication", "internal error")


@dataclass(frozen=True, slots=True)
class CallReply:
    """The reply to a call and who gave it."""

    error: str
    response: str
    by: By = "nobody"


@dataclass(frozen=True)
class RecordedAnswers:
    """The answers to exactly the calls that were recorded.

    A call is the same if API and arguments are, and 5 and "5" are the same.
    """

    calls: Sequence[RecordedCall] = ()

    @cached_property
    def outputs(self) -> dict[tuple[str, str, str], dict[str, Value]]:
        outputs_of: dict[tuple[str, str, str], dict[str, Value]] = {}
        for call in self.calls:
            if (arguments := parse_call_arguments(call.input)) is not None:
                outputs_of.setdefault((call.category, call.tool, call.api), {})[key_of_arguments(arguments)] = (
                    call.output
                )
        return outputs_of

    def answer(self, api: Api, arguments: Mapping[str, Value]) -> CallReply | None:
        """Answer a call; return None if it was not recorded."""
        outputs_of_api = self.of(api)
        key = key_of_arguments(arguments)
        return CallReply(*split_server_output(outputs_of_api[key]), "recorded") if key in outputs_of_api else None

    def of(self, api: Api) -> dict[str, Value]:
        """Return the recorded outputs of an API, by arguments.

        Its recorded names were standardized with and without ``get_``.
        """
        tool = standardize_api_name(api.tool)
        for name in (tool, tool.removeprefix("get_")):
            for pure in (api.pure_name, api.pure_name.removeprefix("get_"), api.pure_name[:64]):
                if outputs_of_api := self.outputs.get((api.category, f"{name}_for_{api.category}", pure)):
                    return outputs_of_api
        return {}


@dataclass
class LiveAnswers:
    """The answers of a server with ToolBench's own interface."""

    url: str
    key: Secret = field(default_factory=lambda: Secret(""))
    """Sent as toolbench_key; it never appears in a reply."""
    seconds: float = 15.0
    """Time allowed for one call."""
    session: aiohttp.ClientSession | None = None

    async def answer(self, api: Api, arguments: Mapping[str, Value]) -> CallReply:
        import aiohttp

        body = {
            "category": api.category,
            "tool_name": standardize_api_name(api.tool),
            "api_name": api.pure_name,
            "tool_input": json.dumps(arguments, ensure_ascii=False),
            "strip": "truncate",
            "toolbench_key": self.key.reveal(),
        }
        if self.session is None:
            self.session = aiohttp.ClientSession()
        # Redirects are refused below, as they would carry the key to another server.
        headers = {"toolbench_key": self.key.reveal()}
        try:
            async with (
                asyncio.timeout(self.seconds),
                self.session.post(self.url, json=body, headers=headers, allow_redirects=False) as reply,
            ):
                body_bytes = b""
                # Read in pieces: the server is a stranger's, and its answer has no limit of its own.
                while len(body_bytes) <= MAX_BYTES and (more := await reply.content.read(65_536)):
                    body_bytes += more
        except TimeoutError:
            return CallReply("Timeout error...", "", "live")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return CallReply(f"{FAILED}: {redact_known(str(error), [self.key])}", "", "live")
        if reply.status != 200:
            return CallReply(f"{FAILED}: status {reply.status}", "", "live")
        text = redact_known(body_bytes[:MAX_BYTES].decode("utf-8", "replace"), [self.key])
        return CallReply(*split_server_output(text), "live")

    async def close(self) -> None:
        if self.session is not None:
            await self.session.close()


@dataclass
class SimulatedAnswers:
    """Answers that an LLM invents from the API's document and recorded examples.

    They are marked as simulated wherever they are shown.
    """

    llm: CaseLLM
    """Counts its usage, which is no part of the technique's budget."""
    recorded: RecordedAnswers
    """Gives the examples."""

    async def answer(self, api: Api, arguments: Mapping[str, Value]) -> CallReply:
        samples = list(self.recorded.of(api).items())[:EXAMPLES]
        examples = "\n".join(
            f"Input: {arguments_text}\nOutput: {json.dumps(output)[:EXAMPLE_CHARS]}"
            for arguments_text, output in samples
        )
        prompt = SIMULATE.substitute(
            document=json.dumps(build_function_schema(api), ensure_ascii=False),
            examples=examples or "(none)",
            input=json.dumps(arguments, ensure_ascii=False),
        )
        try:
            reply = await self.llm.complete([Message("user", prompt)], Sampling(max_tokens=1500))
        except LLMError as error:
            if error.permanent:
                raise
            return CallReply(f"{FAILED}: the simulating model did not answer", "", "simulated")
        # LLMs put JSON in a fence although the prompt asks for nothing else.
        text = reply.text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
        return CallReply(*split_server_output(text), "simulated")


@dataclass(frozen=True)
class ApiAnswers:
    """The answers of all sources, asked in order: recorded, live, simulated.

    An error of a live server counts only if no LLM simulates. A call without a parameter that the API needs is an error
    unless an API was reached.
    """

    recorded: RecordedAnswers = RecordedAnswers()
    live: LiveAnswers | None = None
    simulated: SimulatedAnswers | None = None

    @property
    def llm_usage(self) -> Usage:
        return self.simulated.llm.usage if self.simulated is not None else Usage()

    async def answer(self, api: Api, arguments: Mapping[str, Value]) -> CallReply:
        if (recorded := self.recorded.answer(api, arguments)) is not None:
            return recorded
        reached = await self.live.answer(api, arguments) if self.live is not None else None
        # An error, or a text that looks like a refusal, is none: StableToolBench's check.
        if reached and not reached.error and not any(word in reached.response.lower() for word in REFUSALS):
            return reached
        missing = [name for name in build_function_schema(api)["parameters"]["required"] if name not in arguments]
        # An LLM would invent an answer to a call that the API refuses.
        if missing:
            return reached or CallReply(f"{BAD_INPUT}: {api.function} needs {', '.join(missing)}.", "")
        if self.simulated is not None:
            return await self.simulated.answer(api, arguments)
        return reached or CallReply(f"{NOT_RECORDED}: this call was not made when answers were recorded.", "")


def parse_call_arguments(text: str) -> dict[str, Value] | None:
    """Parse the arguments in an action's input; return None if it is no JSON object."""
    try:
        value = json.loads(text, strict=False) if str(text).strip() else {}
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def key_of_arguments(arguments: Mapping[str, Value]) -> str:
    """Return one text for all arguments that make the same call.

    >>> key_of_arguments({"b": 5, "a": " x "}) == key_of_arguments({"a": "x", "b": "5"})
    True
    """
    return json.dumps(
        {str(name): normalize_argument(arguments[name]) for name in sorted(arguments)}, ensure_ascii=False
    )


def normalize_argument(value: Value) -> Value:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return str(value).strip()
    if isinstance(value, Mapping):
        return {str(name): normalize_argument(value[name]) for name in sorted(value, key=str)}
    return [normalize_argument(one) for one in value] if isinstance(value, list) else value


SIMULATE = Template("""\
You stand in for a web API that cannot be reached. From its document, and from examples of what it returned, write what
it would return for the input. If the input does not fit the document, return an error as the API would.

Document
$document

Examples
$examples

Input
$input

Write one JSON object and nothing else: {"error": "", "response": ...}
""")


LONGEST = 1024


@dataclass
class ToolServer:
    """The functions of a task as an environment (``types.Environment``).

    Forks share the sources of answers; only ``finished`` is separate.
    """

    task: ToolTask
    answers: ApiAnswers
    finished: bool = False
    counter: Iterator[int] = field(default_factory=lambda: count(1))

    @cached_property
    def functions(self) -> dict[str, Api]:
        return apis_by_function(self.task.apis)

    @property
    def llm_usage(self) -> Usage:
        """Usage of a simulating LLM, in all forks together; it is no part of the technique's budget."""
        return self.answers.llm_usage

    def tools(self) -> tuple[str, ...]:
        return (*self.functions, FINISH)

    def describe(self) -> str:
        functions = [build_function_schema(api) for api in self.functions.values()] + [FINISH_SCHEMA]
        return "\n\n".join(describe_function(one) for one in functions)

    async def step(self, action: Action) -> Observation:
        """Run an action. A failed call is an observation with its error."""
        if self.finished:
            return self.observation(CallReply(f"{BAD_INPUT}: the task is finished, nothing can follow.", ""))
        if action.tool == FINISH:
            return self.finish(action.input)
        api = self.functions.get(action.tool)
        if api is None:
            return self.observation(CallReply(f"{NO_FUNCTION}: {action.tool}. There is {', '.join(self.tools())}.", ""))
        arguments = parse_call_arguments(action.input)
        if arguments is None:
            return self.observation(CallReply(f"{BAD_INPUT}: write the arguments as one JSON object.", ""))
        return self.observation(await self.answers.answer(api, arguments))

    def finish(self, text: str) -> Observation:
        kind, answer = parse_finish_input(text)
        if kind == GIVE_UP:
            self.finished = True
            return replace(self.observation(CallReply("", "This attempt is given up.")), answer="")
        if kind != ANSWER or answer is None:
            missing = "final_answer" if kind == ANSWER else f"return_type, as {ANSWER} or {GIVE_UP}"
            return self.observation(CallReply(f"{BAD_INPUT}: {FINISH} needs {missing}.", ""))
        self.finished = True
        return replace(self.observation(CallReply("", "The final answer is handed in.")), answer=answer)

    def observation(self, reply: CallReply) -> Observation:
        # The release cuts a reply at 1,024 characters; the error is kept, the response gives way.
        over = len(reply.error) + len(reply.response) - LONGEST
        response = f"{reply.response[: max(len(reply.response) - over, 0)]}..." if over > 0 else reply.response
        fields: dict[str, Value] = {"error": reply.error[:LONGEST], "response": response}
        if reply.by == "simulated":
            fields["simulated"] = "by a language model; no API said this"
        record = Record(f"o{next(self.counter)}.r1", fields, source=reply.by)
        return Observation((record,), error=bool(reply.error), truncated=False)

    def fork(self) -> ToolServer:
        return ToolServer(self.task, self.answers, self.finished, self.counter)


def describe_function(function: Schema) -> str:
    """Return the name, the description and the arguments of a function as text, with examples."""
    properties = {
        name: {**about, **({"example": about["example_value"]} if "example_value" in about else {})}
        for name, about in function["parameters"]["properties"].items()
    }
    arguments = ToolArguments({"properties": properties, "required": function["parameters"]["required"]})
    return f"### Tool: {function['name']}\n{function['description']}\n{arguments.describe()}"


def parse_finish_input(text: str) -> tuple[str, str | None]:
    """Parse the return type and the answer. JSON that cannot be read is searched for both, as the release does.

    >>> parse_finish_input('{"return_type": "give_answer", "final_answer": "It is "warm" today"}')
    ('give_answer', 'It is "warm" today')
    """
    arguments = parse_call_arguments(text)
    if arguments is not None:
        answer = arguments.get("final_answer")
        return str(arguments.get("return_type", "")), None if answer is None else answer if isinstance(
            answer, str
        ) else json.dumps(answer)
    # LLMs leave quotes in the answer unescaped: the rest of the text is taken, without the closing brace.
    kind = re.search(r'"return_type"\s*:\s*"(\w+)"?', text)
    answer_match = re.search(r'"final_answer"\s*:\s*"(.*)', text, re.S)
    return kind[1] if kind else "", re.sub(r'"?\s*}?\s*$', "", answer_match[1]) if answer_match else None
