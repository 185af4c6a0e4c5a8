"""Processes of the benchmark: started in groups of their own, ended by their ids, and asked how
much processor time and memory they used. It must end only what it started.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def _stat(pid):
    """Parent, and the clock ticks used by itself and by its children that have ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), sum(int(field) for field in fields[11:15])


def _tree(pid):
    """Clock ticks by process, of one and everything below it."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := _stat(entry)):
            found[int(entry)] = stat
    children = {}
    for child, (parent, _) in found.items():
        children.setdefault(parent, []).append(child)
    ticks, waiting = {}, [pid]
    while waiting:
        at = waiting.pop()
        if at in found:
            ticks[at] = found[at][1]
            waiting += children.get(at, [])
    return ticks


def tree(pid):
    """A process and everything below it."""
    return set(_tree(pid))


def cpu_seconds(pid):
    """Processor time of a process and everything below it, from its start to now."""
    return sum(_tree(pid).values()) / TICK


def resident_bytes(pid):
    """Memory of a process that is in RAM."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no memory")


class Service:
    """A process that runs beside the measurement, with its output in a file."""

    def __init__(self, command, log, env=None, cwd=None):
        self.log = Path(log)
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                start_new_session=True,
            )

    @property
    def pid(self):
        return self.process.pid

    def wait_for(self, ready, what, seconds=30):
        """Waits until `ready` gives something, and returns that."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{what} ended:\n{self.log.read_text()[-2000:]}")
            if value := ready():
                return value
            time.sleep(0.02)
        raise RuntimeError(f"{what} is not ready:\n{self.log.read_text()[-2000:]}")

    def stop(self):
        """Asks it to end, and ends its group if it does not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.pid, signal.SIGKILL)
                self.process.wait()


def output(command, env=None, cwd=None, seconds=600):
    """What a command prints; an error says what it wrote."""
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=seconds,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout
