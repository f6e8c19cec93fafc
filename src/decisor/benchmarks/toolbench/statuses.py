"""How a call ended, by the error that came with it: the codes of ToolBench's release, and 13 for what is not recorded.

0 answered        4 gave up              8 not subscribed       12 could not be sent or read
1 no such function 5 took too long       9 too many requests    13 not recorded (ours)
2 bad input       6 API not working     10 rate limit
3 final answer    7 not authorized      11 the API's own error
"""

from __future__ import annotations

from collections.abc import Mapping

from decisor.types import Value

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


def status_of(error: str) -> int:
    """
    >>> status_of(""), status_of("Message error..."), status_of("Tool building error...\\n'x'"), status_of("?")
    (0, 11, 12, 12)
    """
    if not error:
        return 0
    return next((code for prefix, code in ERRORS.items() if error.startswith(prefix)), 12)


def reply_of(output: Value) -> tuple[str, str]:
    """The error and the response in what a server answered: an object with both, its text, or something else.

    >>> reply_of('{"error": "", "response": "7"}'), reply_of({"error": "Timeout error...", "response": ""})
    (('', '7'), ('Timeout error...', ''))
    """
    import json

    value = output
    if isinstance(output, str):
        try:
            value = json.loads(output)
        except ValueError:
            error = next((prefix for prefix in ERRORS if prefix in output[:80]), "")
            return (error, output) if error else (f"{FAILED}: the answer is not JSON", output)
    if not isinstance(value, Mapping) or not {"error", "response"} & value.keys():
        return "", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    response = value.get("response", "")
    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    return str(value.get("error") or ""), text
