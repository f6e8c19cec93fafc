"""Which config files of folders a person has looked at: a folder may be someone else's."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from decisor.errors import SetupError
from decisor.private_file import changing, data_folder, make_folder, write_private


def trusted_file() -> Path:
    return data_folder() / "trusted.json"


def trusted_files() -> dict[str, str]:
    """Path -> digest of what it held."""
    try:
        values = json.loads(trusted_file().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in values.items()} if isinstance(values, dict) else {}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_trusted(path: Path, content: bytes) -> bool:
    """As it is: one that was changed is not."""
    return trusted_files().get(str(path.resolve())) == digest(content)


def trust(path: Path, content: bytes | None) -> None:
    """None takes it back. Raises SetupError where it cannot be kept."""
    try:
        make_folder(data_folder())
        with changing(trusted_file()):
            files = {name: value for name, value in trusted_files().items() if name != str(path.resolve())}
            if content is not None:
                files[str(path.resolve())] = digest(content)
            write_private(trusted_file(), json.dumps(files, indent=1))
    except OSError as error:
        raise SetupError(f"Cannot write {trusted_file()}: {error.strerror}.") from error
