"""What a release ships beside the package: plugins for coding agents, and files that start it elsewhere."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from decisor.version import __version__

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "plugins" / "decisor"


def test_every_version_is_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    plugins = [json.loads((PLUGIN / f".{agent}-plugin" / "plugin.json").read_text()) for agent in ("claude", "codex")]
    assert {__version__, project, *(plugin["version"] for plugin in plugins)} == {project}


@pytest.mark.parametrize("place", [".claude-plugin", ".agents/plugins"])
def test_a_marketplace_leads_to_the_plugin(place: str) -> None:
    listed = json.loads((ROOT / place / "marketplace.json").read_text())["plugins"]
    sources = [entry["source"] for entry in listed]
    folders = [source if isinstance(source, str) else source["path"] for source in sources]
    assert [(ROOT / folder).resolve() for folder in folders] == [PLUGIN]
    assert (PLUGIN / json.loads((PLUGIN / ".codex-plugin/plugin.json").read_text())["mcpServers"]).is_file()


def test_the_plugin_has_the_skill_of_the_command() -> None:
    text = (ROOT / "src/decisor/mcp/skill.md").read_text()
    assert (PLUGIN / "skills/decisor/SKILL.md").read_text() == text
    _, front, body = text.split("---\n", 2)
    name, description = (line.split(": ", 1)[1] for line in front.splitlines())
    assert name == "decisor"
    assert len(description) <= 1024
    tools = (ROOT / "src/decisor/mcp/server.py").read_text()
    named = re.findall(r"\*\*([a-z_]+)\*\*", body)
    assert named and all(f"async def {tool}(" in tools for tool in named)
