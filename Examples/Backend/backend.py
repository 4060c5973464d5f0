#!/usr/bin/env python3
"""A shop's backend on PostgreSQL: orders, stock, notes and a report.

It knows nothing of Ferry. `ferryd mirror` brings its tables to devices, and the devices' orders into
its tables. Several workers write at once, each on a connection of its own. They try again after
serialization failures, deadlocks and lost connections.

  backend.py --database URL --create     creates the tables and some products and customers
  backend.py --database URL              works until SIGTERM
  backend.py --database URL --report     prints the books; exit code 1 if they do not balance
"""

import argparse
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
import uuid
from pathlib import Path

import psycopg
from psycopg import errors

# Errors that are gone when the same transaction is made again.
TRANSIENT = (
    errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable,
    errors.QueryCanceled,
)

# Each of these queries is empty, whatever the moment: a transaction keeps them, or it is seen in part.
RULES = {
    "the stock is the sum of the movements": """
        SELECT s.product, s.place, s.quantity, coalesce(sum(e.amount), 0)
        FROM stock s LEFT JOIN entries e ON e.product = s.product AND e.place = s.place
        GROUP BY s.product, s.place, s.quantity HAVING s.quantity <> coalesce(sum(e.amount), 0)
        """,
    "all places together have nothing": """
        SELECT product, sum(quantity) FROM stock GROUP BY product HAVING sum(quantity) <> 0
        """,
    "an order's total is the sum of its lines": """
        SELECT o.id, o.total, coalesce(sum(l.quantity * l.price), 0)
        FROM orders o LEFT JOIN lines l ON l.order_id = o.id
        GROUP BY o.id, o.total HAVING o.total <> coalesce(sum(l.quantity * l.price), 0)
        """,
}


class Journal:
    """Facts outside of the database, a JSON object a line. A line is whole when `write` returns."""

    def __init__(self, path):
        self.lock = threading.Lock()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self.file = os.open(path, flags, 0o600) if path else None
        # A process that was killed may have left half a line.
        if self.file is not None and os.fstat(self.file).st_size > 0:
            os.write(self.file, b"\n")

    def note(self, event, **facts):
        if self.file is None:
            return
        line = json.dumps({"event": event, **facts}).encode() + b"\n"
        with self.lock:
            while line:
                line = line[os.write(self.file, line):]


class Changes:
    """The rows that a transaction writes, for the journal."""

    def __init__(self):
        self.inserted, self.set, self.deleted = [], [], []

    def insert(self, table, *keys):
        self.inserted += [[table, key] for key in keys]


