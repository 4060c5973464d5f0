"""Names and values from outside are bytes: they are never SQL, never an error of the server, and come back unchanged."""

import gzip
import json
import subprocess

from harness import Failed, Writer, attack, changes, exchange, status_of, wait_until
from urllib.parse import quote

PREPENDED = ["\u0600", "\u0601", "\u06dd", "\u070f", "\U000110bd"]
COMBINING = ["\u0300", "\u0301", "\u0338", "\u20e3", "\ufe0f", "\u200d", "\u0e33", "\U0001f3fd"]
BIDI = ["\u202e", "\u2066", "\u200f", "\u061c", "\ufeff"]
QUOTES = ["'", '"', "`", "]", "\\", "$$", ";", "--", "/*", "$1", "?1", "%s", "\\'"]
WORDS = ["a", "SKU", "S\u212aU", "\u00e9", "e\u0301", "select", "ferry_x", "rowid", "-h", " ", "..", "/",
         "DROP TABLE canary", "x" * 40, "\u1112\u1161\u11ab", "\U0001f468\u200d\U0001f469"]
SQL = [
    "{q}; DROP TABLE canary; --", "{q}); UPDATE canary SET n = 0; --",
    "{q}; ATTACH 'evil.db' AS e; --", "{q} OR 1=1 --",
    "{q}; COPY canary TO PROGRAM 'id'; --", "{q}||(SELECT n FROM canary)||{q}",
]


def hostile(rng, size=128, controls=False):
    """A text of at most this many bytes with marks, quotes and statements."""
    parts = []
    for _ in range(rng.randrange(1, 7)):
        kind = rng.randrange(6)
        quote_mark = rng.choice(['"', "'"])
        if kind == 0:
            parts.append(rng.choice(PREPENDED) + quote_mark)
        elif kind == 1:
            parts.append(quote_mark + rng.choice(COMBINING))
        elif kind == 2:
            parts.append(rng.choice(SQL).format(q=rng.choice(PREPENDED + [""]) + quote_mark))
        elif kind == 3:
            parts.append(rng.choice(BIDI))
        elif kind == 4:
            parts.append(rng.choice(QUOTES))
        else:
            parts.append(rng.choice(WORDS))
        if controls and rng.random() < 0.15:
            parts.append(rng.choice(["\0", "\x01", "\x1b[2J", "\r\n", "\x7f", "\x85"]))
    text = "".join(parts)
    while len(text.encode()) > size:
        text = text[:-1]
    return text or "a"


def table_name(rng):
    while True:
        name = hostile(rng, 60)
        if not name.lower().startswith(("ferry_", "sqlite_")):
            return name


def value(rng):
    return rng.choice([
        lambda: hostile(rng, 400, controls=True), lambda: rng.randrange(-2**53, 2**53),
        lambda: {"int": str(rng.randrange(-2**63, 2**63))}, lambda: None,
        lambda: {"real": rng.choice(["inf", "-inf", "-0.0", "1e300"])}, lambda: "",
        lambda: {"blob": "AAE="}, lambda: rng.random()])()


def malformed(rng, text):
    """Bytes that are no JSON in UTF-8, made from a packet's text."""
    data = text.encode()
    return rng.choice([
        lambda: data.replace(b"insert", b'\\ud800'), lambda: data.replace(b'"kind"', b'"\xc0\xaf"'),
        lambda: data.replace(b'"data"', b'"\xed\xa0\x80"'), lambda: data[: rng.randrange(len(data))],
        lambda: b"\xef\xbb\xbf" + data, lambda: data.replace(b":", b"::", 1), lambda: data + data,
        lambda: data.replace(b"{", b'{"device":"x",', 1), lambda: data.decode().encode("utf-16"),
        lambda: gzip.compress(data)])()


@attack
def entries(run):
    """No name, value, token, header, path or parameter is answered with 500, ends the server or changes another space."""
    for store in ("embedded", "postgres"):
        server = run.server(store)
        server.space("victim", "attacked")
        admin = server.token("*", "admin")
        honest = Writer(server.client(admin), "victim", run.rng)
        honest.fill("canary", 50)
        before = changes(server.client(admin), "victim")
        writer = server.token("attacked", "admin")
        counts = Counter()
        client = server.client(writer)
        for _ in range(500):
            packets(run, client, counts)
        for _ in range(120):
            schemas(run, client, counts)
        for _ in range(400):
            paths(run, server, client, writer, counts)
        for status, count in sorted(counts.seen.items()):
            run.figure(f"{store} {status}", count)
        run.check(not counts.failures, f"{store}: {counts.failures[:2]}")
        run.alive(server)
        run.check(changes(server.client(admin), "victim") == before,
                  f"{store}: another space is unchanged")
        run.check(counts.seen.get(200, 0) > 100, f"{store}: most honest packets are applied")


