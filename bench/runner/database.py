"""Databases of the private PostgreSQL. Every figure starts on a fresh one, so that no measurement
pays for what an earlier one left behind.
"""

from contextlib import contextmanager

import psycopg


class Cluster:
    """The private server."""

    def __init__(self, place):
        self.url = place.pg_url
        self._numbers = iter(range(1, 1_000_000))

    def query(self, statement, database="postgres"):
        """Rows of one statement; an empty list where it gives none."""
        with psycopg.connect(f"{self.url}/{database}", autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def value(self, statement, database="postgres"):
        """The one value of a statement."""
        return self.query(statement, database)[0][0]

    def counter(self, table, database):
        """A function that says how many rows a table has by then."""
        return lambda: self.value(f"SELECT count(*) FROM {table}", database)

    def template(self, name, fill):
        """Makes database `name`, once; `fill` gets its URL."""
        if not self.value(f"SELECT count(*) FROM pg_database WHERE datname = '{name}'"):
            self.query(f"CREATE DATABASE {name}")
            fill(f"{self.url}/{name}")
        return name

    @contextmanager
    def fresh(self, template):
        """The name of a copy of `template`, dropped at the end."""
        name = f"bench_{next(self._numbers)}"
        self.query(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield name
        finally:
            self.query(f"DROP DATABASE {name} WITH (FORCE)")

    def settle(self):
        """Writes out what earlier work left in memory, so that later work does not pay for it."""
        self.query("CHECKPOINT")

    def wal_bytes(self):
        """How much WAL was written since the cluster was made."""
        return int(self.value("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"))

    def transactions(self):
        """How many transactions wrote something since the cluster was made, savepoints counted."""
        return int(self.value("SELECT pg_snapshot_xmax(pg_current_snapshot())"))
