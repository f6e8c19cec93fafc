"""Gradient-boosted regression trees as plain arrays: grown by scikit-learn, stored and used without it.

score(x) = base + sum over trees of value(leaf that x falls into)
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decisor.child_process import run
from decisor.errors import SetupError
from decisor.extras import lacks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Trees:
    """All nodes of all trees in one row of arrays, shape (nodes,); ``roots`` of shape (trees,) says where each begins.

    A node with ``left`` = its own number is a leaf. x goes left where x[feature] <= threshold.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    roots: NDArray[np.int32]
    base: float
    depth: int

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Shape (n, features) to (n,)."""
        import numpy as np

        at = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        row = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            at = np.where(rows[row, self.feature[at]] <= self.threshold[at], self.left[at], self.right[at])
        total: NDArray[np.float64] = self.base + self.value[at].sum(axis=1, dtype=np.float64)
        return total

    def splits(self) -> NDArray[np.int64]:
        """How many splits are by each feature, shape (features,) up to the last that has any."""
        import numpy as np

        return np.bincount(self.feature[self.left != np.arange(len(self.left))])

    def arrays(self) -> dict[str, NDArray[Any]]:
        import numpy as np

        return {
            "feature": self.feature, "threshold": self.threshold, "left": self.left, "right": self.right,
            "value": self.value, "roots": self.roots, "base": np.array(self.base), "depth": np.array(self.depth),
        }  # fmt: skip

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], features: int) -> Trees:
        """Checked: what a damaged or foreign file could hold never leads outside the arrays.

        Raises:
            SetupError: the arrays are no trees over ``features`` features.
        """
        try:
            base, depth = float(arrays["base"]), int(arrays["depth"])
            parts = [arrays[name] for name in ("feature", "threshold", "left", "right", "value", "roots")]
        except (KeyError, TypeError, ValueError) as error:
            raise SetupError(f"These are no trees: {error}.") from error
        nodes = len(parts[0])
        feature, _, left, right, _, roots = parts
        inside = [(feature, features), (left, nodes), (right, nodes), (roots, nodes)]
        if any(
            a.ndim != 1 or a.dtype.kind not in "iu" or (a.size and (a.min() < 0 or a.max() >= n)) for a, n in inside
        ):
            raise SetupError(
                "These trees point outside themselves: the file is damaged or was made for other features."
            )
        if len({len(part) for part in parts[:-1]}) != 1 or not 0 <= depth <= 64:
            raise SetupError("These trees are damaged: their arrays differ in length.")
        return cls(feature, parts[1], left, right, parts[4], roots, base, depth)


def grow(rows: NDArray[np.float32], labels: NDArray[np.float64], trees: int = 300, seed: int = 0) -> Trees:
    """Fit to squared error. ``rows`` of shape (n, features), ``labels`` of shape (n,).

    Where scikit-learn cannot be loaded beside the libraries that are loaded already (glibc keeps little room for their
    thread-local data), a process of its own fits.

    Raises:
        SetupError: scikit-learn is not installed.
    """
    try:
        return fit_trees(rows, labels, trees, seed)
    except ModuleNotFoundError as error:
        raise lacks("Training needs scikit-learn", "learned") from error
    except ImportError:
        return grow_apart(rows, labels, trees, seed)


def grow_apart(rows: NDArray[np.float32], labels: NDArray[np.float64], trees: int, seed: int) -> Trees:
    """The same in a process of its own: arrays in, arrays out. Raises SetupError where it fails."""
    import numpy as np

    arrays = io.BytesIO()
    np.savez(arrays, rows=rows, labels=labels, trees=np.array(trees), seed=np.array(seed))
    process = run(__name__, arrays.getvalue(), ("OMP_NUM_THREADS",))
    if process.returncode:
        raise SetupError(f"Training failed in its process: {process.stderr.decode(errors='replace').strip()[-300:]}")
    with np.load(io.BytesIO(process.stdout), allow_pickle=False) as archive:
        return Trees.of({name: archive[name] for name in archive.files}, rows.shape[1])


def main() -> None:
    """The process of ``grow_apart``."""
    import numpy as np

    with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as archive:
        grown = fit_trees(archive["rows"], archive["labels"], int(archive["trees"]), int(archive["seed"]))
    np.savez(sys.stdout.buffer, allow_pickle=False, **grown.arrays())


def fit_trees(rows: NDArray[np.float32], labels: NDArray[np.float64], trees: int, seed: int) -> Trees:
    """With one thread: on a busy machine several wait for each other longer than they work, and data of this size gain
    nothing. Raises ImportError where scikit-learn cannot be loaded."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        max_iter=trees, learning_rate=0.06, max_leaf_nodes=31, min_samples_leaf=40, l2_regularization=1.0,
        early_stopping=False, random_state=seed,
    )  # fmt: skip
    with threadpool_limits(1, user_api="openmp"):
        model.fit(rows, labels)
    grown = [predictors[0].nodes for predictors in model._predictors]
    starts = np.cumsum([0, *(len(nodes) for nodes in grown)])[:-1]
    nodes = np.concatenate(grown)
    shift = np.repeat(starts, [len(tree) for tree in grown])
    own = np.arange(len(nodes))
    leaf = nodes["is_leaf"].astype(bool)
    # A row is float32 here, so the threshold is rounded down to it: x <= threshold decides the same.
    threshold = np.where(leaf, np.inf, below(nodes["num_threshold"]))
    return Trees(
        np.where(leaf, 0, nodes["feature_idx"]).astype(np.int32), threshold.astype(np.float32),
        np.where(leaf, own, nodes["left"] + shift).astype(np.int32),
        np.where(leaf, own, nodes["right"] + shift).astype(np.int32),
        np.where(leaf, nodes["value"], 0.0).astype(np.float32), starts.astype(np.int32),
        float(np.ravel(model._baseline_prediction)[0]), int(nodes["depth"].max()),
    )  # fmt: skip


def below(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 not above each value."""
    import numpy as np

    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
    lower: NDArray[np.float32] = np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)
    return lower
