"""What a run of the history was asked of, named again: what a person names beside it goes before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from decisor.budget import Limits
from decisor.config.connection import FILES
from decisor.config.current import Config, default_places
from decisor.errors import SetupError
from decisor.history.past_run import Inputs, PastRun
from decisor.history.store import History
from decisor.session.options import Options

if TYPE_CHECKING:
    from decisor.session.result import Result
    from decisor.session.sources import Sources
    from decisor.tools.row_values import RowValuePolicy

KINDS = ("db", "graph", "docs", "tools")
OTHERS = ("base_url", "model", "technique", "lm", "methods", "auth", "tables", "deny_tables", "definitions",
          "rows", "mask", "audit", "max_scan", "row_values")  # fmt: skip


@dataclass(frozen=True)
class PastNamed:
    """A run to go on from."""

    history: History = field(default_factory=History)
    run: PastRun | None = None

    @property
    def inputs(self) -> Inputs:
        return self.run.inputs if self.run else Inputs()

    @property
    def number(self) -> int:
        return self.run.number if self.run else 0

    def result(self) -> Result:
        """Raises SetupError where its trace is gone."""
        from decisor.session.recorded import past_result

        assert self.run is not None
        return past_result(self.history, self.run)


def past_named(last: bool, number: int | None) -> PastNamed:
    """Raises SetupError where there is no such run."""
    if not (last or number):
        return PastNamed()
    history = History()
    return PastNamed(history, history.read(number or 0))


def inputs_again(past: PastNamed, own: Inputs) -> Inputs:
    """What was named for a run, and in its place what ``own`` names.

    Raises:
        SetupError: something that it used is not kept, or is relative to another folder, and is not named again.
    """
    old = past.inputs
    texts = [name for name in (*KINDS, *OTHERS) if getattr(own, name)]
    if past.run and old.left_out and not any(name in texts for name in (*KINDS, "lm")):
        raise SetupError(f"Run {past.number} used {', '.join(old.left_out)}, which is not kept: name it again, with "
                         "--db, --graph, --docs, --tools or --lm.")  # fmt: skip
    elsewhere = [place for name in (*KINDS, "definitions") if name not in texts for place in getattr(old, name)]
    if past.run and old.folder != str(Path.cwd()) and (here := [one for one in elsewhere if is_relative(one)]):
        raise SetupError(f"Run {past.number} was asked in {old.folder}, and {here[0]} is relative to it: go there, or "
                         "name the data again with --db.")  # fmt: skip
    chosen = replace(old, **{name: getattr(own, name) for name in texts})
    if own.tools and old.row_values == "allow":  # which was said of other tools
        chosen = replace(chosen, row_values=own.row_values)
    limits = merged(own.limits, old.limits)
    return replace(chosen, settings={**old.settings, **own.settings}, limits=limits)


def merged(own: Limits, old: Limits) -> Limits:
    values = {one.name: getattr(own, one.name) for one in fields(Limits) if getattr(own, one.name) is not None}
    return replace(old, **values)


def is_relative(place: str) -> bool:
    """
    >>> is_relative("sites=sqlite:///sites.db"), is_relative("/home/sites.db"), is_relative("bolt://host")
    (True, False, False)
    """
    name, equals, rest = place.partition("=")
    path = rest if equals and name.isidentifier() else place
    head = next((scheme for scheme in FILES if path.startswith(scheme)), "")
    return ("://" not in path or bool(head)) and not path.removeprefix(head).startswith(("/", "~"))


def each(texts: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(texts or ())


def with_defaults(inputs: Inputs, config: Config) -> Inputs:
    """With what holds here for what is not named."""
    db = inputs.db
    if not any((inputs.db, inputs.graph, inputs.docs, inputs.tools)):
        db = default_places(config)
    technique = inputs.technique or config.text("technique")
    return replace(inputs, db=db, technique=technique, limits=config.limits(inputs.limits))


def sources_named(inputs: Inputs, config: Config, reveal: bool = False) -> Sources:
    """The data that were named, as who named them may see them.

    Raises:
        SetupError: something that was named cannot be data, or a table or column is of none.
    """
    from decisor.session.readers import conditions, for_reader
    from decisor.session.scan_limits import with_max_scan
    from decisor.session.sources import sources_of
    from decisor.session.tools import ToolSpecs

    policy = cast("RowValuePolicy", inputs.row_values or "ask")
    specs = ToolSpecs(inputs.tools, inputs.methods, inputs.base_url, inputs.auth, policy)
    sources = sources_of(
        config.places(inputs.db), config.places(inputs.graph), config.places(inputs.docs), specs,
        inputs.model or None, inputs.tables, inputs.deny_tables, inputs.definitions,
    )  # fmt: skip
    seen = for_reader(sources, conditions(inputs.rows), inputs.mask, reveal, inputs.audit or None)
    return with_max_scan(seen, inputs.max_scan)


def options_named(inputs: Inputs, config: Config) -> Options:
    """How the question is asked, as far as that was named."""
    return {"technique": inputs.technique, "settings": inputs.settings, "lm": config.lm(inputs.lm or None),
            "limits": inputs.limits}  # fmt: skip
