"""Loads libraries with threads of their own first: after many other compiled ones there is no room left for them."""

import contextlib

with contextlib.suppress(ImportError):
    import onnxruntime  # noqa: F401
with contextlib.suppress(ImportError):
    import usearch.index  # noqa: F401
with contextlib.suppress(ImportError):
    import sklearn.ensemble  # noqa: F401
