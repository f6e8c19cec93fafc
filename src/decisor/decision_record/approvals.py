"""Approvals: made, taken back, and held against the content that they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Literal, TypeAlias

from decisor.decision_record.record import digest_of_json
from decisor.errors import SetupError
from decisor.history.store import Approval
from decisor.system.serialization import finite_json_value
from decisor.system.text import fit_on_one_line

Standing = Literal["holds", "refused", "withdrawn", "of another content", "changed"]
Act = Literal["approve", "refuse", "withdraw"]
ApprovalChange: TypeAlias = Callable[[Sequence[Approval], str], tuple[Approval, ...]]
"""Of the approvals of a content, by its digest."""
MOST_NAME, MOST_NOTE = 200, 2_000


def make_approval_change(
    by: str, note: str = "", act: Act = "approve", read: str = "", review: str = ""
) -> ApprovalChange:
    """Return the change of approvals by one act of one person.

    Args:
        read: Digest of the record that the person read, '' if not known; SetupError if it is not this record.
        review: Day on which the person looks at it again, or ''.
    """

    def change(approvals: Sequence[Approval], content: str) -> tuple[Approval, ...]:
        if act == "withdraw":
            return withdraw_approvals(approvals, by, note)
        # The record may have changed between reading and approving; nobody approves what they have not seen.
        if read not in ("", content):
            raise SetupError("The record is not the one that was read: read it again.")
        return add_approval(approvals, Approval(by, "", content, note, refuses=act == "refuse", review=review))

    return change


def add_approval(approvals: Sequence[Approval], approval: Approval) -> tuple[Approval, ...]:
    """Return the approvals with one more, of now.

    Raises:
        SetupError: nobody is named, theirs is there already, who refuses does not say why, or the review is no day.
    """
    by, note = check_person_name(approval.by), fit_on_one_line(approval.note, MOST_NOTE)
    states = [check_approval(one, approval.content) for one in approvals if one.by == by]
    if before := next((one for one in states if one in ("holds", "refused")), None):
        has = "refused" if before == "refused" else "approved"
        raise SetupError(f"{by} has {has} this already, and may withdraw that.")
    if approval.refuses and not note:
        raise SetupError("Why do you refuse it? Say it in the note.")
    if approval.review:
        check_review_day(approval.review)
    return (*approvals, sealed(replace(approval, by=by, at=current_utc_time(), note=note)))


def check_review_day(day: str) -> None:
    """Raise SetupError if a text is no day from today on."""
    try:
        if date.fromisoformat(day) >= datetime.now(UTC).date():
            return
    except ValueError:
        pass
    raise SetupError(f"The review is on {fit_on_one_line(day, 40)!r}, which is no day from today on: write YYYY-MM-DD.")


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
    for later in ("refuses", "review"):  # as those were sealed that could have neither
        if not plain[later]:
            del plain[later]
    return digest_of_json(plain)


def check_person_name(by: str) -> str:
    """Return the name on one line; raise SetupError if it is empty."""
    name = fit_on_one_line(by, MOST_NAME)
    if not name:
        raise SetupError("No approver given. Name a person.")
    return name


def current_utc_time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
