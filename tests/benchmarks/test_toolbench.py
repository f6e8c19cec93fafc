"""ToolBench: the release's names and schemas, who answers and how it is marked, failures, and the judged scores."""

import asyncio
import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from data import DATA
from decisor.errors import SetupError
from decisor.lab.benchmark import Outcome
from decisor.lab.judges import OwnLLM
from decisor.lab.toolbench.bench import (
    Incidence,
    ToolBenchBench,
    build_run_tags,
    compute_incidences,
    list_call_outcomes,
)
from decisor.lab.toolbench.environment import (
    Api,
    ApiAnswers,
    ApiParameter,
    LiveAnswers,
    RecordedAnswers,
    RecordedCall,
    SimulatedAnswers,
    ToolServer,
    ToolTask,
    apis_by_function,
    avoid_reserved_name,
    build_function_schema,
    key_of_arguments,
    load_calls,
    load_tasks,
    parse_call_arguments,
    parse_finish_input,
    split_server_output,
    standardize_api_name,
    status_of_error,
)
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.system.secrets import Secret
from decisor.techniques.cot import CoT
from decisor.trace.events import Trace
from decisor.types import Action, Message, Observation
from servers.openai_server import serve, serve_app

REAL = DATA / "toolbench"
needs_data = pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there: set DECISOR_DATA")
CITY, DAYS = ApiParameter("city"), ApiParameter("Days", "NUMBER", "how many", 3)
ABOUT = "from/Now tells it. " + "x" * 400
WEATHER = Api("Weather", "Sky Net v2", "from/Now", ABOUT, (CITY, DAYS), (ApiParameter("id", "BOOLEAN"),))
TIME = Api("Tools", "Clock", "Time", "", (), (ApiParameter("zone", "ENUM", "y" * 300, "UTC"),))
TASK = ToolTask("t-1", "t", "What will the weather be in Ghent?", (WEATHER, TIME))
RAIN = '{"error": "", "response": "rain"}'
CALLS = [
    RecordedCall("Weather", "sky_net_v2_for_Weather", "from_now", '{"city": "Ghent", "days": 2}', RAIN),
    RecordedCall("Tools", "clock_for_Tools", "time", "{}", '{"error": "Message error...", "response": "no zone"}'),
]


@cache
def real_tasks() -> list[ToolTask]:
    return load_tasks(REAL)


async def step(env: ToolServer, tool: str, given: str) -> tuple[str, str]:
    fields = (await env.step(Action(tool, given))).records[0].fields
    return str(fields["error"]), str(fields["response"])


def test_a_schema_is_the_releases() -> None:
    told = build_function_schema(WEATHER)
    assert told["name"] == WEATHER.function == "from_now_for_sky_net_v2"
    assert told["description"].startswith(
        'A function of the tool "sky_net_v2". What it does: "from_now_for_sky_net_v2 tells it.'
    )
    assert told["description"].count("x") == 256 - len("from_now_for_sky_net_v2 tells it. ")
    assert told["parameters"] == {
        "type": "object",
        "required": ["city", "days"],
        "optional": ["is_id"],
        "properties": {
            "city": {"type": "string", "description": ""},
            "is_id": {"type": "boolean", "description": ""},
            "days": {"type": "integer", "description": "how many", "example_value": 3},
        },
    }
    assert build_function_schema(TIME)["parameters"]["properties"] == {}, (
        "optional parameters need a required one: the release's quirk"
    )


def test_long_names_keep_their_end() -> None:
    api = Api("X", "t" * 60, "get the thing")
    assert api.function == ("get_the_thing_for_" + "t" * 60)[-64:] and len(api.function) == 64
    twice = apis_by_function(
        [api, Api("X", "t" * 60, "another thing"), Api("X", "t" * 70, "thing"), Api("X", "t" * 70, "other")]
    )
    assert len(twice) == 2, "names that are cut to the same are one function, the first"


@given(st.text(max_size=90), st.text(max_size=90))
def test_names_are_at_most_64_of_the_releases_characters(tool: str, name: str) -> None:
    api = Api("X", tool, name)
    assert len(api.function) <= 64
    assert standardize_api_name(standardize_api_name(name)) == standardize_api_name(name)
    assert avoid_reserved_name(standardize_api_name(name)) not in {
        "from",
        "class",
        "return",
        "false",
        "true",
        "id",
        "and",
    }


