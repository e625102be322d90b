"""How the store's tables came to be, step by step. A step that was released is never changed: a new one follows it.

A step is one or more statements of SQL. It is carried out in one transaction together with its row in the table `migration`,
so that a store is never between two steps.
"""

from collections.abc import Sequence

import duckdb

from engine.errors import SeqscopeError

STEPS: tuple[str, ...] = (
    """
    create table dataset (
        id varchar primary key, owner varchar not null, title varchar not null, created timestamp not null, expires timestamp,
        state varchar not null, rows_items bigint not null, rows_events bigint not null, bytes bigint not null,
        reading varchar not null, fingerprint varchar not null
    );
    create table history (
        id varchar primary key, owner varchar not null, dataset varchar not null, name varchar not null, items varchar not null,
        created timestamp not null, changed timestamp not null, expires timestamp
    );
    create table comparison (
        id varchar primary key, owner varchar not null, dataset varchar not null, name varchar not null, address varchar not null,
        created timestamp not null, changed timestamp not null, expires timestamp
    );
    create table job (
        id varchar primary key, owner varchar not null, dataset varchar not null, kind varchar not null, spec varchar not null,
        state varchar not null, created timestamp not null, started timestamp, ended timestamp, message varchar not null
    );
    create table report (
        id varchar primary key, owner varchar not null, dataset varchar not null, name varchar not null,
        created timestamp not null, changed timestamp not null, expires timestamp, document varchar not null
    );
    """,
    # change: file.py. deleted, lost: folders that owners deleted, and what was put aside (sweep.py, lost.py). clock: when a
    # server last ran (server.py); of an older store, when the thing that expires last was used.
    """
    create table change (number bigint not null);
    insert into change values (0);
    create table deleted (path varchar primary key);
    create table lost (id varchar primary key, expires timestamp not null);
    alter table job add column expires timestamp;
    update job set expires = ended + interval 7 day where ended is not null and owner like 'b%';
    create table clock (seen timestamp not null);
    insert into clock select least(now() at time zone 'UTC', coalesce(max(expires) - interval 7 day, now() at time zone 'UTC'))
    from (
        select expires from dataset union all select expires from history union all select expires from comparison
        union all select expires from report union all select expires from job
    );
    """,
)


def apply(connection: duckdb.DuckDBPyConnection, steps: Sequence[str] = STEPS) -> int:
    """Carries out the steps that a store has not seen yet; how many.

    Raises SeqscopeError where it has seen more than there are.
    """
    connection.execute("create table if not exists migration (number integer, applied timestamp)")
    done = reached(connection)
    if done > len(steps):
        raise SeqscopeError(
            f"The store was written by a newer Seqscope (form {done}; this one knows {len(steps)}). "
            "Install that version, or set SEQSCOPE_HOME to another folder."
        )
    for number, step in enumerate(steps[done:], start=done + 1):
        connection.execute("begin")
        try:
            connection.execute(step)
            connection.execute("insert into migration values (?, current_timestamp at time zone 'UTC')", [number])
            connection.execute("commit")
        except BaseException:
            connection.execute("rollback")
            raise
    return len(steps) - done


def changes(connection: duckdb.DuckDBPyConnection) -> int:
    """How many changes a store has counted; 0 before it counted any."""
    tables = connection.execute("select 1 from duckdb_tables() where table_name = 'change'").fetchall()
    row = connection.execute("select number from change").fetchone() if tables else None
    return int(row[0]) if row else 0


def reached(connection: duckdb.DuckDBPyConnection) -> int:
    """The number of the last step that a store has seen."""
    row = connection.execute("select coalesce(max(number), 0) from migration").fetchone()
    return int(row[0]) if row else 0
