"""One principal's load, however it is shaped, does not take the server from another principal."""

import base64
import contextlib
import itertools
import json
import selectors
import socket
import time

from harness import Load, Writer, attack, beside, status_of, succeeds


def get(path, token, keep=True):
    close = "" if keep else "Connection: close\r\n"
    return (f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{close}"
            f"Authorization: Bearer {token}\r\n\r\n").encode()


def flood(stopping, number, port, count, requests, rate=None):
    """Keeps `count` connections busy with the requests, in turn; at most `rate` a second."""
    chooser, sent, began = selectors.DefaultSelector(), 0, time.monotonic()

    def open_one():
        with contextlib.suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", port), 10)
            connection.settimeout(5)
            chooser.register(connection, selectors.EVENT_READ)
            ask(connection)

    def ask(connection):
        nonlocal sent
        if rate:
            early = sent / rate - (time.monotonic() - began)
            if early > 0:
                time.sleep(min(early, 0.1))
        sent += 1
        connection.sendall(requests[sent % len(requests)])

    for _ in range(count):
        open_one()
    while not stopping.is_set():
        for key, _ in chooser.select(0.1):
            connection = key.fileobj
            try:
                part = connection.recv(1 << 20)
                if not part:
                    raise OSError
                # The end of an answer is near enough where no more bytes are there at once.
                if len(part) < 1 << 16:
                    ask(connection)
            except OSError:
                chooser.unregister(connection)
                connection.close()
                open_one()


def pull(server, token, space):
    client = server.client(token)
    return lambda: succeeds(client.send("GET", f"/v1/spaces/{space}/changes?limit=100"))


def push(server, token, space, rng):
    writer = Writer(server.client(token), space, rng)
    return lambda: succeeds(writer.offer([writer.operation("t", f"n{writer.counter}", {"n": 1})]))


@attack
def many_connections(run):
    """400 connections that pull take no more from another principal than 8 connections do."""
    for store in ("embedded", "postgres"):
        server = run.server(store)
        server.space("attacked", "honest")
        evil, good = server.token("attacked", "reader"), server.token("honest", "writer")
        Writer(server.client(server.token("attacked", "writer")), "attacked", run.rng).fill("t", 10_000)
        Writer(server.client(good), "honest", run.rng).fill("t", 100)
        request = [get("/v1/spaces/attacked/changes?limit=10000", evil)]
        one_pull = pull(server, good, "honest")
        alone, _, _ = run.neighbour(f"{store} pull alone", one_pull, 1.5)
        middle = {}
        for count in (8, 400):
            with Load(flood, server.port, count, request):
                time.sleep(1)
                middle[count], _, failed = run.neighbour(f"{store} pull beside {count}", one_pull, 4)
                run.check(failed == 0, f"{store}: {failed} pulls failed beside {count} connections")
                run.neighbour(f"{store} push beside {count}",
                              push(server, good, "honest", run.rng), 2)
        run.figure(f"{store} ratio 400 to alone", middle[400] / alone)
        run.figure(f"{store} ratio 400 to 8", middle[400] / middle[8])
        run.check(middle[400] <= 10 * middle[8] + 10 * alone,
                  f"{store}: p50 is {middle[400]:.0f} ms beside 400 connections, {middle[8]:.1f} "
                  f"beside 8, {alone:.1f} alone")
        run.alive(server)


