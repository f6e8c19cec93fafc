"""An MCP server whose only tool never answers: ``python mcp_silent_process.py``."""

import json
import sys
import time


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        reply: dict[str, object] = {"error": {"code": -32601, "message": "no such method"}}
        if request["method"] == "initialize":
            reply = {
                "result": {
                    "protocolVersion": request["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "silent", "version": "1"},
                }
            }
        elif request["method"] == "tools/list":
            reply = {
                "result": {
                    "tools": [
                        {
                            "name": "weather",
                            "description": "Tell the weather.",
                            "inputSchema": {"type": "object"},
                            "annotations": {"readOnlyHint": True},
                        }
                    ]
                }
            }
        elif request["method"] == "tools/call":
            time.sleep(1_000)
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
