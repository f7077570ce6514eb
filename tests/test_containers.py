"""Dockerfile, compose.yaml and the values for Kubernetes name programs, options, modules and versions that are there.

None of them is run: that takes a Docker daemon, or a cluster.
"""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from lakejoin.orchestration.cli import app

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGE = (ROOT / "docs" / "containers.md").read_text("utf-8")
VALUES = yaml.safe_load(re.search(r"```yaml\n# values.yaml.*?\n(.*?)```", PAGE, re.DOTALL)[1])
DEPLOYMENT = VALUES["dagster-user-deployments"]["deployments"][0]
TAG = f"{PROJECT['version']}-dagster"
COMMANDS = [
    *(service["command"] for service in SERVICES.values()),
    SERVICES["code"]["healthcheck"]["test"][1:],
    ["dagster", "api", "grpc", "-h", "0.0.0.0", "-p", "4000", *DEPLOYMENT["dagsterApiGrpcArgs"]],
]


def _tool(*arguments: str | Path) -> str:
    """Run a program of the environment and return what it printed."""
    program = Path(sys.executable).with_name(str(arguments[0]))
    if not program.exists():
        pytest.skip(f"no {program.name} here; it comes with the extra `dev`")
    done = subprocess.run([program, *arguments[1:]], check=False, capture_output=True, text=True, cwd=ROOT)
    return done.stdout + done.stderr


def _instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)", DOCKERFILE, re.MULTILINE)


def test_linter_finds_nothing_in_the_dockerfile() -> None:
    """Not even a hint."""
    assert _tool("hadolint", "--no-color", "Dockerfile") == ""


def test_compose_file_fits_its_schema() -> None:
    """That of the specification of Compose."""
    assert "ok" in _tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_program_takes_its_options(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With `--help` behind them nothing is started, and an option that is not there is refused all the same."""
    assert _exit_code([*command, "--help"], monkeypatch) == 0
    assert _exit_code([*command, "--no-such-option", "--help"], monkeypatch) == 2


def _exit_code(command: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    [program] = entry_points(group="console_scripts", name=command[0])
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        program.load()()
    return ended.value.code


def test_lakejoin_has_the_commands_that_an_image_calls() -> None:
    """`warm`, and what the entry point stands for."""
    assert _instructions("ENTRYPOINT") == ['["lakejoin"]']
    assert "lakejoin" in PROJECT["scripts"]
    assert re.findall(r"^RUN lakejoin (\w+)", DOCKERFILE, re.MULTILINE) == ["warm"]
    for arguments in [["warm", "--help"], ["--help"]]:
        assert CliRunner().invoke(app, arguments).exit_code == 0


def test_modules_are_there() -> None:
    """Those that Dagster loads, and those of the line of Python in the Dockerfile."""
    options = [*SERVICES["code"]["command"], *DEPLOYMENT["dagsterApiGrpcArgs"]]
    modules = [options[at + 1] for at, option in enumerate(options) if option == "--module-name"]
    assert modules == ["lakejoin.orchestration.definitions"] * 2
    assert all(find_spec(module) for module in modules)
    [imported] = re.findall(r"-c \"(.*?); prepare_home\(", DOCKERFILE)
    exec(imported, {})


def test_versions_agree_with_the_project() -> None:
    """Python is one that is supported, the image bears the project's version, and extras are declared."""
    pythons = set(re.findall(r"^FROM python:3\.(\d+)-slim", DOCKERFILE, re.MULTILINE))
    least = PROJECT["requires-python"].removeprefix(">=3.")
    assert pythons == {least}
    assert {service["image"] for service in SERVICES.values()} == {f"lakejoin:{TAG}"}
    assert DEPLOYMENT["image"]["tag"] == TAG
    [extras] = re.findall(r"install --no-cache-dir \"\.\[(.*?)\]\"", DOCKERFILE)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


def test_packages_of_the_chart_fit_dagster() -> None:
    """Dagster's libraries are 0.16 behind its version: 1.13.27 goes with 0.29.27."""
    [dagster] = [name.split("==1.")[1] for name in PROJECT["dependencies"] if name.startswith("dagster==1.")]
    minor, patch = dagster.split(".")
    kubernetes = PROJECT["optional-dependencies"]["kubernetes"]
    assert {name.split("==")[1] for name in kubernetes} == {f"0.{int(minor) + 16}.{patch}"}


def test_nobody_else_reaches_the_services() -> None:
    """Root runs nothing, and the one port that is published is this machine's."""
    assert _instructions("USER") == ["1000"]
    assert DOCKERFILE.index("\nUSER 1000") < DOCKERFILE.index("\nRUN lakejoin warm")
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:3000:3000"]
    assert VALUES["telemetry"] == {"enabled": False}


def test_services_share_volume_and_port() -> None:
    """Each has the lake, where Dagster's records are too, and asks the port at which the pipeline is served."""
    [home] = re.findall(r"DAGSTER_HOME=(\S+)", DOCKERFILE)
    assert _instructions("VOLUME") == [str(Path(home).parent)] == ["/lake"]
    assert all("lake:/lake" in service["volumes"] for service in SERVICES.values())
    ports = re.findall(r'--(?:grpc-)?port", "(\d+)"', json.dumps(COMPOSE["services"]))
    assert sorted(ports) == ["3000", "4000", "4000", "4000", "4000"]
    [config] = re.findall(r"LAKEJOIN_CONFIG=(\S+)", DOCKERFILE)
    assert f"./pipeline:{Path(config).parent}:ro" in SERVICES["code"]["volumes"]


def test_context_has_what_the_package_is_built_from() -> None:
    """And each name in it is there."""
    kept = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert all((ROOT / name).exists() for name in kept)
    rooms = {link.resolve().name for link in (ROOT / "lakejoin").iterdir() if link.is_symlink()}
    needed = {"lakejoin", "pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]} | rooms
    assert needed == {*kept}
