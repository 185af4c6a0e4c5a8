"""The two kinds of load: signed events over HTTP, and pgbench. Each gives plain numbers, and
raises where an answer was not the expected one: a rate of refusals would be no rate.
"""

import json
import re
import resource

from .place import ROOT, SECRET
from .processes import output

PAYLOAD = ROOT / "bench/invoice_paid.json"
PGBENCH = ROOT / "bench/pgbench"


class Load:
    """Sends events to a system that runs."""

    def __init__(self, place):
        self.place = place
        event = json.loads(PAYLOAD.read_text())
        self.text = json.dumps(event, ensure_ascii=False)
        handshake = {**event, "type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV2595"}
        self.files = {
            "stripe": self._file("invoice_paid.json", self.text),
            "slack": self._file("handshake.json", json.dumps(handshake, ensure_ascii=False)),
        }

    def _file(self, name, text):
        path = self.place.work / name
        path.write_text(text)
        return path

    def body(self):
        """The body of one event, as long as every other."""
        return self.text.replace("{unique}", "1" * 24).replace("{customer}", "SJLzq9dWptoLB7")

    def send(self, address, path, connections, provider="stripe", strict=True, **options):
        """One run of the generator; options as its command line has them."""
        command = [
            self.place.load, "--address", address, "--secret", SECRET, "--path", path,
            "--provider", provider, "--payload", self.files[provider],
            "--connections", connections,
        ]  # fmt: skip
        for name, value in options.items():
            if value is True:
                command.append(f"--{name}")
            elif value not in (None, False):
                command += [f"--{name}", value]
        found = json.loads(output(command))
        lost = found["requests"] - found["ok"]
        if strict and (lost or found["unsent"]):
            raise RuntimeError(f"{lost} of {path} were not answered as expected: {found}")
        return found

    def pgbench(self, script, url, clients, seconds):
        """Transactions a second of a raw script, and what pgbench itself used for each."""
        body = self.body().replace("'", "''")
        text = (PGBENCH / script).read_text().replace("@body@", body)
        command = [
            self.place.pg_bin / "pgbench", "-n", "-M", "prepared", "-c", clients, "-j", 1,
            "-T", seconds, "-f", self._file(script, text), url,
        ]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = output(command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        numbers = [
            re.search(pattern, said)
            for pattern in (r"tps = ([\d.]+)", r"processed: (\d+)", r"average = ([\d.]+)")
        ]
        if not all(numbers) or re.search(r"failed transactions: [1-9]", said):
            raise RuntimeError(f"pgbench did not do its work:\n{said}")
        rate, done, latency = (float(number[1]) for number in numbers)
        latency_us = {"mean": latency * 1000}
        return {
            "rate": rate,
            "requests": done,
            "latency_us": latency_us,
            "cpu_us": cpu * 1e6 / done,
        }
