"""Documents: cut into passages, indexed on disk, found by words, by meaning, or by both."""

from decisor.documents.index import DocumentIndex, IndexChanges, build_index, build_memory_index, open_index
from decisor.documents.passage import Passage, read_passages

__all__ = [
    "DocumentIndex",
    "IndexChanges",
    "Passage",
    "build_index",
    "build_memory_index",
    "open_index",
    "read_passages",
]
