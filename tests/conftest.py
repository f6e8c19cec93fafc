"""What every test starts from: no key, no proxy, no settings of the person, and no way out of this machine."""

from __future__ import annotations

import asyncio
import atexit
import ipaddress
import os
import shutil
import signal
import sys
import tempfile
from asyncio.selector_events import BaseSelectorEventLoop
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from local_llm import decisor, local_llm, sites  # noqa: F401

collect_ignore_glob = ["*/conftest.py"]
"""Doctests of several files of this name, loaded before, would be taken for those of the last."""
PERSON = "HOME_OF_PERSON"
"""The variable for what is fetched once and stays: HOME is a folder of the tests' own, also for what they start."""
KEPT = ("DECISOR_DATA", "DECISOR_REQUIRE_SERVERS", "DECISOR_SKIP_PASSED")
PASSED, ALREADY = (os.environ.get(name, "") for name in ("DECISOR_PASSED", "DECISOR_SKIP_PASSED"))
"""Files of the names of tests: where those that pass are written, and those that are left out (.ci/run)."""
KEYS = ("OPENAI_", "ANTHROPIC_", "AZURE_", "AWS_", "GOOGLE_", "OLLAMA_", "DECISOR_")
FOLDERS = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def pytest_configure(config: pytest.Config) -> None:
    # The workers of xdist would end without a word.
    if missing := [name for name in config.args if not Path(name.partition("::")[0]).exists()]:
        raise pytest.UsageError(f"There is no {', '.join(missing)} in {Path.cwd()}.")
    # Whatever runs in the background of a shell ignores interrupts, and so would all that is started here.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in list(os.environ):
        if (name.startswith(KEYS) and name not in KEPT) or name.lower() in PROXIES:
            del os.environ[name]
    own = tempfile.mkdtemp(prefix="decisor-tests-")  # for what is made before or beside single tests
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    os.environ.setdefault(PERSON, str(Path.home()))
    os.environ.update({name: f"{own}/{name.split('_')[1].lower()}" for name in FOLDERS}, HOME=own)
    sys.addaudithook(stay_here)
    BaseSelectorEventLoop.close = close_accepted  # type: ignore[assignment, method-assign]
    settings.register_profile("any_speed", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any_speed")


CLOSE = BaseSelectorEventLoop.close


def close_accepted(loop: BaseSelectorEventLoop) -> None:
    """Abort the connections that servers of a test accepted and still hold, then close the loop.

    A server cannot know when its peer is gone: a reply that nobody reads keeps its socket open. Left to the garbage
    collector, that socket is a ResourceWarning, and the failure of whatever test happens to run by then.
    """
    transports = getattr(loop, "_transports", {})
    accepted = [transport for transport in transports.values() if getattr(transport, "_server", None)]
    if accepted and not loop.is_closed():
        for transport in accepted:
            transport.abort()
        loop.run_until_complete(asyncio.sleep(0))
    CLOSE(loop)


def stay_here(event: str, arguments: tuple[object, ...]) -> None:
    """Refuses a connection or a datagram to another machine, from any library in this process."""
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else "localhost"  # else a path: a Unix socket
        if not is_loopback(str(host)):
            raise PermissionError(f"A test tried to reach {host}: tests stay on this machine.")


def is_loopback(host: str) -> bool:
    """Names were looked up before a connection is made, so all but localhost are addresses here."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("localhost", "")


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Caches and settings of a test are its own, and its output looks the same on every terminal."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    if facts := sys.modules.get("decisor.llms.facts"):
        facts.KNOWN.clear()  # a server of this test may have the port of one before


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what passed, for a later run that need not repeat it. The first process hears of every worker's."""
    if PASSED and "PYTEST_XDIST_WORKER" not in os.environ and report.when == "call" and report.passed:
        with Path(PASSED).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid!r}\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what passed in an earlier run of the same code."""
    if ALREADY and Path(ALREADY).exists():
        passed = set(Path(ALREADY).read_text("utf-8").splitlines())
        left_out = [item for item in items if repr(item.nodeid) in passed]
        items[:] = [item for item in items if repr(item.nodeid) not in passed]
        config.hook.pytest_deselected(items=left_out)