@needs_data
def test_all_real_apis_have_a_schema_and_all_tasks_are_read() -> None:
    tasks = real_tasks()
    assert len(tasks) == len({task.id for task in tasks}) == 663
    assert Counter(task.split for task in tasks)["G3_instruction"] == 55
    for task in tasks:
        assert len(apis_by_function(task.apis)) >= 1
        for api in task.apis:
            json.dumps(build_function_schema(api))
            assert 0 < len(api.function) <= 64 and " " not in api.function
    assert len(load_tasks(REAL, "G1_tool")) == 112
    with pytest.raises(SetupError, match="it has all, G1_category"):
        load_tasks(REAL, "G4")


def test_the_releases_own_files_are_read_too(tmp_path: Path) -> None:
    row = {
        "query_id": 7,
        "query": "x",
        "relevant APIs": [["A", "b"]],
        "api_list": [
            {
                "category_name": "C",
                "tool_name": "A",
                "api_name": "b",
                "api_description": None,
                "method": "GET",
                "required_parameters": [{"name": "q", "type": "STRING", "description": "d", "default": ""}],
                "optional_parameters": [],
            }
        ],
    }
    (tmp_path / "G1_instruction.json").write_text(json.dumps([row, row]))
    assert [task.id for task in load_tasks(tmp_path)] == ["G1_instruction-7", "G1_instruction-7-2"]
    (tmp_path / "G1_instruction.json").write_text('[{"query": "x"}]')
    with pytest.raises(SetupError, match="not of the released form"):
        load_tasks(tmp_path)
    with pytest.raises(SetupError, match="data/test_instruction"):
        load_tasks(tmp_path / "nowhere")


async def test_recorded_calls_are_served_exactly_and_others_are_said_not_to_be_recorded() -> None:
    env = ToolServer(TASK, ApiAnswers(RecordedAnswers(CALLS)))
    assert await step(env, "from_now_for_sky_net_v2", '{"days": "2", "city": "Ghent"}') == ("", "rain")
    assert await step(env, "time_for_clock", "") == ("Message error...", "no zone")
    error, response = await step(env, "from_now_for_sky_net_v2", '{"city": "Lier", "days": 2}')
    assert error.startswith("Not recorded") and response == ""
    assert (await step(env, "weather", "{}"))[0].startswith("No such function name: weather. There is from_now_for")
    assert (await step(env, "time_for_clock", "zone=UTC"))[0].startswith("Bad input")


@needs_data
def test_every_recorded_call_has_the_status_that_the_data_say() -> None:
    """Expected (specification 5.3): 2,883 without error, 1,016 message errors, 506 errors while building the call, 129
    unavailable or limited, 69 that are no JSON text; the last are objects and lists, and texts that name no status."""
    recorded = load_calls(REAL)
    found: Counter[int] = Counter()
    other = 0
    for call in recorded:
        try:
            json.loads(call.output if isinstance(call.output, str) else "")
        except (ValueError, TypeError):
            other += 1
            continue
        found[status_of_error(split_server_output(call.output)[0])] += 1
    assert len(recorded) == 4609 and other == 69
    assert (found[0], found[11], found[12], sum(found[code] for code in range(5, 11))) == (2883, 1016, 512, 129)
    held = RecordedAnswers(recorded).outputs
    assert sum(len(outputs) for outputs in held.values()) > 4400


@needs_data
async def test_recorded_calls_of_documented_apis_come_back_through_the_environment() -> None:
    recorded = RecordedAnswers(load_calls(REAL))
    served, apis = 0, {(api.category, api.function): api for task in real_tasks() for api in task.apis}
    for api in apis.values():
        env = ToolServer(ToolTask("x", "x", "x", (api,)), ApiAnswers(recorded))
        for arguments, output in recorded.of(api).items():
            error, response = await step(env, api.function, arguments)
            wanted_error, wanted = split_server_output(output)
            assert (
                error == wanted_error[:1024]
                and response.removesuffix("...") == wanted[: len(response.removesuffix("..."))]
            )
            assert len(error) + len(response) <= max(1024 + 3, len(error))
            served += 1
    assert served > 500


