"""Databases that run exported statements: SQLite, DuckDB, and a private PostgreSQL server."""

import atexit
import functools
import io
import json
import os
import pwd
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from export_models import quoted, run_sql

from tiers import TIER


def _create(table, columns, types):
    declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(columns, types, strict=True))
    return f"CREATE TABLE {quoted(table)} ({declared})"


def run_duckdb(statement, table, columns, values, types=None):
    """Return the columns of the result by name, as `run_sql` does."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect(":memory:") as connection:
        connection.execute(_create(table, columns, types or ["DOUBLE"] * len(columns)))
        if values:
            given = pa.table([pa.array(column) for column in zip(*values, strict=True)], names=columns)
            connection.register("given", given)  # rows inserted one by one take a thousand times longer
            connection.execute(f"INSERT INTO {quoted(table)} SELECT * FROM given")
        cursor = connection.execute(statement)
        found = cursor.fetchall()
        return {each[0]: [row[k] for row in found] for k, each in enumerate(cursor.description)}


class Postgres:
    """A PostgreSQL server of its own, in a folder that is removed when it stops."""

    def __init__(self, programs):
        self.programs, self.folder = programs, Path(tempfile.mkdtemp())
        self.user = {}
        if os.geteuid() == 0:  # initdb refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        data = self.folder / "data"
        self._run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-c listen_addresses='' -c fsync=off -k {self.folder}"
        self._run("pg_ctl", "-D", data, "-l", self.folder / "log", "-o", options, "-w", "start")

    def _run(self, program, *arguments):
        # A server keeps the standard output of pg_ctl open, so that a pipe would never end.
        with open(self.folder / "output", "w+", encoding="utf-8") as output:
            command = [self.programs / program, *map(str, arguments)]
            found = subprocess.run(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **self.user
            )
            output.seek(0)
            assert found.returncode == 0, output.read()

    def stop(self):
        """Stop the server and remove its folder."""
        self._run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder)

    def psql(self, script):
        """Return what psql prints; an error of the server is a RuntimeError."""
        command = [
            self.programs / "psql",
            "-h",
            self.folder,
            *["-U", "postgres", "-d", "postgres", "-X", "-q", "-A", "-t"],
        ]
        command += ["-v", "ON_ERROR_STOP=1"]
        found = subprocess.run(command, input=script, capture_output=True, text=True, encoding="utf-8")
        if found.returncode:
            raise RuntimeError(found.stderr)
        return found.stdout

    def run(self, statement, table, columns, values, types=None):
        """Return the columns of the result by name."""
        create = _create(table, columns, types or ["DOUBLE PRECISION"] * len(columns))
        rows = io.StringIO()
        for row in values:
            rows.write(",".join(map(_cell, row)) + "\n")
        script = f"BEGIN;\n{create};\nCOPY {quoted(table)} FROM STDIN (FORMAT csv);\n{rows.getvalue()}\\.\n"
        out = self.psql(f"{script}SELECT row_to_json(found) FROM (\n{statement}\n) AS found;\nROLLBACK;\n")
        found = [json.loads(line) for line in out.split("\n") if line]
        return {name: [row[name] for row in found] for name in (found[0] if found else ())}


def _cell(value):
    """Return a cell of CSV: NULL is empty, and a text is quoted."""
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else repr(value)


def _programs():
    """Return the folder of PostgreSQL's programs, or None where it is not installed."""
    initdb = shutil.which("initdb")
    found = [Path(initdb).resolve()] if initdb else sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@functools.cache
def _server():
    """Return a server that runs until this process ends."""
    server = Postgres(_programs())
    atexit.register(server.stop)
    return server


def run_postgresql(statement, table, columns, values, types=None):
    """Return the columns of the result by name, as `run_sql` does; NaN and infinities are texts."""
    return _server().run(statement, table, columns, values, types)


MISSING = {}  # reasons why a database is not tried
if find_spec("duckdb") is None:
    MISSING[run_duckdb] = "DuckDB is not installed; the extra test has it"
if _programs() is None:
    MISSING[run_postgresql] = "PostgreSQL is not installed: initdb is neither in PATH nor in /usr/lib/postgresql"
DATABASES = [run for run in (run_sql, run_duckdb, run_postgresql) if run not in MISSING]
if TIER == "quick":
    DATABASES = [run_sql]
