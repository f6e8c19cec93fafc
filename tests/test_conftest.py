"""The tests' own walls hold."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from decisor.history.place import FolderPlace
from decisor.session.config import user_config_file
from decisor.system.storage import cache_folder, data_folder


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80, 0, 0)])
def test_a_test_cannot_reach_another_machine(address: tuple[str, int]) -> None:
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    with socket.socket(family) as here, pytest.raises(PermissionError, match="stay on this machine"):
        here.connect(address)


def test_a_test_reaches_this_machine() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        socket.create_connection(server.getsockname(), timeout=5).close()


def test_no_key_of_the_person_is_there() -> None:
    assert not [name for name in os.environ if name.endswith("_API_KEY")]


@pytest.fixture(scope="module")
def history_before_any_test() -> Path:
    """As a server of several tests opens it."""
    return FolderPlace().folder


def test_what_is_made_before_a_test_is_not_in_the_folders_of_the_person(history_before_any_test: Path) -> None:
    assert not history_before_any_test.is_relative_to(os.environ["HOME_OF_PERSON"])
    assert not data_folder().is_relative_to(os.environ["HOME_OF_PERSON"])


@pytest.mark.parametrize("place", [data_folder, cache_folder, user_config_file])
def test_what_is_started_without_our_variables_does_not_write_to_the_person_either(
    place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server of MCP is, which gets HOME and PATH alone."""
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name)
    assert not place().is_relative_to(os.environ["HOME_OF_PERSON"])
