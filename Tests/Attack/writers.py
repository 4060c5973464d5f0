"""The work that one principal's cheap request causes delays no push of another space."""

import json
import os
import random
import time

from harness import MIB, Writer, attack, beside
from memory import large_record

STORES = ("embedded", "postgres")


def setting(run, store, schema=None):
    """A server with an attacked and an honest space. Returns it, a writer that attacks, and an honest push."""
    server = run.server(store)
    server.space("attacked", "honest")
    admin, good = server.token("attacked", "admin", "evil"), server.token("honest", "writer", "good")
    if schema:
        server.client(admin).json("PUT", "/v1/spaces/attacked/schema", {"tables": {"t": schema}})
    evil, honest = (Writer(server.client(token), space, run.rng)
                    for token, space in ((admin, "attacked"), (good, "honest")))
    return server, evil, lambda: honest.offer(
        [honest.operation("t", f"r{honest.counter}", {"n": 1})])[0] == 200


def another(run, evil):
    """A device of the same principal, with a connection of its own."""
    return Writer(type(evil.client)(evil.client.port, evil.client.token), "attacked",
                  random.Random(run.rng.random()))


def packets(writer, *lists):
    """Offers each list of operations. Yields the statuses."""
    for operations in lists:
        yield writer.offer(operations)[0]


def applied(run, store, statuses):
    run.check(statuses and set(statuses) <= {200, 202, 413, 422, 429},
              f"{store}: each packet is applied or refused for good: {statuses}")


@attack
def unique_keys(run):
    """Updates of a record with 32 unique keys over 8 MB delay no push of another space, on both stores."""
    for store in STORES:
        server, evil, honest = setting(run, store, {
            "unique": [[f"c{n}" for n in range(8)] + [f"n{key}"] for key in range(32)]})
        large_record(evil, "t", "r", {f"n{key}": key for key in range(32)})
        apart = [evil.operation("t", "r", {"m": n}, "update") for n in range(3)]
        within = [evil.operation("t", "r", {f"n{key}": n + 100 for key in range(32)}, "update")
                  for n in range(3)]
        applied(run, store, beside(run, f"{store} unique keys", honest, packets(evil, apart, within)))
        run.alive(server)


def numbers():
    """A set of nearly 1 MiB, as a text."""
    return json.dumps(list(range(140_000)), separators=(",", ":"))


def unions(writer, count):
    return [writer.operation("t", "r", {"x": f"[-{n + 1}]"}, "update") for n in range(count)]


@attack
def set_unions(run):
    """Two packets of 60 small unions with a set of 1 MiB delay no push of another space, on both stores."""
    for store in STORES:
        server, evil, honest = setting(run, store, {"columns": {"x": "set-union"}})
        evil.insert("t", "r", x=numbers())
        writers = [another(run, evil) for _ in range(2)]
        applied(run, store, beside(run, f"{store} unions", honest, *[
            packets(writer, unions(writer, 60)) for writer in writers]))
        run.alive(server)


@attack
def released_unions(run):
    """Buffered packets whose unions a small packet releases delay no push of another space, on both stores."""
    for store in STORES:
        server, evil, honest = setting(run, store, {"columns": {"x": "set-union"}})
        evil.insert("t", "r", x=numbers())
        writer = another(run, evil)
        first = [writer.operation("t", "first", {"n": 1})]
        opening = writer.packet(first)
        writer.tail = first[-1]["id"]
        buffered = [writer.offer(unions(writer, 15))[0] for _ in range(4)]
        run.check(set(buffered) <= {202, 429}, f"{store}: packets that wait: {buffered}")

        def release():
            yield writer.client.send("POST", "/v1/spaces/attacked/packets", opening)[0]

        # All of it is one decision, which has a deadline on a slow machine.
        statuses = beside(run, f"{store} released", honest, release())
        run.check(set(statuses) <= {200, 429, 503}, f"{store}: {statuses}")
        run.alive(server)


@attack
def text_merges(run):
    """A packet of 400 merges of texts whose lines all differ delays no push of another space, on both stores."""
    old, left, right = ("".join(f"{mark}{n:x}\n" for n in range(500)) for mark in "abc")
    records = [f"r{n}" for n in range(400)]
    for store in STORES:
        server, evil, honest = setting(run, store, {"columns": {"x": "text-merge"}})
        other = another(run, evil)
        evil.push([evil.operation("t", record, {"x": old}) for record in records])
        place = str(len(records))
        evil.push([evil.operation("t", record, {"x": left}, "update", base=place)
                   for record in records])
        applied(run, store, beside(run, f"{store} merges", honest, packets(other, [
            other.operation("t", record, {"x": right}, "update", base=place, originals={"x": old})
            for record in records])))
        run.alive(server)


@attack
def schema_checks(run):
    """Checks of a schema over 60,000 records, which change nothing, delay no push of another space, on both stores."""
    schema = {"tables": {"t": {"unique": [["n"], ["text", "n"], ["n", "text"]]}}}
    for store in STORES:
        server, evil, honest = setting(run, store)
        evil.fill("t", 60_000)

        def check(client):
            for _ in range(2):
                yield client.send("POST", "/v1/spaces/attacked/schema", schema)[0]

        statuses = beside(run, f"{store} checks", honest, *[
            check(another(run, evil).client) for _ in range(2)])
        run.check(set(statuses) <= {200, 409, 413, 422, 429, 503}, f"{store}: {statuses}")
        run.alive(server)


@attack
def small_updates(run):
    """1,000 small updates of a record of 8 MB are stored as small, and take about as long as those of a small record."""
    for store in STORES:
        server, evil, _ = setting(run, store)
        evil.insert("t", "small", n=0)
        large_record(evil, "t", "r")
        seconds, before = {}, stored(run, server)
        for record in ("small", "r"):
            began = time.monotonic()
            applied(run, store, list(packets(
                evil, [evil.operation("t", record, {"n": n}, "update") for n in range(1000)],
                [evil.operation("t", record, {f"d{n % 8}": n}, "update") for n in range(1000)])))
            seconds[record] = time.monotonic() - began
        grown = stored(run, server) - before
        run.figure(f"{store} of a small record", seconds["small"] * 1000, "ms")
        run.figure(f"{store} of a large record", seconds["r"] * 1000, "ms")
        run.figure(f"{store} grew", grown / MIB, "MiB")
        run.check(seconds["r"] <= 50 * seconds["small"] + 1, f"{store}: {seconds}")
        run.check(grown < 128 * MIB, f"{store}: {grown >> 20} MiB more for 4,000 small updates")
        run.alive(server)


def stored(run, server):
    """The size of a server's store, in bytes."""
    if server.database:
        return int(run.cluster().query(
            server.database, "SELECT pg_database_size(current_database())")[0][0])
    return sum(os.path.getsize(os.path.join(folder, name))
               for folder, _, names in os.walk(f"{server.folder}/data") for name in names)