@pytest.mark.parametrize(
    ("given", "answer", "error"),
    [
        ('{"return_type": "give_answer", "final_answer": "7"}', "7", ""),
        ('{"return_type": "give_up_and_restart"}', "", ""),
        ('{"return_type": "give_answer", "final_answer": "a "b" c"}', 'a "b" c', ""),
        ("{}", None, "needs return_type"),
        ('{"return_type": "give_answer"}', None, "needs final_answer"),
        ("done", None, "needs return_type"),
        ('{"return_type": "give_answer", "final_answer": {"a": 1}}', '{"a": 1}', ""),
    ],
)
async def test_finish_hands_in_gives_up_or_complains(given: str, answer: str | None, error: str) -> None:
    env = ToolServer(TASK, ApiAnswers())
    seen = await env.step(Action("Finish", given))
    assert seen.answer == answer and error in str(seen.records[0].fields["error"])
    assert env.finished == (answer is not None)
    if env.finished:
        assert "nothing can follow" in (await step(env, "time_for_clock", "{}"))[0]
        assert not ToolServer(TASK, ApiAnswers()).finished and env.fork().finished


async def test_forks_finish_apart_and_long_answers_are_cut() -> None:
    long = [RecordedCall("Tools", "clock_for_Tools", "time", "{}", json.dumps({"error": "", "response": "z" * 5000}))]
    env = ToolServer(TASK, ApiAnswers(RecordedAnswers(long)))
    other = env.fork()
    await other.step(Action("Finish", '{"return_type": "give_up_and_restart"}'))
    assert await step(env, "time_for_clock", "{}") == ("", "z" * 1024 + "...")


async def test_a_live_server_is_asked_as_the_release_asks_and_its_key_never_comes_back() -> None:
    seen: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        seen.append({**body, "header": request.headers.get("toolbench_key")})
        city = json.loads(body["tool_input"]).get("city", "")
        if city == "slow":
            await asyncio.sleep(2)
        if city == "down":
            return web.Response(status=503, text="down")
        if city == "odd":
            return web.Response(text="<html>")
        return web.json_response({"error": "", "response": f"{city} {body['toolbench_key']}"})

    app = web.Application()
    app.router.add_post("/rapidapi", answer)
    async with serve_app(app) as origin:
        live = LiveAnswers(f"{origin}/rapidapi", Secret("key-12345678"), seconds=0.3)
        env = ToolServer(TASK, ApiAnswers(RecordedAnswers(CALLS), live))
        assert await step(env, "from_now_for_sky_net_v2", '{"city": "Lier"}') == ("", "Lier [hidden]")
        assert await step(env, "from_now_for_sky_net_v2", '{"city": "Ghent", "days": 2}') == ("", "rain")
        told = [
            await step(env, "from_now_for_sky_net_v2", json.dumps({"city": city})) for city in ("slow", "down", "odd")
        ]
        await live.close()
    assert [status_of_error(error) for error, _ in told] == [5, 12, 12]
    assert seen[0] == {
        "category": "Weather",
        "tool_name": "sky_net_v2",
        "api_name": "from_now",
        "tool_input": '{"city": "Lier"}',
        "strip": "truncate",
        "toolbench_key": "key-12345678",
        "header": "key-12345678",
    }
    assert len(seen) == 4, "what is recorded is not asked again"


async def test_what_an_llm_made_up_is_marked_in_the_record() -> None:
    llm = ScriptedLLM(['```json\n{"error": "", "response": {"sky": "blue"}}\n```', "no idea"])
    env = ToolServer(
        TASK,
        ApiAnswers(
            RecordedAnswers(CALLS), simulated=SimulatedAnswers(OwnLLM("m", llm).for_case(), RecordedAnswers(CALLS))
        ),
    )
    (record,) = (await env.step(Action("from_now_for_sky_net_v2", '{"city": "Lier", "days": 1}'))).records
    assert record.source == "simulated" and "no API said this" in str(record.fields["simulated"])
    assert record.fields["response"] == '{"sky": "blue"}'
    assert '"Ghent"' in llm.seen[0], "recorded calls of the same API are its examples"
    (odd,) = (await env.step(Action("time_for_clock", '{"zone": "UTC"}'))).records
    assert status_of_error(str(odd.fields["error"])) == 12
    (kept,) = (await env.step(Action("time_for_clock", "{}"))).records
    assert "simulated" not in kept.fields and kept.source == "recorded"


