"""Where this run finds its binaries, its PostgreSQL and its folder: `bench/run` says it in the
environment. Nothing here may guess: a benchmark of another binary would be worse than none.
"""

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECRET = "whsec_benchmark"


@dataclass(frozen=True)
class Place:
    work: Path  # gone after the run
    ichido: Path
    load: Path
    python: Path
    pg_bin: Path
    pg_url: str  # without a database
    pg_process: int
    profiled: Path | None  # the server with frame pointers, where it was asked for

    @staticmethod
    def from_environment():
        def path(name):
            return Path(os.environ[name])

        return Place(
            work=path("BENCH_WORK"),
            ichido=path("BENCH_ICHIDO"),
            load=path("BENCH_LOAD"),
            python=path("BENCH_PYTHON"),
            pg_bin=path("BENCH_PG_BIN"),
            pg_url=os.environ["BENCH_PG_URL"],
            pg_process=int(os.environ["BENCH_PG_PROCESS"]),
            profiled=path("BENCH_PROFILED") if "BENCH_PROFILED" in os.environ else None,
        )
