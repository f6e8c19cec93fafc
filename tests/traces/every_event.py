"""Events of every class, made from the types of their fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from decisor.trace.events import Event

CLASSES: tuple[type[Event], ...] = get_args(Event)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)


def strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type. What JSON has no word for (a tuple in a cell) is left out."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    origin, inside = get_origin(hint), get_args(hint)
    if hint is object:
        return st.none() | st.booleans() | st.integers(-9, 9) | TEXT | st.lists(TEXT, max_size=2)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return st.builds(hint, **{one.name: strategy(hints[one.name]) for one in dataclasses.fields(hint)})
    if origin in (Union, UnionType):
        return st.one_of([st.none() if one is NoneType else strategy(one) for one in inside])
    if origin is Literal:
        return st.sampled_from(inside)
    if origin is tuple and inside[-1] is not Ellipsis:
        return st.tuples(*map(strategy, inside))
    if origin in (tuple, Sequence):
        return st.lists(strategy(inside[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(TEXT, strategy(inside[1]), max_size=3)
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        int: st.integers(),
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
    }
    return plain[hint]


def filled(hint: Any, text: str, choose: Callable[[tuple[str, ...]], str] = lambda words: words[0]) -> Any:
    """A value of a type with ``text`` in every text of it; ``choose`` takes one of several fixed words."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    origin, inside = get_origin(hint), get_args(hint)
    if hint is object or hint is str:
        return text
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return hint(**{one.name: filled(hints[one.name], text, choose) for one in dataclasses.fields(hint)})
    if origin in (Union, UnionType):
        return filled(next(one for one in inside if one is not NoneType), text, choose)
    if origin is Literal:
        return choose(inside)
    if origin is tuple and inside[-1] is not Ellipsis:
        return tuple(filled(one, text, choose) for one in inside)
    if origin in (tuple, Sequence):
        return tuple(filled(inside[0], text, choose) for _ in range(2))
    if origin is Mapping:
        return {text: filled(inside[1], text, choose)}
    return {int: 1, float: 1.5, bool: False}[hint]
