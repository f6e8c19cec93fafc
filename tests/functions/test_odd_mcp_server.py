"""An MCP server that wants to fill a prompt, hide in it, or be taken for one of our own tools."""

import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import decisor
from decisor.errors import SetupError, ToolError
from decisor.system.secrets import Secret
from decisor.system.text import frame_observation
from decisor.techniques.shared.observations import show_observation
from decisor.tools.mcp_client import McpTool, open_mcp_tools

SERVER = f"mcp:{sys.executable} {Path(__file__).parent / 'mcp_odd_process.py'}"
KEYS = {"KEY": Secret("s3cret-value-77")}


@pytest.fixture
async def tools() -> AsyncIterator[dict[str, McpTool]]:
    opened = await open_mcp_tools(SERVER, KEYS)
    try:
        yield {tool.name: tool for tool in opened}
    finally:
        for tool in opened:
            await tool.close()


async def test_no_description_fills_a_prompt_or_hides_in_it(tools: dict[str, McpTool]) -> None:
    for tool in tools.values():
        text = tool.describe()
        assert len(text) < 10_000, tool.name
        assert all(char.isprintable() or char == "\n" for char in text), tool.name
        assert not [line for line in text.splitlines() if line.startswith(("Final answer", "# Tools"))]


async def test_a_complaint_about_arguments_is_short_too(tools: dict[str, McpTool]) -> None:
    for name in ("long_names", "hidden"):
        with pytest.raises(ToolError) as complaint:
            await tools[name].call('{"b": 1}')
        assert len(str(complaint.value)) < 10_000


async def test_a_record_has_so_many_fields_and_a_field_so_long_a_name(tools: dict[str, McpTool]) -> None:
    observation = frame_observation(await tools["wide"].call("{}"))
    assert len(observation.records[0].fields) == 200
    assert max(map(len, observation.records[0].fields)) < 300
    assert "1,800 more fields" in observation.note
    assert "\nFinal answer" not in str(show_observation(observation))


async def test_an_answer_that_cannot_be_read_is_an_error_at_once(tools: dict[str, McpTool]) -> None:
    with pytest.raises(ToolError, match="its answer cannot be read"):
        await tools["nested"].call("{}")


async def test_a_key_stays_out_of_what_is_nested_too_deeply_to_be_read(tools: dict[str, McpTool]) -> None:
    try:
        text = str(await tools["nested"].call("{}"))
    except ToolError as error:
        text = str(error)
    assert "s3cret" not in text


async def test_a_tool_is_not_called_like_one_of_our_own() -> None:
    with pytest.raises(SetupError, match="person is a name of decisor's own"):
        async with decisor.open(tools=SERVER):
            pass
    async with decisor.open(tools=f"{SERVER}#wide") as data:
        assert [tool.name for tool in data.tools] == ["wide"]


@pytest.mark.parametrize(
    "size", [1, pytest.param(300_000, marks=pytest.mark.slow)]
)  # an input that fits into its pipe, and of one that does not
async def test_a_tool_that_hangs_is_given_up_at_its_deadline_and_not_waited_for_again(size: int) -> None:
    command = f"mcp:{sys.executable} {Path(__file__).parent / 'mcp_silent_process.py'}"
    (tool,) = await open_mcp_tools(command, {})
    try:
        assert tool.server.seconds <= 30
        tool.server.seconds = 0.2
        for _ in range(2):
            with pytest.raises(ToolError, match="took longer than"):
                await tool.call(json.dumps({"a": "x" * size}))
        began = time.monotonic()
        with pytest.raises(ToolError, match="not called any more"):
            await tool.call("{}")
        assert time.monotonic() - began < 0.1
    finally:
        await tool.close()