async def test_a_call_without_a_parameter_that_is_needed_is_an_error_also_where_no_api_is_reached() -> None:
    bare = RecordedCall("Weather", "sky_net_v2_for_Weather", "from_now", '{"city": "Lier"}', RAIN)
    llm = ScriptedLLM([])
    for simulated in (None, SimulatedAnswers(OwnLLM("m", llm).for_case(), RecordedAnswers([]))):
        env = ToolServer(TASK, ApiAnswers(RecordedAnswers([bare]), simulated=simulated))
        error, _ = await step(env, "from_now_for_sky_net_v2", '{"days": 1}')
        assert error == "Bad input: from_now_for_sky_net_v2 needs city." and status_of_error(error) == 2
        assert await step(env, "from_now_for_sky_net_v2", '{"city": "Lier"}') == ("", "rain"), "it was recorded"
    assert not llm.seen


async def test_an_answer_of_any_sequence_counts_as_found_where_the_judge_reads_them_all(tmp_path: Path) -> None:
    seen: list[str] = []

    def judge(request: dict[str, Any]) -> str:
        seen.append(request["messages"][-1]["content"])
        return f"Verdict: {'solvable' if 'Tools' in seen[-1] else 'solved' if 'Rain' in seen[-1] else 'unsolved'}"

    def finish(answer: str) -> str:
        text = json.dumps({"return_type": "give_answer", "final_answer": answer})
        return f"Thought: x\nAction: Finish\nAction input: {text}"

    async with serve(judge) as url:
        for every_answer, metrics in ((False, {}), (True, {"found": 1.0})):
            bench = ToolBenchBench(small(tmp_path), judge=f"toy@{url}", evaluations=1, every_answer=every_answer)
            (case,) = bench.cases()
            trace = Trace()
            async with bench.environment(case) as env:
                script = [finish("Sorry, nothing"), finish("Rain in Ghent"), finish("Rain, I think")]
                run = Run(ScriptedLLM(script), env, trace=trace)
                decision = await CoT(chains=3, choose="vote")(case.question, run)
            score = await bench.score(case, decision, trace.entries)
            await bench.close()
            assert (decision.answer, score.right) == ("Sorry, nothing", False)
            assert {name: value for name, value in score.metrics.items() if name == "found"} == metrics


@given(
    st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3) | st.booleans() | st.none(), max_size=4)
)
def test_the_order_of_arguments_makes_no_other_call(arguments: dict[str, Any]) -> None:
    turned = dict(reversed(arguments.items()))
    assert (
        key_of_arguments(arguments)
        == key_of_arguments(turned)
        == key_of_arguments(parse_call_arguments(json.dumps(turned)) or {})
    )


@given(st.text(max_size=60))
def test_any_text_given_to_finish_is_read_without_a_crash(text: str) -> None:
    kind, answer = parse_finish_input(text)
    assert isinstance(kind, str) and (answer is None or isinstance(answer, str))


SCRIPT = [
    "Thought: x\nAction: weather_now\nAction input: {}",
    'Thought: x\nAction: from_now_for_sky_net_v2\nAction input: {"city": "Ghent", "days": 2}',
    'Thought: x\nAction: Finish\nAction input: {"return_type": "give_answer", "final_answer": "Rain in Ghent."}',
]