@attack
def forged_tokens(run):
    """1,400 forged JSON Web Tokens a second from one address refuse no valid new token."""
    import jwt
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    other = ec.generate_private_key(ec.SECP256R1())
    numbers = key.public_key().public_numbers()

    def text(number):
        return base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()

    jwks = f"{run.folder('keys')}/jwks.json"
    with open(jwks, "w") as file:
        json.dump({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k1", "alg": "ES256", "use": "sig",
                             "x": text(numbers.x), "y": text(numbers.y)}]}, file)
    server = run.server("embedded", "--jwt-issuer", "https://id.example", "--jwt-audience", "ferry",
                        "--jwks", jwks)
    server.space("honest")

    def token(subject, secret):
        now = int(time.time())
        return jwt.encode({"iss": "https://id.example", "aud": "ferry", "sub": subject, "iat": now,
                           "exp": now + 600, "ferry": {"honest": "writer"}}, secret,
                          algorithm="ES256", headers={"kid": "k1"})

    path = "/v1/spaces/honest/changes?limit=1"
    forged = [get(path, token(f"evil{n}", other)) for n in range(200)]
    numbers_of_good = itertools.count()

    def newcomer():
        secret = token(f"good{next(numbers_of_good)}", key)
        return server.client(secret).send("GET", path)[0] == 200

    run.neighbour("new token alone", newcomer, 0.1)
    with Load(flood, server.port, 32, forged, 1400):
        time.sleep(2)
        _, served, failed = run.neighbour("new token beside forged", newcomer, 4)
    run.check(failed == 0, f"{failed} of {served + failed} valid tokens were refused")
    run.alive(server)


@attack
def many_tokens(run):
    """30 tokens that an admin makes have together the rate and the quota of one."""
    server = run.server("embedded", "--rate-limit", "1", "--rate-burst", "40",
                        "--quota-bytes", "1MiB")
    server.space("team")
    admin = server.token("team", "admin")
    maker = server.client(admin)
    made = []
    for number in range(30):
        status, body = maker.send("POST", "/v1/tokens",
                                  {"name": f"t{number}", "spaces": {"team": "writer"}})
        if status == 429:
            break
        if status == 201:
            made.append(json.loads(body)["token"])
    run.figure("tokens made", len(made))
    passed = 0
    for number in range(400):
        secret = made[number % len(made)] if made else admin
        passed += server.client(secret).send("GET", "/v1/spaces/team")[0] == 200
    run.figure("requests passed of 400", passed)
    run.check(passed <= 80, f"{passed} of 400 requests passed through {len(made)} tokens; one "
                            "token has 40")
    quota = run.server("embedded", "--quota-bytes", "1MiB")
    quota.space("team")
    maker = quota.client(quota.token("team", "admin"))
    stored = 0
    for number in range(9):
        status, body = maker.send("POST", "/v1/tokens",
                                  {"name": f"t{number}", "spaces": {"team": "writer"}})
        if status != 201:
            continue
        writer = Writer(quota.client(json.loads(body)["token"]), "team", run.rng)
        status, _ = writer.offer([writer.operation("t", f"{number}-{i}", {"v": "x" * 90_000})
                                  for i in range(9)])
        stored += 810_000 if status == 200 else 0
    run.figure("stored through 9 tokens", stored, "bytes")
    run.check(stored <= 2 << 20, f"{stored} bytes are stored with a quota of 1 MiB")


@attack
def large_batch(run):
    """A batch over 100,000 records of one space does not hold up another space's pushes."""
    for store in ("embedded", "postgres"):
        server = run.server(store)
        server.space("attacked", "honest")
        evil = Writer(server.client(), "attacked", run.rng)
        for first in range(0, 100):
            evil.push([evil.operation("t", f"r{first * 1000 + i}", {"n": 1}) for i in range(1000)])
        honest = push(server, None, "honest", run.rng)

        def batches():
            for number in range(2):
                yield evil.offer([evil.operation("t", kind="batch", where=["always"],
                                                 data={"n": number})])[0]

        beside(run, f"{store} batches", honest, batches())
        run.alive(server)


def team(run):
    """A server, a member with a synced row, and a writer that speaks by itself."""
    server = run.server("embedded")
    server.space("team")
    member = run.device("member").init(server, "team").notes()
    member.sql("INSERT INTO notes VALUES('a', 'b')")
    member.ferry("sync")
    return server, member, Writer(server.client(), "team", run.rng)


