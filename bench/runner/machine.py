"""What this machine is, and how much of its processor each of the parties used."""

import os
import platform
import subprocess

TICKS = os.sysconf("SC_CLK_TCK")


def conditions(postgres):
    """What a reading depends on."""
    model = [line for line in open("/proc/cpuinfo") if line.startswith("model name")]
    settings = ("server_version", "fsync", "synchronous_commit", "shared_buffers", "max_wal_size")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "processor": model[0].split(":", 1)[1].strip() if model else platform.processor(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "commit": commit,
        "postgresql": {name: postgres.ask(f"SHOW {name}") for name in settings},
    }


def processor_time(pid):
    """Seconds of processor time that a process and its ended children have used."""
    try:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / TICKS


def children(pid):
    """The processes whose parent is `pid`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(name))
    return found


def family_time(pid):
    """Processor time of a process and of its children, by process."""
    return {member: processor_time(member) for member in [pid, *children(pid)]}


def used(before, after):
    """Seconds between two readings of `family_time`."""
    return sum(max(0.0, time - before.get(member, 0.0)) for member, time in after.items())


def memory_mb(pid):
    """Resident memory."""
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0