class Shop:
    """The transactions of the shop, each on a cursor within one."""

    def __init__(self, cursor, changes):
        self.cursor, self.changes = cursor, changes

    def rows(self, sql, *values):
        return self.cursor.execute(sql, values).fetchall()

    def row(self, sql, *values):
        return self.cursor.execute(sql, values).fetchone()

    # Stock

    def move(self, moves):
        """Moves (product, from, to, quantity): entries by COPY, and their sums by UPDATE … FROM."""
        rows = [(str(uuid.uuid4()), *move) for move in moves]
        with self.cursor.copy(
            "COPY movements (id, product, from_place, to_place, quantity) FROM STDIN"
        ) as copy:
            for row in rows:
                copy.write_row(row)
        keys = [row[0] for row in rows]
        self.cursor.execute(
            """
            UPDATE stock s SET quantity = s.quantity + e.amount
            FROM (SELECT product, place, sum(amount)::bigint AS amount FROM entries
                  WHERE movement = ANY(%s) GROUP BY product, place) e
            WHERE s.product = e.product AND s.place = e.place
            """, (keys,))
        self.changes.insert("movements", *keys)

    def receive(self):
        products = self.rows("SELECT id FROM products ORDER BY random() LIMIT 3")
        self.move([(id, "supplier", "cellar", random.randint(1, 9)) for (id,) in products])

    def refill(self):
        """Brings goods from the cellar to the shelf, if another worker does not do it meanwhile."""
        found = self.row(
            """
            SELECT c.product, least(c.quantity, 10) FROM stock c JOIN stock s USING (product)
            WHERE c.place = 'cellar' AND s.place = 'shelf' AND c.quantity > 0
            ORDER BY s.quantity, c.product LIMIT 1
            """)
        if found:
            self.move([(found[0], "cellar", "shelf", found[1])])

    # Orders

    def add_lines(self, order, count):
        """Adds lines to an order, adds their sum to its total, and takes the goods from the shelf."""
        lines = []
        for product, price in self.rows(
            "SELECT id, price FROM products ORDER BY random() LIMIT %s", count
        ):
            lines.append((str(uuid.uuid4()), order, product, random.randint(1, 3), price))
        with self.cursor.copy(
            "COPY lines (id, order_id, product, quantity, price) FROM STDIN"
        ) as copy:
            for line in lines:
                copy.write_row(line)
        total = sum(quantity * price for *_, quantity, price in lines)
        self.cursor.execute("UPDATE orders SET total = total + %s WHERE id = %s", (total, order))
        self.changes.insert("lines", *(line[0] for line in lines))
        self.move([(product, "shelf", "customer", n) for _, _, product, n, _ in lines])

    def place_order(self):
        (customer,) = self.row(
            "SELECT id FROM customers WHERE approved ORDER BY random() LIMIT 1")
        (order,) = self.row("INSERT INTO orders (customer) VALUES (%s) RETURNING id", customer)
        self.changes.insert("orders", order)
        self.add_lines(order, random.randint(1, 3))

    def extend_order(self):
        found = self.row(
            "SELECT id FROM orders WHERE status = 'open' ORDER BY random() LIMIT 1 FOR UPDATE")
        if found:
            self.add_lines(found[0], 1)

    def pack(self):
        """Packs up to three open orders; two workers never pack the same one."""
        self.cursor.execute(
            """
            UPDATE orders SET status = 'packed' FROM (
              SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer
              WHERE o.status = 'open' AND o.total > 0 AND c.approved
              ORDER BY o.id LIMIT 3 FOR UPDATE OF o SKIP LOCKED) ready
            WHERE orders.id = ready.id
            """)

    # Customers and notes

    def register(self):
        key, email = str(uuid.uuid4()), f"guest{random.randrange(40)}@example.com"
        (found,) = self.row(
            """
            INSERT INTO customers (id, email, name) VALUES (%s, %s, %s)
            ON CONFLICT (email) DO UPDATE SET name = excluded.name RETURNING id
            """, key, email, f"Guest {key[:8]}")
        if found == key:
            self.changes.insert("customers", key)

    def write_note(self):
        order = self.row("SELECT id FROM orders ORDER BY random() LIMIT 1 FOR KEY SHARE")
        if not order:
            return
        body = str(uuid.uuid4())
        (note,) = self.row(
            "INSERT INTO notes (order_id, body) VALUES (%s, %s) RETURNING id", order[0], body)
        self.changes.insert("notes", note)

    def edit_note(self):
        body = str(uuid.uuid4())
        found = self.row(
            """
            UPDATE notes SET body = %s
            WHERE id = (SELECT id FROM notes ORDER BY random() LIMIT 1 FOR UPDATE) RETURNING id
            """, body)
        if found:
            self.changes.set.append(["notes", found[0], "body", body])

    def reply(self):
        note = self.row("SELECT id FROM notes ORDER BY random() LIMIT 1 FOR KEY SHARE")
        if note:
            (reply,) = self.row(
                "INSERT INTO replies (note, body) VALUES (%s, %s) RETURNING id",
                note[0], str(uuid.uuid4()))
            self.changes.inserted.append(["replies", reply, "notes", note[0]])

    def delete_note(self):
        found = self.row(
            """
            DELETE FROM notes
            WHERE id = (SELECT id FROM notes ORDER BY random() LIMIT 1 FOR UPDATE) RETURNING id
            """)
        if found:
            self.changes.deleted.append(["notes", found[0]])