def short(run, member, command, codes):
    """A member's command ends with one of the codes, and fills no terminal."""
    done = member.ferry(command, expect=None)
    size = len(done.stdout) + len(done.stderr)
    run.figure(f"output of {command}", size, "bytes")
    run.check(size < 64 << 10, f"{command} prints less than 64 KiB")
    run.check(done.returncode in codes, f"{command} ends with {done.returncode}: {done.stderr[:200]}")


@attack
def many_tables(run):
    """A writer that makes 200,000 tables neither breaks a member's verify nor fills a member's terminal."""
    server, member, evil = team(run)
    made = 0
    for number in range(2_000):
        status, content = evil.offer([
            evil.operation(f"{number * 100 + i:06}" + "t" * 100, "r", {}) for i in range(100)])
        if status != 200:
            run.check(b"too_many_tables" in content, f"the refusal says why: {content[:200]!r}")
            break
        made += 100
    run.figure("tables made", made)
    run.check(0 < made <= 2_000, f"{made} tables were made")
    # The writer's own honest work, below the limit, still arrives.
    Writer(server.client(), "team", run.rng).insert("notes", "c", body="d")
    short(run, member, "sync", (0, 4))
    short(run, member, "verify", (0,))
    tables = server.client().send("GET", "/v1/spaces/team/tables")
    run.check(tables[0] == 200 and len(tables[1]) < 31 << 20, "the list of tables has its limit")
    run.alive(server)


@attack
def many_columns(run):
    """A writer that gives a table 100,000 columns is refused, and the members' work in the table goes on."""
    server, member, evil = team(run)
    made = 0
    for number in range(1000):
        columns = {f"{number * 100 + i:06}" + "c" * 100: 1 for i in range(100)}
        status, content = evil.offer([evil.operation("notes", f"r{number}", columns)])
        if status != 200:
            run.check(b"too_many_columns" in content, f"the refusal says why: {content[:200]!r}")
            break
        made += len(columns)
    run.figure("columns made", made)
    run.check(made <= 2_000, f"{made} columns were made")
    # Known columns go on, and so does the writer's own honest work.
    member.sql("UPDATE notes SET body = 'c'")
    short(run, member, "sync", (0, 4))
    run.check(member.sql("SELECT id FROM notes WHERE body = 'c'"), "the edit stays")
    Writer(server.client(), "team", run.rng).insert("notes", "d", body="e")
    short(run, member, "verify", (0, 4))
    run.alive(server)


@attack
def many_streams(run):
    """Event streams of one principal never take the connections of requests, probes or other principals' streams."""
    server = run.server("embedded", "--connections", "300", "--quota-streams", "50")
    server.space("team")
    evil, good = server.token("team", "reader", "evil"), server.token("team", "writer", "good")
    streams, answers = [], {}
    for _ in range(254):
        with contextlib.suppress(OSError):
            stream = socket.create_connection(("127.0.0.1", server.port), 20)
            stream.settimeout(20)
            stream.sendall(get("/v1/spaces/team/events", evil))
            status = status_of(stream.recv(4096))
            answers[status] = answers.get(status, 0) + 1
            streams.append(stream)
    run.figure("streams", " ".join(f"{s}×{n}" for s, n in answers.items()))
    run.check(answers.get(200, 0) <= 50, f"one principal has {answers.get(200, 0)} streams of 50")
    watcher = socket.create_connection(("127.0.0.1", server.port), 20)
    watcher.settimeout(20)
    watcher.sendall(get("/v1/spaces/team/events", good))
    run.check(status_of(watcher.recv(4096)) == 200, "another principal gets a stream")
    _, _, failed = run.neighbour("push beside streams", push(server, good, "team", run.rng), 1.5)
    run.check(failed == 0, f"{failed} pushes failed")
    run.check(server.client().send("GET", "/healthz")[0] == 200, "/healthz answers")
    for stream in streams + [watcher]:
        stream.close()
    run.alive(server)
