"""What is compared: Ichido on either engine, and the usual Python implementation. Each serves the
same two paths on 127.0.0.1, runs on a database of its own, and says what it really stored.
"""

import re
import socket
import sqlite3
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from .place import ROOT, SECRET
from .processes import Service, output

BILLING = ROOT / "examples/billing"
BASELINE = ROOT / "bench/baseline"
BASELINE_PROCESSES = 2  # one a core of the machine that the targets were set on

CONFIG = """\
listen = "127.0.0.1:0"
[database]
url = "{url}"
[app.schema]
sqlite = "{billing}/sqlite/schema.sql"
postgres = "{billing}/postgres/schema.sql"
"""
ENDPOINT = """
[endpoint.{name}]
provider = "stripe"
secrets = ["env:BENCH_SECRET"]
mode = "{mode}"
[endpoint.{name}.handlers]
"invoice.paid" = "{billing}/{engine}/invoice_paid.sql"
"""
# Answers a signed handshake: verified, read, nothing stored.
HANDSHAKE = """
[endpoint.handshake]
provider = "slack"
secrets = ["env:BENCH_SECRET"]
"""


@dataclass
class Running:
    """A system that answers."""

    address: str
    pid: int
    database: str | None  # of the private server
    stored: Callable[[], int]  # events that it holds


class Ichido:
    """The server, with the handlers of examples/billing in SQL."""

    def __init__(self, place, cluster, engine, binary=None):
        self.place, self.cluster, self.engine = place, cluster, engine
        self.name = f"ichido-{engine}"
        self.binary = binary or place.ichido

    def _config(self, folder, url):
        text = CONFIG.format(url=url, billing=BILLING)
        for name, mode in (("billing", "sync"), ("billing-async", "async")):
            text += ENDPOINT.format(name=name, mode=mode, billing=BILLING, engine=self.engine)
        path = Path(folder) / "ichido.toml"
        path.write_text(text + HANDSHAKE)
        return path

    def _migrate(self, url):
        with tempfile.TemporaryDirectory(dir=self.place.work) as folder:
            config = self._config(folder, url)
            command = [self.place.ichido, "migrate", "--app", "--config", config]
            output(command, env={"BENCH_SECRET": SECRET})

    @contextmanager
    def running(self):
        """Starts it on an empty inbox."""
        with tempfile.TemporaryDirectory(dir=self.place.work) as folder:
            if self.engine == "sqlite":
                file = Path(folder) / "bench.db"
                yield from self._serve(folder, f"sqlite:{file}", None, lambda: _in_file(file))
                return
            template = self.cluster.template("ichido", self._migrate)
            with self.cluster.fresh(template) as name:
                stored = self.cluster.counter("ichido.event", name)
                yield from self._serve(folder, f"{self.cluster.url}/{name}", name, stored)

    def _serve(self, folder, url, database, stored):
        command = [self.binary, "serve", "--config", self._config(folder, url)]
        service = Service(command, Path(folder) / "log", env={"BENCH_SECRET": SECRET})
        try:
            address = service.wait_for(
                lambda: re.search(r"listening on http://(\S+)", service.log.read_text()), "ichido"
            )[1]
            service.wait_for(lambda: _answers(address, "/readyz"), "ichido")
            yield Running(address, service.pid, database, stored)
        finally:
            service.stop()


class Baseline:
    """FastAPI, psycopg, Stripe's library; one table."""

    name = "baseline"

    def __init__(self, place, cluster):
        self.place, self.cluster = place, cluster

    def _fill(self, url):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute((BASELINE / "schema.sql").read_text())

    def template(self):
        """An empty database with its tables, which pgbench works on, too."""
        return self.cluster.template("baseline", self._fill)

    @contextmanager
    def running(self):
        """Starts it on an empty table."""
        with self.cluster.fresh(self.template()) as name:
            port = _free_port()
            command = [
                self.place.python, "-m", "uvicorn", "app:app", "--host", "127.0.0.1",
                "--port", port, "--workers", BASELINE_PROCESSES, "--no-access-log",
            ]  # fmt: skip
            env = {
                "DATABASE_URL": f"{self.cluster.url}/{name}",
                "STRIPE_WEBHOOK_SECRET": SECRET,
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            service = Service(command, self.place.work / f"{name}.log", env=env, cwd=BASELINE)
            try:
                ready = "Application startup complete"
                service.wait_for(
                    lambda: service.log.read_text().count(ready) >= BASELINE_PROCESSES,
                    "the baseline",
                )
                stored = self.cluster.counter("webhook_inbox", name)
                yield Running(f"127.0.0.1:{port}", service.pid, name, stored)
            finally:
                service.stop()


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _answers(address, path):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _in_file(file):
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT count(*) FROM ichido_event").fetchone()[0]
    finally:
        connection.close()
