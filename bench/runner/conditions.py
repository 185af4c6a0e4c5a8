"""Under which conditions a run was made. Figures without them say nothing, so they travel in the
same report. Nothing here may name a person or a path of the machine.
"""

import datetime
import os
import platform
import subprocess
from pathlib import Path

from .place import ROOT

SETTINGS = (
    "server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method",
    "shared_buffers", "max_wal_size", "max_connections",
)  # fmt: skip


def _cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def conditions(cluster, load, seconds, rounds):
    """What has to be known to repeat or to doubt a figure."""
    commit = _git("rev-parse", "--short=12", "HEAD") or "no checkout"
    changed = bool(_git("status", "--porcelain", "--untracked-files=no"))
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit + (" with changes" if changed else ""),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory_bytes(),
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
        "postgres": {name: cluster.value(f"SHOW {name}") for name in SETTINGS},
        "payload_bytes": len(load.body().encode()),
        "seconds": seconds,
        "rounds": rounds,
        "python": platform.python_version(),
    }


def sentence(found):
    """The same for people."""
    postgres = found["postgres"]
    return (
        f"{found['date'][:10]}, commit {found['commit']}. {found['cores']} cores "
        f"({found['cpu']}), {found['memory_bytes'] / 2**30:.0f} GB, Linux {found['kernel']}; load "
        f"average before the run {found['load_before']:.1f}. Load generator, server and "
        f"PostgreSQL {postgres['server_version'].split()[0]} on the same machine; `fsync` "
        f"{postgres['fsync']}, `synchronous_commit` {postgres['synchronous_commit']}, "
        f"`full_page_writes` {postgres['full_page_writes']}, `shared_buffers` "
        f"{postgres['shared_buffers']}, `max_wal_size` {postgres['max_wal_size']}. Signed Stripe "
        f"events of {found['payload_bytes']:,} bytes over kept HTTP/1.1 connections. "
        f"{found['seconds']:g} s a figure after 1 s of warm-up, on a fresh database each; medians "
        f"of {found['rounds']} rounds, ratios taken within a round."
    )
