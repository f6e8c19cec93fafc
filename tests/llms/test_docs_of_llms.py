"""Every setting of an LLM and each variable of the environment is in the docs."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

from decisor.llms import choose, providers
from decisor.llms import providers as local
from decisor.llms.anthropic import Anthropic
from decisor.llms.endpoint import Endpoint
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.retry import Retries

PAGE = (Path(__file__).parents[2] / "docs" / "llms.md").read_text()


def test_every_setting_is_in_the_docs() -> None:
    for kind in (OpenAICompatible, Anthropic):
        assert f"## {kind.__name__}\n" in PAGE
        settings = set(inspect.signature(kind).parameters) - {"model", "base_url", "key"}
        assert [name for name in settings if f"`{name}`" not in PAGE] == []
    assert [field.name for field in fields(Endpoint) if f"`{field.name}`" not in PAGE] == []
    assert [field.name for field in fields(Retries) if field.init and f"`{field.name}`" not in PAGE] == []


def test_every_variable_of_the_environment_is_in_the_docs() -> None:
    source = inspect.getsource(choose) + inspect.getsource(local) + inspect.getsource(providers)
    names = set(re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', source))
    names |= {f"{one.variables}_{part}" for one in providers.PROVIDERS for part in ("API_KEY", "BASE_URL", "MODEL")}
    assert len(names) >= 10
    assert [name for name in names if name not in PAGE] == []
