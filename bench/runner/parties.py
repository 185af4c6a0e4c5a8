"""The parties of a comparison: PostgreSQL, the usual receiver, Ichido, and who puts them under load.

Everything is started here on free ports of this machine, and ended by its process id.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.parse

import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
SECRET = "whsec_bench"
PAYLOAD = BENCH / "payload.json"


def free_port():
    """A port that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Postgres:
    """The private server."""

    def __init__(self, url, postmaster):
        self.url, self.postmaster = url, postmaster
        self.port = str(urllib.parse.urlparse(url).port)
        self.bin = pathlib.Path(os.environ["ICHIDO_PG_BIN"])

    def connection(self):
        """How its tools reach it."""
        return ["-h", "127.0.0.1", "-p", self.port, "-U", "postgres"]

    def tool(self, name):
        """One of its programs: beside the server, or wherever the system has it."""
        own = self.bin / name
        return str(own) if own.exists() else name

    def run(self, database, *args):
        """Runs psql."""
        command = [self.tool("psql"), *self.connection(), "-qAtX", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(
            [*command, *args, database], capture_output=True, text=True, check=False, timeout=60
        )
        if done.returncode:
            sys.exit(f"psql: {done.stderr}")
        return done.stdout.strip()

    def ask(self, sql, database="postgres"):
        """One value."""
        return self.run(database, "-c", sql)

    def fresh(self, name, schema=None):
        """An empty database, and a checkpoint, so that readings begin alike."""
        self.run("postgres", "-c", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)",
                 "-c", f"CREATE DATABASE {name}")
        if schema:
            self.run(name, "-f", str(schema))
        self.ask("CHECKPOINT")
        return f"{self.url}/{name}"

    def wal(self):
        """Bytes of WAL written so far."""
        return int(self.ask("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    def pgbench(self, script, clients, seconds, work):
        """Transactions a second of a raw script, and the WAL of one."""
        self.fresh("raw", BENCH / "baseline/schema.sql")
        payload = PAYLOAD.read_text().strip().replace("'", "''")
        file = pathlib.Path(work) / script
        file.write_text((BENCH / "pgbench" / script).read_text().replace("{payload}", payload))
        wal = self.wal()
        command = [self.tool("pgbench"), *self.connection(), "-n", "-M", "prepared", "-j", "1"]
        done = subprocess.run(
            [*command, "-c", str(clients), "-T", str(seconds), "-f", str(file), "raw"],
            capture_output=True, text=True, check=True, timeout=seconds + 60,
        ).stdout
        rate = [line.split()[2] for line in done.splitlines() if line.startswith("tps")]
        count = [line for line in done.splitlines() if "actually processed" in line]
        events = int(count[0].split(":")[1].split("/")[0])
        return {"rate_per_s": float(rate[0]), "wal_bytes": (self.wal() - wal) / events}


class Server:
    """A receiver under test."""

    def __init__(self, command, port, environment, log):
        self.port = port
        self.process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, cwd=BENCH / "baseline",
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        self.stop()
        sys.exit(f"{command[0]} did not start: see {log.name}")

    def stop(self):
        """Asks it to end, and waits."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def baseline(url, log):
    """The usual receiver, with a process for each core."""
    port = free_port()
    uvicorn = pathlib.Path(sys.executable).parent / "uvicorn"
    command = [str(uvicorn), "receiver:app", "--port", str(port), "--log-level", "warning",
               "--workers", str(os.cpu_count())]
    return Server(command, port, {"DATABASE_URL": url, "STRIPE_WEBHOOK_SECRET": SECRET}, log)


def ichido(url, work, log, migrate):
    """`ichido serve` with the billing example, sync and async."""
    port, example = free_port(), ROOT / "examples/billing"
    per_engine = lambda name: (f'{{ sqlite = "{example}/sqlite/{name}.sql", '
                               f'postgres = "{example}/postgres/{name}.sql" }}')
    lines = [f'listen = "127.0.0.1:{port}"', f"app.schema = {per_engine('schema')}"]
    for endpoint in ("sync", "async"):
        lines += [f"[endpoint.{endpoint}]", 'provider = "stripe"', f'mode = "{endpoint}"',
                  'secrets = ["env:STRIPE_WEBHOOK_SECRET"]', f"[endpoint.{endpoint}.handlers]",
                  f'"invoice.paid" = {per_engine("invoice_paid")}']
    config = pathlib.Path(work) / "ichido.toml"
    config.write_text("\n".join(lines) + "\n")
    binary = str(ROOT / "target/release/ichido")
    environment = {"DATABASE_URL": url, "STRIPE_WEBHOOK_SECRET": SECRET}
    if migrate:
        subprocess.run([binary, "migrate", "--app", "--config", str(config)], check=True,
                       env={**os.environ, **environment}, stdout=log, stderr=log)
    return Server([binary, "serve", "--config", str(config)], port, environment, log)


def load(server, postgres, path, *options, seconds, connections=64):
    """One reading: rate, latency, and where the processor's time went, in µs an event."""
    command = [str(ROOT / "target/release/ichido-bench-load"), "--secret", SECRET,
               "--payload", str(PAYLOAD), "--address", f"127.0.0.1:{server.port}",
               "--path", path, "--connections", str(connections), "--seconds", str(seconds)]
    wal = postgres.wal()
    served, stored = server.process.pid, postgres.postmaster
    before = machine.family_time(served), machine.family_time(stored), os.times()
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False,
                          timeout=seconds + 90)
    after = machine.family_time(served), machine.family_time(stored), os.times()
    if done.returncode:
        sys.exit(f"load: {done.stderr}")
    reading = json.loads(done.stdout)
    events = max(1, reading["answered"])
    generator = (after[2].children_user + after[2].children_system
                 - before[2].children_user - before[2].children_system)
    reading["cpu_us"] = {
        "server": machine.used(before[0], after[0]) / events * 1e6,
        "postgresql": machine.used(before[1], after[1]) / events * 1e6,
        "generator": generator / events * 1e6,
    }
    reading["wal_bytes"] = (postgres.wal() - wal) / events
    expected = "400" if "--forged" in options else "200"
    other = {status: n for status, n in reading["statuses"].items() if status != expected}
    if other or reading["broken"]:
        print(f"  {path}: unexpected answers {other}, broken {reading['broken']}",
              file=sys.stderr)
    return reading
