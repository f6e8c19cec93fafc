"""A run that is watched where it was asked for: in a notebook, by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from decisor.session.options import Options


def in_notebook() -> bool:
    """Whether a kernel runs this. A shell of IPython in a terminal has none; without IPython there is none."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


@contextmanager
def watched(options: Options) -> Iterator[Options]:
    """The options, in a notebook with a view of the run that hears its events. Who hears them already gets none."""
    if "on_event" in options or not in_notebook():
        yield options
        return
    from decisor.story.notebook import NotebookView

    with NotebookView() as view:
        yield {**options, "on_event": view.hear}
