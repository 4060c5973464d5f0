"""A node of the shipped size, 1 GiB, lives and serves others whatever lists, checks and digests a member asks for."""

import contextlib
import hashlib
import json
import time

from harness import MIB, Load, Writer, attack, beside, threads
from memory import large_record, node, unread

STORES = ("embedded", "postgres")


def request(method, path, token, body=b""):
    return (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def cursor(client, space):
    """The cursor behind the last page of a space whose sums are up to date."""
    place, more = None, True
    while more:
        page = client.json("GET", f"/v1/spaces/{space}/changes?limit=10000"
                           + (f"&cursor={place}" if place else ""))
        place, more = page["cursor"], page["more"]
    while "tables" not in client.json("POST", f"/v1/spaces/{space}/digests", {"cursor": place}):
        pass
    return place


# Nodes of a tree: one many times, nodes within each other, and as many as the sixteen branches have.
NODES = ([""] * 256, [f"{n:x}"[:length] for n in range(16) for length in (0, 1)] * 8,
         [f"{n:02x}" for n in range(256)])


@attack
def digests(run):
    """24 connections that ask for 256 nodes of digests again and again leave a node of 1 GiB alive, and others served."""
    for store in STORES:
        with node(run, store) as server:
            server.space("attacked", "honest")
            writer, reader = server.token("attacked", "writer"), server.token("attacked", "reader")
            good = server.token("honest", "reader", "good")
            Writer(server.client(writer), "attacked", run.rng).fill("t", 15_000)
            place = cursor(server.client(reader), "attacked")

            def ask(stopping, number):
                client, turn = server.client(reader), number
                while not stopping.is_set():
                    turn += 1
                    with contextlib.suppress(OSError):
                        client.send("POST", "/v1/spaces/attacked/digests", {
                            "cursor": place, "table": "t", "nodes": NODES[turn % len(NODES)]})

            pull = server.client(good)
            with Load(ask, processes=24):
                time.sleep(1)
                _, served, failed = run.neighbour(
                    f"{store} pull beside digests",
                    lambda: pull.send("GET", "/v1/spaces/honest/changes?limit=100")[0] == 200, 8)
            run.check(served >= failed, f"{store}: {served} of {served + failed} pulls were served")


@attack
def unread_digests(run):
    """150 connections that ask for long names of digests and do not read them leave a node of 1 GiB alive and serving."""
    for store in STORES:
        with node(run, store) as server:
            server.space("attacked", "honest")
            writer, reader = server.token("attacked", "writer"), server.token("attacked", "reader")
            evil = Writer(server.client(writer), "attacked", run.rng)
            # Each name has 3 KB in JSON.
            for first in range(0, 20_000, 1000):
                evil.push([evil.operation("t", f"{first + n:06}" + "\x01" * 500, {})
                           for n in range(1000)])
            place = cursor(server.client(reader), "attacked")
            bodies = [json.dumps({"cursor": place, "table": "t", "nodes": nodes}).encode()
                      for nodes in ([f"{n:02x}" for n in range(256)], [f"{n:03x}" for n in range(256)])]
            unread(run, server, [request("POST", "/v1/spaces/attacked/digests", reader, body)
                                 for body in bodies],
                   ("/v1/spaces/honest", server.token("honest", "reader", "good")))


@attack
def token_lists(run):
    """150 connections that ask for lists of tokens with 100 spaces each leave a node of 1 GiB alive and serving."""
    with node(run, "embedded") as server:
        server.space("evil", "honest")
        admin, good = server.token("evil*", "admin"), server.token("honest", "reader", "good")
        client = server.client(admin)
        spaces = {f"evil{'x' * 50}{n:03}": "reader" for n in range(100)}
        made = sum(client.send("POST", "/v1/tokens", {"name": "n" * 200, "spaces": spaces})[0] == 201
                   for _ in range(1500))
        run.figure("tokens made", made)
        unread(run, server, [request("GET", "/v1/tokens", admin)], ("/v1/spaces/honest", good))


@attack
def mission_lists(run):
    """150 connections that ask for lists of missions with long texts leave a node of 1 GiB alive and serving."""
    with node(run, "embedded") as server:
        server.space("attacked", "honest")
        admin, reader = server.token("attacked", "admin"), server.token("attacked", "reader")
        client, digest = server.client(admin), hashlib.sha256(b"hello").hexdigest()
        client.send("PUT", f"/v1/spaces/attacked/blobs/{digest}", b"hello",
                    {"Content-Type": "application/octet-stream"})
        manifest = {"items": [{"path": "f", "sha256": digest, "size": 5}], "title": "t" * 1024,
                    "summary": "\x07" * 16_384}
        made = []

        def publish(first):
            publisher = server.client(admin)
            made.extend(publisher.send("PUT", f"/v1/spaces/attacked/missions/m{number}", manifest)[0]
                        for number in range(first, 240, 8))

        with threads(publish, *[(first,) for first in range(8)]):
            pass
        run.figure("missions made", sum(status in (200, 201) for status in made))
        run.check(set(made) <= {200, 201, 507}, f"missions are published: {set(made)}")
        before = server.peak()
        unread(run, server, [request("GET", "/v1/spaces/attacked/missions", reader)],
               ("/v1/spaces/honest", server.token("honest", "reader", "good")))
        if server.is_alive:
            growth = (server.peak() - before) / MIB
            run.figure("growth", growth, "MiB")
            # A quarter of the node is the budget of all requests.
            run.check(growth < 256, f"lists of missions took {growth:.0f} MiB")


@attack
def schemas(run):
    """Checks of a schema over 80 records of 8 MB leave a node of 1 GiB alive, and other spaces' pushes are served."""
    for store in STORES:
        with node(run, store) as server:
            server.space("attacked", "honest")
            admin, good = server.token("attacked", "admin"), server.token("honest", "writer", "good")
            evil = Writer(server.client(admin), "attacked", run.rng)
            for number in range(80):
                large_record(evil, "t", f"r{number}")
            honest = Writer(server.client(good), "honest", run.rng)

            def check(column):
                yield server.client(admin).send("POST", "/v1/spaces/attacked/schema", {
                    "tables": {"t": {"columns": {column: {"type": "text"}}, "unique": [[column]]}}})[0]

            statuses = beside(
                run, f"{store} checks", lambda: honest.offer([
                    honest.operation("t", f"r{honest.counter}", {"n": 1})])[0] == 200,
                check("c1"), check("c2"))
            run.check(set(statuses) <= {200, 409, 413, 422, 429, 503}, f"{store}: {statuses}")


@attack
def uploads(run):
    """Contents of some bytes that nobody publishes are limited in number, also after a new start, and for one space alone."""
    server = run.server("embedded", "--quota-unpublished-files", "200")
    server.space("attacked", "other")
    tokens = {space: server.token(space, "admin", space) for space in ("attacked", "other")}

    def upload(space, number):
        content = f"{space} {number}".encode()
        return server.client(tokens[space]).send(
            "PUT", f"/v1/spaces/{space}/blobs/{hashlib.sha256(content).hexdigest()}", content,
            {"Content-Type": "application/octet-stream"})[0]

    statuses = [upload("attacked", number) for number in range(300)]
    run.figure("stored of 300", statuses.count(201))
    run.check(statuses.count(201) <= 200 and set(statuses) <= {201, 429, 507},
              f"{statuses.count(201)} of 200 are stored, the others get {set(statuses)}")
    run.check(upload("other", 1) == 201, "another space's content is stored")
    server.stop()
    server.start()
    run.check(upload("attacked", 300) in (429, 507), "the limit counts after a new start as well")
    run.check(upload("other", 2) == 201, "another space's content is stored after a new start")
    run.alive(server)
