"""Approvals: made, taken back, and held against the content that they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from decisor.decision_record.record import digest_of_json
from decisor.errors import SetupError
from decisor.history.store import Approval
from decisor.system.serialization import finite_json_value
from decisor.system.text import fit_on_one_line

Standing = Literal["holds", "refused", "withdrawn", "of another content", "changed"]
ApprovalChange: TypeAlias = Callable[[Sequence[Approval], str], tuple[Approval, ...]]
"""Of the approvals of a content, by its digest."""
MOST_NAME, MOST_NOTE = 200, 2_000


def make_approval_change(
    by: str, note: str = "", withdraw: bool = False, refuse: bool = False, read: str = ""
) -> ApprovalChange:
    """Return the change of approvals if one person approves, refuses, or takes that back. read: digest of the record
    that the person read, '' if not known; SetupError if it is not this record.
    """

    def change(approvals: Sequence[Approval], content: str) -> tuple[Approval, ...]:
        if withdraw:
            return withdraw_approvals(approvals, by, note)
        # The record may have changed between reading and approving; nobody approves what they have not seen.
        if read not in ("", content):
            raise SetupError("The record is not the one that was read: read it again.")
        return add_approval(approvals, content, by, note, refuse)

    return change


def add_approval(
    approvals: Sequence[Approval], content: str, by: str, note: str = "", refuses: bool = False
) -> tuple[Approval, ...]:
    """Return the approvals with one more, of the content with this digest.

    Raises:
        SetupError: nobody is named, theirs is there already, or who refuses does not say why.
    """
    by, note = check_person_name(by), fit_on_one_line(note, MOST_NOTE)
    states = [check_approval(one, content) for one in approvals if one.by == by]
    if before := next((one for one in states if one in ("holds", "refused")), None):
        has = "refused" if before == "refused" else "approved"
        raise SetupError(f"{by} has {has} this already, and may withdraw that.")
    if refuses and not note:
        raise SetupError("Why do you refuse it? Say it in the note.")
    return (*approvals, sealed(Approval(by, current_utc_time(), content, note, refuses=refuses)))


def withdraw_approvals(approvals: Sequence[Approval], by: str, why: str = "") -> tuple[Approval, ...]:
    """Return the approvals with those of one person taken back; they stay visible.

    Raises:
        SetupError: there is none.
    """
    by = check_person_name(by)
    if not any(one.by == by and not one.withdrawn for one in approvals):
        raise SetupError(f"There is no approval by {by} to withdraw.")
    return tuple(
        sealed(replace(one, withdrawn=current_utc_time(), why=fit_on_one_line(why, MOST_NOTE)))
        if one.by == by and not one.withdrawn
        else one
        for one in approvals
    )


def check_approval(approval: Approval, content: str) -> Standing:
    """Return whether an approval holds.

    ``changed``: it is not as it was made. ``of another content``: the record was changed after it was approved.
    """
    # The seal comes first: no other field of a changed approval can be believed.
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
    plain = finite_json_value(replace(approval, seal=""))
    if not approval.refuses:
        del plain["refuses"]  # as those were sealed that could not refuse
    return digest_of_json(plain)


def check_person_name(by: str) -> str:
    """Return the name on one line; raise SetupError if it is empty."""
    name = fit_on_one_line(by, MOST_NAME)
    if not name:
        raise SetupError("No approver given. Name a person.")
    return name


def current_utc_time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
