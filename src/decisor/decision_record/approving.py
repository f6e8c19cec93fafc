"""Approvals: made, taken back, and held against the content that they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from decisor.decision_record.digests import digest_of
from decisor.encoding import finite
from decisor.errors import SetupError
from decisor.history.past_run import Approval
from decisor.outside import one_line

Standing = Literal["holds", "refused", "withdrawn", "of another content", "changed"]
ApprovalChange: TypeAlias = Callable[[Sequence[Approval], str], tuple[Approval, ...]]
"""Of the approvals of a content, by its digest."""
MOST_NAME, MOST_NOTE = 200, 2_000


def change_of(by: str, note: str = "", withdraw: bool = False, refuse: bool = False, read: str = "") -> ApprovalChange:
    """That one person approves or refuses, or takes that back. ``read``: the digest of what they read, '' where that is
    not known; of what they did not read they say nothing (SetupError)."""

    def change(approvals: Sequence[Approval], content: str) -> tuple[Approval, ...]:
        if withdraw:
            return withdrawn(approvals, by, note)
        if read not in ("", content):
            raise SetupError("The record is not the one that was read: read it again.")
        return approved(approvals, content, by, note, refuse)

    return change


def approved(
    approvals: Sequence[Approval], content: str, by: str, note: str = "", refuses: bool = False
) -> tuple[Approval, ...]:
    """With one more, of the content with this digest.

    Raises:
        SetupError: nobody is named, theirs is there already, or who refuses does not say why.
    """
    by, note = name_of(by), one_line(note, MOST_NOTE)
    states = [standing(one, content) for one in approvals if one.by == by]
    if before := next((one for one in states if one in ("holds", "refused")), None):
        has = "refused" if before == "refused" else "approved"
        raise SetupError(f"{by} has {has} this already, and may withdraw that.")
    if refuses and not note:
        raise SetupError("Why do you refuse it? Say it in the note.")
    return (*approvals, sealed(Approval(by, present(), content, note, refuses=refuses)))


def withdrawn(approvals: Sequence[Approval], by: str, why: str = "") -> tuple[Approval, ...]:
    """With those of one person taken back; they stay to be seen.

    Raises:
        SetupError: there is none.
    """
    by = name_of(by)
    if not any(one.by == by and not one.withdrawn for one in approvals):
        raise SetupError(f"There is no approval by {by} to withdraw.")
    return tuple(
        sealed(replace(one, withdrawn=present(), why=one_line(why, MOST_NOTE)))
        if one.by == by and not one.withdrawn
        else one
        for one in approvals
    )


def standing(approval: Approval, content: str) -> Standing:
    """``changed``: it is not as it was made. ``of another content``: the record was changed after it was approved."""
    if approval.seal != seal_of(approval):
        return "changed"
    if approval.withdrawn:
        return "withdrawn"
    if approval.content != content:
        return "of another content"
    return "refused" if approval.refuses else "holds"


def sealed(approval: Approval) -> Approval:
    return replace(approval, seal=seal_of(approval))


def seal_of(approval: Approval) -> str:
    plain = finite(replace(approval, seal=""))
    if not approval.refuses:
        del plain["refuses"]  # as those were sealed that could not refuse
    return digest_of(plain)


def name_of(by: str) -> str:
    """Raises SetupError where it is empty."""
    name = one_line(by, MOST_NAME)
    if not name:
        raise SetupError("Who approves? Name a person.")
    return name


def present() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