def small(folder: Path) -> Path:
    def parameters(given: tuple[ApiParameter, ...]) -> list[dict[str, Any]]:
        return [{"name": p.name, "type": p.type, "description": p.description, "default": p.default} for p in given]

    apis = [
        {
            "category_name": a.category,
            "tool_name": a.tool,
            "api_name": a.name,
            "api_description": a.description,
            "required_parameters": parameters(a.required),
            "optional_parameters": parameters(a.optional),
        }
        for a in TASK.apis
    ]
    row = {"query_id": 1, "split": "t", "query": TASK.query, "api_list": apis, "relevant APIs": []}
    rows = [{"category": c.category, "tool": c.tool, "api": c.api, "input": c.input, "output": c.output} for c in CALLS]
    (folder / "test_queries.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    (folder / "recorded_calls.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return folder


@pytest.mark.parametrize(
    ("verdict", "right", "failure"), [("solved", True, ""), ("unsolved", False, "hallucinated_tool")]
)
async def test_the_bench_judges_the_answer_and_counts_what_went_wrong(
    tmp_path: Path, verdict: str, right: bool, failure: str
) -> None:
    asked: list[str] = []

    def judge(request: dict[str, Any]) -> str:
        asked.append(request["messages"][-1]["content"])
        return f"Verdict: {'solvable' if 'Tools' in asked[-1] else verdict}"

    async with serve(judge) as url:
        bench = ToolBenchBench(small(tmp_path), judge=f"toy@{url}", evaluations=2)
        (case,) = bench.cases()
        async with bench.environment(case) as env:
            trace = Trace()
            run = Run(ScriptedLLM(SCRIPT[1:]), env, trace=trace)
            await run.act(Action("weather_now", "{}"))
            decision = await CoT(calls=4)(case.question, run)
        score = await bench.score(case, decision, trace.entries)
        await bench.close()
    assert decision.answer == "Rain in Ghent"
    assert len(asked) == score.judging.calls == 2 * (1 if right else 2)
    assert (score.right, score.failure, score.metrics["valid"]) == (right, failure, 1)
    assert score.metrics["solved"] == float(right) and score.counts == {"api_calls": 2, "steps": 2, "judged": 2}
    assert set(score.tags) == {"hallucinated_tool", "by:recorded", *(["fixed:hallucinated_tool"] if right else [])}
    assert all("recorded" not in text and "hallucinated" not in text for text in asked)


async def test_without_a_judge_an_answer_is_unscored_and_none_fails(tmp_path: Path) -> None:
    bench = ToolBenchBench(small(tmp_path))
    (case,) = bench.cases()
    for script, right in (
        (SCRIPT[1:], None),
        (['Thought: x\nAction: Finish\nAction input: {"return_type": "give_up_and_restart"}'], False),
    ):
        trace = Trace()
        async with bench.environment(case) as env:
            decision = await CoT(calls=4)(case.question, Run(ScriptedLLM(script), env, trace=trace))
        score = await bench.score(case, decision, trace.entries)
        assert (score.right is right and "passed" not in score.metrics) or right is False
        assert score.failure == ("decision_failure" if right is False else "")


async def test_classes_are_counted_over_all_branches_and_fix_ratios_over_runs() -> None:
    trace = Trace()
    limited = '{"error": "Rate limit per minute error...", "response": ""}'
    more = RecordedCall("Tools", "clock_for_Tools", "time", '{"zone": "x"}', limited)
    env = ToolServer(TASK, ApiAnswers(RecordedAnswers([*CALLS, more])))
    run = Run(ScriptedLLM([]), env, trace=trace)
    for tool, text in (
        ("nothing", ""),
        ("time_for_clock", "{}"),
        ("time_for_clock", '{"zone": "x"}'),
        ("from_now_for_sky_net_v2", '{"city": "Lier", "days": 1}'),
    ):
        await run.using(env=env.fork()).act(Action(tool, text))
    made = list_call_outcomes(trace.entries)
    assert [one.status for one in made] == [1, 11, 10, 13]
    assert build_run_tags(made, False) == (
        "hallucinated_tool",
        "tool_call_error",
        "unavailable",
        "not_recorded",
        "by:recorded",
    )
    assert build_run_tags(made[:1], True) == ("hallucinated_tool", "fixed:hallucinated_tool")
    assert build_run_tags([], False) == ("decision_failure",) and build_run_tags([], None) == ()

    def outcome(state: Any, *given: str) -> Outcome:
        return Outcome("toolbench", "c", "t", "m", 0, state, tags=given)

    found = compute_incidences(
        [
            outcome("right", "unavailable", "fixed:unavailable"),
            outcome("wrong", "unavailable"),
            outcome("right"),
            outcome("wrong", "decision_failure"),
            outcome("crashed", "unavailable"),
        ]
    )
    assert found["unavailable"] == Incidence(4, 2, 1)
    assert (found["unavailable"].share, found["unavailable"].fix_ratio) == (0.5, 0.5)
    assert found["hallucinated_tool"].fix_ratio is None and found["decision_failure"].met == 1


def test_observations_of_the_environment_are_plain_records() -> None:
    seen = asyncio.run(ToolServer(TASK, ApiAnswers(RecordedAnswers(CALLS))).step(Action("time_for_clock", "{}")))
    assert isinstance(seen, Observation) and seen.error and seen.answer is None
    assert Message("user", seen.records[0].id).content == "o1.r1"