# Each with the number of times that it comes among all.
WORK = [
    (Shop.place_order, 5), (Shop.extend_order, 3), (Shop.pack, 1), (Shop.receive, 2),
    (Shop.refill, 3), (Shop.register, 2), (Shop.write_note, 3), (Shop.edit_note, 3),
    (Shop.reply, 2), (Shop.delete_note, 1),
]


def connect(database):
    """Opens a connection on which nothing waits for ever."""
    return psycopg.connect(
        database, autocommit=True, connect_timeout=5, tcp_user_timeout=15_000,
        application_name="shop",
        options="-c statement_timeout=20s -c lock_timeout=10s "
        "-c idle_in_transaction_session_timeout=30s")


def broken_rules(connection):
    """Returns the rules that one snapshot breaks, with the first row, and the number of orders."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        broken = []
        for rule, query in RULES.items():
            row = connection.execute(query).fetchone()
            if row:
                broken.append(f"{rule}: not for {', '.join(map(str, row))}")
        (orders,) = connection.execute("SELECT count(*) FROM orders").fetchone()
        return broken, orders


class Worker(threading.Thread):
    """Makes transactions one after another, until it is asked to stop."""

    def __init__(self, arguments, journal, counts, stopping):
        super().__init__(daemon=True)
        self.arguments, self.journal = arguments, journal
        self.counts, self.stopping = counts, stopping
        self.connection = None

    def run(self):
        try:
            self.work()
        except Exception:
            # A fault of this program: all of it ends, so that its supervisor notices.
            traceback.print_exc()
            self.count("failed")
            self.stopping.set()

    def work(self):
        pause = self.arguments.workers / self.arguments.rate
        work, weights = zip(*WORK)
        while not self.stopping.is_set():
            if random.random() < 0.15:
                self.read()
            else:
                self.perform(random.choices(work, weights)[0])
            self.stopping.wait(pause * random.uniform(0.5, 1.5))

    def perform(self, work):
        """Makes one transaction, once.

        A lost connection leaves open whether it was committed. The next attempt has the same
        identifier, and its first statement waits until PostgreSQL has ended the former attempt.
        """
        request, kind = str(uuid.uuid4()), work.__name__
        while not self.stopping.is_set():
            try:
                self.attempt(request, kind, work)
                self.journal.note("committed", id=request)
                return self.count("transactions")
            except errors.UniqueViolation as error:
                if error.diag.constraint_name != "requests_pkey":
                    return self.count("refused")
                # The former attempt has succeeded; only its answer was lost.
                self.journal.note("committed", id=request)
                return self.count("transactions")
            except TRANSIENT:
                self.count("retries")
            except errors.IntegrityError:
                return self.count("refused")
            except psycopg.Error:
                if not self.is_lost():
                    raise
                self.reconnect()

    def attempt(self, request, kind, work):
        connection = self.connected()
        changes = Changes()
        with connection.transaction():
            if work is Shop.refill:
                connection.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            cursor = connection.cursor()
            cursor.execute("INSERT INTO requests (id, kind) VALUES (%s, %s)", (request, kind))
            work(Shop(cursor, changes))
            # It may be committed from here on.
            self.journal.note(
                "commits", id=request, kind=kind, inserted=changes.inserted, set=changes.set,
                deleted=changes.deleted)

    def read(self):
        try:
            broken, _ = broken_rules(self.connected())
        except TRANSIENT:
            return self.count("retries")
        except psycopg.Error:
            if not self.is_lost():
                raise
            return self.reconnect()
        self.journal.note("read", broken=broken)
        self.count("reads")
        for rule in broken:
            self.count("broken")
            print(f"broken: {rule}", file=sys.stderr, flush=True)

    def is_lost(self):
        """Whether the connection is gone, or there was none: whichever error reported it."""
        return self.connection is None or self.connection.closed

    def connected(self):
        if self.connection is None:
            self.connection = connect(self.arguments.database)
        return self.connection

    def reconnect(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        self.count("reconnects")
        self.stopping.wait(random.uniform(0.1, 0.5))

    def count(self, name):
        with self.journal.lock:
            self.counts[name] = self.counts.get(name, 0) + 1


def create(database):
    """Creates the tables with some products, stock and customers, unless they are there."""
    with connect(database) as connection, connection.transaction():
        if connection.execute("SELECT to_regclass('orders')").fetchone()[0]:
            return print("the tables exist")
        connection.execute((Path(__file__).parent / "schema.sql").read_text())
        cursor = connection.cursor()
        cursor.executemany(
            "INSERT INTO products VALUES (%s, %s, %s)",
            [(name, name.title(), 100 + 50 * n) for n, name in enumerate(
                ["apple", "bread", "cheese", "honey", "milk", "tea"])])
        cursor.executemany(
            "INSERT INTO customers (id, email, name, approved) VALUES (%s, %s, %s, true)",
            [(f"customer-{n}", f"customer{n}@example.com", f"Customer {n}") for n in range(1, 6)])
        cursor.execute(
            """
            INSERT INTO stock (product, place)
              SELECT id, unnest(ARRAY['supplier', 'cellar', 'shelf', 'customer']) FROM products
            """)
        shop = Shop(cursor, Changes())
        shop.move([(id, "supplier", "shelf", 100) for (id,) in shop.rows("SELECT id FROM products")])
    print("created the tables")


def report(database):
    with connect(database) as connection:
        broken, orders = broken_rules(connection)
        for row in connection.execute(
            """
            SELECT p.name, sum(l.quantity)::bigint, sum(l.quantity * l.price)::bigint,
              count(DISTINCT o.customer)
            FROM lines l JOIN orders o ON o.id = l.order_id JOIN products p ON p.id = l.product
            GROUP BY p.name ORDER BY 3 DESC
            """
        ):
            print(f"{row[0]:<10} {row[1]:>6} sold {row[2]:>10} in all {row[3]:>4} customers")
    print(f"{orders} orders")
    for rule in broken:
        print(f"broken: {rule}")
    return 1 if broken else 0


def work(arguments):
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    journal, counts = Journal(arguments.journal), {}
    workers = [Worker(arguments, journal, counts, stopping) for _ in range(arguments.workers)]
    for worker in workers:
        worker.start()
    print("the backend works", flush=True)
    end = time.monotonic() + arguments.seconds if arguments.seconds else float("inf")
    while time.monotonic() < end and not stopping.wait(0.2):
        pass
    stopping.set()
    for worker in workers:
        worker.join()
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return 1 if counts.get("broken") or counts.get("failed") else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--database", default=os.environ.get("DATABASE_URL"), help="postgres://user@host/name")
    parser.add_argument("--create", action="store_true", help="create the tables, and end")
    parser.add_argument("--report", action="store_true", help="print the books, and end")
    parser.add_argument("--workers", type=int, default=4, help="connections that write (4)")
    parser.add_argument(
        "--rate", type=float, default=20, help="transactions a second, over all workers (20)")
    parser.add_argument("--seconds", type=float, default=0, help="end after so long")
    parser.add_argument("--journal", help="a file for the commits, outside of the database")
    arguments = parser.parse_args()
    if not arguments.database:
        parser.error("--database is missing")
    if arguments.workers < 1 or arguments.rate <= 0:
        parser.error("--workers and --rate have to be positive")
    if arguments.create:
        return create(arguments.database)
    return report(arguments.database) if arguments.report else work(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except psycopg.Error as error:
        sys.exit(f"backend: {error}".rstrip())
