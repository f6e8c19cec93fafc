"""The two example worlds of ``decisor ask --example``: made on the fly from the generator, with fixed seeds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.system.storage import cache_folder
from decisor.types import Question

if TYPE_CHECKING:
    from decisor.lab.dqa.worlds import Scenario, WorldData

FORMAT = 2  # raised when the worlds or their files change, so that old files are not used


@dataclass(frozen=True)
class WorldExample:
    """A question with its world, as an SQLite file and as a file of the embedded graph (kglite).

    ``graph``: its place; ``graph_url`` writes it, since nothing else needs kglite.
    """

    name: str
    scenario: Scenario
    subject: str
    question: Question
    database: Path
    graph: Path
    world: WorldData = field(repr=False)

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.database}"

    @property
    def graph_url(self) -> str:
        """URL of the graph file, which is written if it is missing. Raises SetupError if the file cannot be written."""
        from decisor.graphs.load import load_nodes_and_edges
        from decisor.lab.dqa.worlds import build_world_graph

        write_file_once(
            self.graph, lambda path: load_nodes_and_edges(f"kglite:///{path}", *build_world_graph(self.world))
        )
        return f"kglite:///{self.graph}"


SEEDS: dict[str, tuple[Scenario, str, int]] = {
    "supply": ("building", "60x170", 11),
    "trade": ("locating", "60x320", 11),
}
"""Scenario, size and seed of each example; its first question is asked."""


def make_example(name: str, folder: Path | None = None) -> WorldExample:
    """Return the example ``supply`` or ``trade``; its files are written once. folder: the parent of the files, by
    default the user's cache.

    Raises:
        SetupError: there is no such example, or its files cannot be written.
    """
    from decisor.lab.dqa import generator as generate
    from decisor.lab.dqa.databases import to_sqlite
    from decisor.lab.dqa.generated_worlds import Trade

    if name not in SEEDS:
        raise SetupError(f"There is no example {name!r}; there is {', '.join(SEEDS)}.")
    scenario, size, seed = SEEDS[name]
    if folder is None:
        folder = cache_folder()
        # The cache may not exist yet: what counts is whether it can be made.
        if not os.access(folder.parent if folder.parent.exists() else folder.parent.parent, os.W_OK):
            folder = Path(tempfile.gettempdir()) / f"decisor-{os.environ.get('USER', 'examples')}"
    world = generate.make_world(scenario, generate.parse_size(size), seed)
    question = next(generate.find_world_questions(world, seed))
    database, graph = folder / f"{name}-{FORMAT}.db", folder / f"{name}-{FORMAT}.kgl"
    write_file_once(database, lambda path: to_sqlite(world.rows(), f"sqlite:///{path}"))
    names = world.countries if isinstance(world, Trade) else world.goods
    asked = generate.write_world_question(world, question)
    return WorldExample(name, scenario, names[question.subject], asked, database, graph, world.rows())


def write_file_once(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file unless it exists.

    It is written beside its place and then moved, so it exists completely or not at all.

    Raises:
        SetupError: it cannot be written.
    """
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # In the same folder, as a rename works within one file system only.
        with tempfile.TemporaryDirectory(dir=path.parent) as beside:
            fresh = Path(beside) / path.name
            write(fresh)
            # A rename is atomic: another process that makes the same example sees the old state or the whole file.
            fresh.replace(path)
    except OSError as error:
        raise SetupError(f"The example cannot be written to {path.parent}: {error}.") from error
