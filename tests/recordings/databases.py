"""Starts database servers in folders of their own, and asks them: PostgreSQL and MariaDB, from Debian's packages."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGES = {"postgres": ["postgresql", "postgresql-contrib"], "mariadb": ["mariadb-server", "mariadb-client"]}
_POSTGRES = (
    "wal_level=logical", "max_replication_slots=10", "max_wal_senders=10", "fsync=off", "timezone=UTC",
    "unix_socket_directories=", "listen_addresses=127.0.0.1",
)  # fmt: skip
_MARIADB = (
    "--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-image=FULL", "--server-id=1", "--default-time-zone=+00:00",
    "--bind-address=127.0.0.1", "--character-set-server=utf8mb4", "--sql-mode=", "--skip-networking=0",
    "--skip-name-resolve",
    "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M",
)  # fmt: skip


@dataclass(frozen=True)
class Database:
    """A server that runs. `ask`: runs SQL and returns what it prints."""

    port: int
    version: str
    ask: Callable[[str], str]
    stop: Callable[[], None]


def install(kind: str) -> None:
    """Install the packages of a database where its server is missing. Raises `SystemExit` with the reason."""
    if _server(kind) is not None:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SystemExit(f"skipped {kind}: install {' '.join(PACKAGES[kind])}, or run this as root on Debian")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES[kind]]):
        subprocess.run(["apt-get", "-q", *command], check=True, env=environment, stdout=subprocess.DEVNULL)


def start(kind: str, folder: Path) -> Database:
    """Start an empty server below a folder."""
    return {"postgres": _start_postgres, "mariadb": _start_mariadb}[kind](folder)


def _server(kind: str) -> Path | None:
    if kind == "mariadb":
        found = shutil.which("mariadbd")
        return Path(found) if found else None
    return max(
        Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), default=None, key=lambda path: int(path.parts[4])
    )


def _start_postgres(folder: Path) -> Database:
    control = _server("postgres")
    assert control is not None
    port, data = free_port(), folder / "postgres"
    as_user = _user_of(data, "postgres")
    _run(
        [
            *as_user,
            control.parent / "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "-A",
            "trust",
        ]
    )
    options = " ".join(f"-c {option}" for option in (*_POSTGRES, f"port={port}"))
    _run([*as_user, control, "-D", data, "-w", "-o", options, "-l", data / "log", "start"])
    client = [
        control.parent / "psql",
        "-XqAt",
        "-v",
        "ON_ERROR_STOP=1",
        "-h",
        "127.0.0.1",
        "-p",
        port,
        "-U",
        "postgres",
    ]

    def stop() -> None:
        _run([*as_user, control, "-D", data, "-m", "immediate", "stop"])

    ask = _asking(client)
    return Database(port, ask("select version()"), ask, stop)


def _start_mariadb(folder: Path) -> Database:
    server = _server("mariadb")
    assert server is not None
    port, data = free_port(), folder / "mariadb"
    as_user = _user_of(data, "mysql")
    _run(
        [
            *as_user,
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
        ]
    )
    settings = [
        server,
        "--no-defaults",
        f"--datadir={data}",
        f"--port={port}",
        f"--socket={data / 'sock'}",
        *_MARIADB,
    ]
    process = subprocess.Popen(
        [*map(str, as_user), *map(str, settings)], stderr=(folder / "mariadb.log").open("w")
    )
    client = [
        "mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "--batch", "--raw", "--skip-column-names",
        "--default-character-set=utf8mb4",
    ]  # fmt: skip
    ask = _asking(client)
    for _ in range(100):
        try:
            version = ask("create database shop character set utf8mb4; select version()")
            break
        except subprocess.CalledProcessError:
            time.sleep(0.3)
    else:
        raise SystemExit(f"MariaDB did not start: {folder / 'mariadb.log'}")

    def stop() -> None:
        process.terminate()
        process.wait(60)

    return Database(port, f"MariaDB {version}", _asking([*client, "shop"]), stop)


def _asking(client: Sequence[object]) -> Callable[[str], str]:
    def ask(sql: str) -> str:
        command = list(map(str, client))
        done = subprocess.run(command, input=sql, capture_output=True, text=True, check=False)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout.strip("\n")

    return ask


def _user_of(data: Path, user: str) -> list[str]:
    """Make a folder for data; neither server runs as root."""
    data.mkdir(parents=True)
    if os.geteuid() != 0:
        return []
    shutil.chown(data, user, user)
    return ["runuser", "-u", user, "--"]


def _run(command: Sequence[object]) -> None:
    # a server that goes on would keep a pipe open
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
