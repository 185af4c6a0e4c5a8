"""Figures that need no rounds and no load: memory of an idle server, sizes, build time."""

import os
import re
import tempfile
import time

from .place import ROOT
from .processes import output, resident_bytes

IDLE = 2.0  # seconds until a server that started counts as idle


def idle_bytes(system):
    """Memory of a server that has nothing to do."""
    with system.running() as running:
        time.sleep(IDLE)
        return resident_bytes(running.pid)


def binary_bytes(place):
    return place.ichido.stat().st_size


def crates():
    """Crates that the server is built from, itself and its build's included."""
    tree = ["cargo", "tree", "--locked", "-p", "ichido-server", "--prefix", "none"]

    def count(edges):
        lines = output([*tree, "-e", edges, "--format", "{p}"], cwd=ROOT).splitlines()
        names = (re.match(r"\S+ \S+", line) for line in lines)
        return len({name[0] for name in names if name})

    return {"normal": count("normal"), "with_build": count("normal,build")}


def clean_build(place):
    """Seconds of a release build of the server that begins with nothing but the sources."""
    output(["cargo", "fetch", "--locked"], cwd=ROOT)
    with tempfile.TemporaryDirectory(dir=place.work) as folder:
        start = time.monotonic()
        command = ["cargo", "build", "--release", "--locked", "-p", "ichido-server"]
        output(command, env={"CARGO_TARGET_DIR": folder}, cwd=ROOT, seconds=3600)
        return {"seconds": time.monotonic() - start, "jobs": os.cpu_count()}
