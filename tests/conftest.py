"""Loads scikit-learn first: after many other compiled libraries there is no room left for its threads."""

import contextlib

with contextlib.suppress(ImportError):
    import sklearn.ensemble  # noqa: F401
