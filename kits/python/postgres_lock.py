"""A lock in a table of one Postgres, with psycopg2: what the kit leaves to you."""

import os

import fencepost_kit
import psycopg2
from psycopg2 import errors

CREATE = "CREATE TABLE IF NOT EXISTS my_locks (key text PRIMARY KEY, owner text, until timestamptz, token bigint)"
ACQUIRE = """
    INSERT INTO my_locks VALUES (%(key)s, %(owner)s, clock_timestamp() + %(ttl)s * interval '1 s', 1)
    ON CONFLICT (key) DO UPDATE
        SET owner = excluded.owner, until = excluded.until, token = my_locks.token + 1
        WHERE my_locks.until <= clock_timestamp()
    RETURNING token"""
OURS = "WHERE key = %(key)s AND owner = %(owner)s AND until > clock_timestamp()"
# The row stays, because its token has to go on.
RELEASE = f"UPDATE my_locks SET until = '-infinity' {OURS} RETURNING 1"
RENEW = f"UPDATE my_locks SET until = clock_timestamp() + %(ttl)s * interval '1 s' {OURS} RETURNING 1"
HELD = f"SELECT 1 FROM my_locks {OURS}"
IS_LAST = "SELECT 1 FROM my_locks WHERE key = %(key)s AND owner = %(owner)s"


class PostgresLock(fencepost_kit.Lock):
    def acquire(self, owner, timeout):
        self.owner = owner
        try:
            return self.ask(ACQUIRE)
        except errors.UndefinedTable:
            try:
                self.ask(CREATE)
            except (errors.UniqueViolation, errors.DuplicateTable):
                pass  # Somebody else made it at the same time.
            return self.ask(ACQUIRE)

    def release(self):
        if self.ask(RELEASE):
            return "released"
        return "expired" if self.ask(IS_LAST) else "superseded"

    def renew(self):
        return self.ask(RENEW) is not None

    def held(self):
        return self.ask(HELD) is not None

    def ask(self, statement):
        """The first value of the first row, if there is one."""
        host, port = self.task.endpoints[0].rsplit(":", 1)
        user, database = os.environ.get("PGUSER", "postgres"), os.environ.get("PGDATABASE", "postgres")
        connection = psycopg2.connect(
            host=host, port=port, user=user, dbname=database, connect_timeout=5, tcp_user_timeout=5000
        )
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement, {"key": self.task.lock_key, "owner": self.owner, "ttl": self.task.ttl})
                row = cursor.fetchone() if cursor.description else None
                return row and row[0]
        finally:
            connection.close()


if __name__ == "__main__":
    fencepost_kit.run(PostgresLock, only={"FENCEPOST_BACKEND": ["postgres-lease"]})
