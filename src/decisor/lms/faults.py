"""From an endpoint's refusal to an LMError: is it worth another try, and what can the person do?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from decisor.errors import LMError
from decisor.lms.retry import Again, retry_after

SPENT = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached", "billing_error"}
KEYS = {"invalid_api_key", "authentication_error", "permission_error", "account_deactivated"}
FILTERED = {"content_filter", "content_policy_violation", "data_inspection_failed"}
TOO_LONG = re.compile(r"(?i)context (length|window|size)|prompt is too long|maximum context|too many tokens")
UNSUPPORTED = re.compile(r"(?i)unsupported param|requires --jinja")
"""How llama.cpp's server refuses a field, with status 500."""
PASSING = {408, 409, 425, 429}
LONGEST = 300


def fault(status: int, headers: Mapping[str, str], body: bytes, where: str) -> LMError:
    """The error for a reply whose status is not 2xx; ``headers`` with names in lower case."""
    if 300 <= status < 400:
        return LMError(f"{where} redirects elsewhere ({status}); redirects are not followed. If the other address is "
                       "right, name it: --lm MODEL@BASE_URL", "redirect", permanent=True)  # fmt: skip
    return sort_out(status, error_of(body), where, retry_after(headers))


def fault_in_reply(error: Mapping[str, object], where: str) -> LMError:
    """The error for an error object that came with status 200."""
    code = error.get("code")
    is_status = isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600
    return sort_out(code if is_status and isinstance(code, int) else 200, error, where, None)


def sort_out(status: int, error: Mapping[str, object], where: str, after: float | None) -> LMError:
    """Codes first, then the status: several providers send quota errors as 429."""
    codes = {str(error.get("code")), str(error.get("type"))}
    complaint = f"{where} answered {status}: {message_of(error)}"
    if codes & SPENT or status == 402:
        return LMError(f"{complaint} No credit is left there: top up, or name another LM with --lm.", "quota", True)
    if codes & FILTERED:
        return LMError(complaint, "content_filter")
    if codes & KEYS or status in (401, 403):
        return LMError(
            f"{complaint} Check the key for this endpoint (decisor doctor shows which is used).", "auth", True
        )
    if status == 429:
        return Again(complaint, "rate", after)
    if "context_length_exceeded" in codes or status == 413 or (status < 500 and TOO_LONG.search(complaint)):
        return LMError(complaint, "context")
    if status == 500 and UNSUPPORTED.search(complaint):
        return LMError(complaint, "request")
    if status in PASSING or (status >= 500 and status != 501):
        return Again(complaint, "server", after)
    if status == 200:
        return Again(complaint, "protocol")
    if status == 404:
        return LMError(f"{complaint} Is the LM's name right, and the base URL? Most end in /v1.", "request", True)
    return LMError(complaint, "request", permanent=status not in (400, 422))  # the next may be taken


def error_of(body: bytes) -> Mapping[str, object]:
    """The error object of a reply, in any of the usual shapes; a web page or plain text becomes its message."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        text = body[:20_000].decode("utf-8", "replace")
        title = re.search(r"(?is)<title>(.{1,200}?)</title>", text)
        page = "<html" in text.lower() or "<!doctype" in text.lower()
        return {"message": f"a web page, {title[1].strip()!r}" if title else "a web page" if page else text}
    error = reply.get("error", reply) if isinstance(reply, dict) else reply
    return error if isinstance(error, dict) else {"message": str(error)}


def message_of(error: Mapping[str, object]) -> str:
    """What it says, and the parameter it names: one line, which ends as a sentence does."""
    message = error.get("message") or error.get("detail") or error.get("type") or "(no reason given)"
    text = " ".join(str(message).split())
    param = error.get("param")
    text = f"{text} (param {param!r})" if isinstance(param, str) and param not in text else text
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def shortened(complaint: str) -> str:
    """One line of at most LONGEST characters. Redact first: a key cut in half would not be found."""
    return complaint if len(complaint) <= LONGEST else complaint[: LONGEST - 1] + "…"
