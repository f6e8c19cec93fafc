"""Documents: cut into passages, indexed on disk, found by words, by meaning, or by both."""

from decisor.tools.documents.index import Index, index_of, open_index
from decisor.tools.documents.index_build import build_index
from decisor.tools.documents.passage import Passage, read_passages
from decisor.tools.documents.update import Changes

__all__ = ["Changes", "Index", "Passage", "build_index", "index_of", "open_index", "read_passages"]