class Counter:
    def __init__(self):
        self.seen, self.failures = {}, []

    def add(self, status, request):
        self.seen[status] = self.seen.get(status, 0) + 1
        if status is None or status in (500, 502):
            self.failures.append(f"{status} for {request[:200]!r}")


def packets(run, client, counts):
    rng = run.rng
    writer = Writer(client, "attacked", rng)
    table = table_name(rng)
    data = {hostile(rng): value(rng) for _ in range(rng.randrange(1, 5))}
    record = hostile(rng, 200, controls=rng.random() < 0.3)
    operation = writer.operation(table, record, data)
    if rng.random() < 0.2:
        operation = writer.operation(
            table, kind="batch", data={hostile(rng): value(rng)},
            where=rng.choice([["=", hostile(rng), value(rng)], ["always"],
                              ["in", {"key": True}, hostile(rng), record]]))
    packet = writer.packet([operation])
    body = json.dumps(packet, ensure_ascii=rng.random() < 0.5)
    data = malformed(rng, body) if rng.random() < 0.2 else body.encode(errors="surrogatepass")
    status, _ = client.send("POST", "/v1/spaces/attacked/packets", data)
    counts.add(status, data)


def schema(rng):
    tables = {}
    for _ in range(rng.randrange(1, 4)):
        columns = [{"name": hostile(rng, 60), "type": rng.choice(["text", "integer", "real", "blob"]),
                    **({"default": value(rng)} if rng.random() < 0.7 else {})}
                   for _ in range(rng.randrange(1, 4))]
        tables[table_name(rng)] = {
            "columns": {c["name"]: rng.choice(["counter", "last-writer-wins", "max"])
                        for c in columns if rng.random() < 0.2},
            "definition": {"key": hostile(rng, 40), "columns": columns}}
    return {"tables": tables}


def schemas(run, client, counts):
    body = json.dumps(schema(run.rng), ensure_ascii=run.rng.random() < 0.5)
    status, _ = client.send("PUT", "/v1/spaces/attacked/schema?losses=accept", body.encode())
    counts.add(status, body.encode())


def paths(run, server, client, token, counts):
    """Paths, parameters, tokens and headers: percent-encoded or raw, over a socket of its own."""
    rng = run.rng
    odd = hostile(rng, 200, controls=True)
    encoded = quote(odd, safe="") if rng.random() < 0.7 else quote(odd, safe="/?&=;'\"")
    target = rng.choice([
        f"/v1/spaces/{encoded}", f"/v1/spaces/{encoded}/changes", f"/{encoded}",
        f"/v1/spaces/attacked/changes?cursor={encoded}", f"/v1/spaces?limit={encoded}",
        f"/v1/spaces/attacked/changes?limit={encoded}&device={encoded}&former={encoded}",
        f"/v1/spaces/attacked/missions/{encoded}", f"/v1/spaces/attacked/bundles/{encoded}",
        f"/v1/spaces/attacked/history?table={encoded}&record={encoded}",
        f"/v1/spaces/attacked/devices/{encoded}", f"/v1/blobs/{encoded}", f"/v1/tokens/{encoded}",
        f"/v1/spaces/attacked/tables?after={encoded}", f"/console/{encoded}",
        f"/v1/audit?space={encoded}&since={encoded}&after={encoded}", "/v1/spaces/%c0%ae%c0%ae/x",
        "/v1/spaces/attacked/missions/..%2f..%2fetc%2fpasswd"])
    header = odd.encode().replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")
    name = rng.choice([b"Range", b"If-None-Match", b"traceparent", b"Accept", b"Ferry-Protocol",
                       b"Forwarded", b"Accept-Encoding", b"Origin", b"Content-Type",
                       b"Last-Event-ID", b"Upload-Offset", b"tracestate", b"If-Range"])
    secret = token.encode() if rng.random() < 0.8 else header
    method = rng.choice([b"GET", b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"PUT", b"POST"])
    request = (method + b" " + target.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0"
               b"\r\nConnection: close\r\nAuthorization: Bearer " + secret + b"\r\n" + name + b": "
               + header + b"\r\n\r\n")
    answer = exchange(server.port, request, timeout=20)
    # A connection that is closed without an answer is an answer to bytes that are no request.
    counts.add(status_of(answer) or "closed", request)
    if not server.is_alive:
        raise Failed(f"the server died at {request[:300]!r}")


