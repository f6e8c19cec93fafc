"""The endpoint that all are measured against: answers after a delay, in a process of its own. Standard library only.

python server.py SECONDS CALLS

It keeps nothing between requests: how many turns a conversation has had is read from the request. Where tools are
offered it calls the tool ``sql`` until the last turn, and ``final_answer`` then, if that is offered; where none are, it
answers in the form that decisor's techniques ask for. Prints its port, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys

NUMBERS = itertools.count(1)
NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
"""To who asks how long its prompts may be."""


def query(turn: int) -> str:
    """No two are the same, so no cache helps anybody."""
    return f"SELECT name, price FROM goods WHERE id = {turn + 1} AND price < {1000000 + next(NUMBERS)}"


def usage(text: str) -> dict[str, int]:
    return {"prompt_tokens": 450, "completion_tokens": len(text) // 4, "total_tokens": 450 + len(text) // 4}


def completion(message: dict[str, object], finish: str = "stop") -> bytes:
    choice = {"index": 0, "finish_reason": finish, "logprobs": None, "message": {"role": "assistant", **message}}
    text = json.dumps(message)
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return json.dumps({**body, "usage": usage(text)}).encode()


def tool_call(name: str, arguments: dict[str, str], turn: int) -> bytes:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{turn}", "type": "function", "function": function}
    return completion({"content": None, "tool_calls": [call]}, "tool_calls")


def answer(body: bytes, calls: int) -> bytes:
    """What a model would say at this turn."""
    if b'"tools":' in body or b'"tools" :' in body:
        return answer_with_tools(json.loads(body), calls)
    turn = max(body.count(b"Observation:\\n"), body.count(b'"role": "assistant"'), body.count(b'"role":"assistant"'))
    if turn >= calls - 1:
        cited = "[o1.r1]" if b"[o1.r1]" in body else ""
        said = f"Final answer: {'wood' if cited else 'none'}\nBecause: it is the cheapest {cited}"
        return completion({"content": said})
    tool, text = ("sql", query(turn)) if b"### Tool: sql" in body else ("think", f"look at good {turn + 1}")
    return completion({"content": f"Thought: the next good may be cheaper.\nAction: {tool}\nAction input: {text}"})


def answer_with_tools(request: dict[str, object], calls: int) -> bytes:
    messages, tools = request["messages"], request["tools"]
    assert isinstance(messages, list) and isinstance(tools, list)
    offered = {tool["function"]["name"] for tool in tools}
    turn = sum(message["role"] == "assistant" for message in messages)
    if turn >= calls - 1:
        if "final_answer" in offered:
            return tool_call("final_answer", {"answer": "wood"}, turn)
        return completion({"content": "wood"})
    name = "sql" if "sql" in offered else "note"
    return tool_call(name, {"text": query(turn)}, turn)


async def main(seconds: float, calls: int) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET "):
                    writer.write(NOTHING)
                    continue
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                body = await reader.readexactly(size)
                if seconds:
                    await asyncio.sleep(seconds)
                said = answer(body, calls)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(said)
                )
                writer.write(said)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=2**22, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), int(sys.argv[2])))
