"""Imports that a fork cuts off: the child finishes them, or it would wait for them for ever.

A thread holds the lock of a module while it imports it. A child has the lock and not the thread, so its own import of
that module never ends (CPython resets only the lock of the whole import system). The first question imports most of us.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident  # threading and typing would take longer to import than all of this

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def register_finishing() -> None:
    """Finish the imports of other threads in every child of a fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=finish_cut_imports)


def finish_cut_imports() -> None:
    names = drop_locks_of_lost_threads()
    # Run again and not dropped: what a package imported already refers to it, and a second pydantic_core is refused.
    for name in [name for name in reversed(sys.modules) if name in names]:  # what was begun last imports no other
        finish_import(sys.modules[name])


def drop_locks_of_lost_threads() -> set[str]:
    """Forget the locks of modules, but for ours. Return the names of the modules that other threads were importing."""
    locks = vars(sys.modules["_frozen_importlib"]).get("_module_locks", {})  # so named from Python 3.3 to 3.14
    lost = {name: lock for name, reference in locks.items() if (lock := reference()) and lock.owner != get_ident()}
    # Dropped, so that the child makes locks of its own.
    for name in lost:
        del locks[name]
    return {name for name, lock in lost.items() if lock.owner is not None}


def finish_import(module: ModuleType) -> None:
    spec = module.__spec__
    if spec is None or spec.loader is None or not getattr(spec, "_initializing", False):
        return
    try:
        spec.loader.exec_module(module)
    except Exception:
        sys.modules.pop(spec.name, None)  # as Python does; whoever imports it is told why
        return
    spec._initializing = False  # type: ignore[attr-defined]
    parent, _, child = spec.name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)