@attack
def round_trip(run):
    """Names and values by chance come back byte for byte on another device."""
    for store in ("embedded", "postgres"):
        server = run.server(store)
        server.space("names")
        one = run.device("one").init(server, "names")
        two = run.device("two").init(server, "names")
        rows = [(f"k{n}" + hostile(run.rng, 200).replace("\0", ""),
                 hostile(run.rng, 400, controls=True)) for n in range(150)]
        table, column = table_name(run.rng), hostile(run.rng, 60)
        while column.lower() == "id":
            column = hostile(run.rng, 60)
        table = "t" + table if table.startswith("-") else table
        listed = json.dumps([{"id": key, column: text} for key, text in rows]).encode()
        with open(f"{one.folder}/rows.json", "wb") as file:
            file.write(listed)
        one.ferry("import", table, f"{one.folder}/rows.json", expect=(0,))
        one.ferry("sync")
        two.ferry("sync", expect=(0,))
        two.ferry("track", "--create", table)
        two.ferry("sync")
        name = '"' + table.replace('"', '""') + '"'
        cell = '"' + column.replace('"', '""') + '"'
        shown = two.sql(f"SELECT hex(id) AS i, hex({cell}) AS v FROM {name}")
        got = {(row["i"], row["v"]) for row in shown}
        sent = {(k.encode().hex().upper(), v.encode().hex().upper()) for k, v in rows}
        run.figure(f"{store} rows", len(got))
        run.check(got == sent, f"{store}: {len(sent - got)} of {len(sent)} rows came back changed")
        two.ferry("verify")
        run.alive(server)


@attack
def mirrors(run):
    """No schema and no value that a mirror follows runs as SQL in PostgreSQL or in the mirror's own file."""
    server = run.server("postgres")
    server.space("crm")
    cluster = run.cluster()
    company = cluster.database()
    cluster.query(company, "CREATE SCHEMA app; CREATE TABLE canary(n integer);"
                           "INSERT INTO canary VALUES (7); CREATE TABLE app.canary(n integer);"
                           "INSERT INTO app.canary VALUES (7)")
    folder = run.folder("mirrors")
    client = server.client()
    client.json("PUT", "/v1/spaces/crm/schema",
                {"tables": {"tasks": {"definition": {"key": "id", "columns": [
                    {"name": "title", "type": "text"}]}}}})
    place = ["--mirrors", folder]
    made = subprocess.run(
        [run.ferryd, "mirror", "add", "crm", "--server", server.url, "--space", "crm",
         "--database", company, "--schema", "app", *place], capture_output=True, text=True)
    if made.returncode:
        raise Failed(f"mirror add: {made.stderr[:400]}")
    writer = Writer(client, "crm", run.rng)
    with open(f"{folder}/log", "wb") as log:
        mirror = subprocess.Popen([run.ferryd, "mirror", "run", "crm", *place],
                                  stdout=log, stderr=log, cwd=folder)
    try:
        accepted = feed(run, client, writer)
        client.json("PUT", "/v1/spaces/crm/schema?losses=accept", {"tables": {
            "tasks": {"definition": {"key": "id", "columns": [{"name": "title", "type": "text"}]}},
            "last": {"definition": {"key": "id", "columns": []}}}})
        writer.insert("tasks", "end", title="end")

        def arrived():
            if mirror.poll() is not None:
                raise Failed("the mirror ended")
            return cluster.query(company, "SELECT 1 FROM app.tasks WHERE id = 'end'")

        wait_until(arrived, "the last row in the mirror's table", server, 60)
    finally:
        mirror.terminate()
        try:
            mirror.wait(30)
        except subprocess.TimeoutExpired:
            mirror.kill()
            mirror.wait()
    run.figure("schemas accepted", accepted)
    canaries = cluster.query(company, "SELECT n FROM canary UNION ALL SELECT n FROM app.canary")
    run.check(canaries == [["7"], ["7"]], f"the canary tables are untouched: {canaries}")
    # Spaces' rows reach tables of the mirror's schema alone.
    strange = cluster.query(company, """
        SELECT nspname, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
        WHERE relkind = 'r' AND nspname NOT IN ('app', 'pg_catalog', 'information_schema')
          AND nspname NOT LIKE 'ferry%' AND relname <> 'canary' AND relname NOT LIKE 'ferry%'""")
    run.check(not strange, f"no table is made outside of the mirror's schema: {strange[:3]}")
    run.alive(server)


def feed(run, client, writer):
    """Schemas and rows by chance, and those that were ever a hole. Returns how many were accepted."""
    marks = [mark + q for mark in PREPENDED for q in ('"', "'")]
    accepted = 0
    for number in range(60):
        document = schema(run.rng)
        if number < len(marks):
            mark = marks[number]
            for text in (f"{mark}; DROP TABLE canary; --", f"{mark}); UPDATE canary SET n=0; --"):
                document["tables"][f"t{number}{text}"[:40]] = {"definition": {
                    "key": "id", "columns": [{"name": f"c{text}", "type": "text",
                                              "default": f"x{text}"}]}}
        document["tables"]["tasks"] = {"definition": {"key": "id", "columns": [
            {"name": "title", "type": "text"}]}}
        status, _ = client.send("PUT", "/v1/spaces/crm/schema?losses=accept", document)
        accepted += status == 200
        run.check(status != 500, "no schema is answered with 500")
        for table, rules in document["tables"].items():
            columns = [c["name"] for c in rules["definition"]["columns"]]
            writer.offer([writer.operation(
                table, hostile(run.rng, 100), {c: hostile(run.rng, 200, True) for c in columns})])
    return accepted
