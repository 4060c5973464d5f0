"""A device loses no pending work, ends, and stays small, whatever a server, an S3 store or a key server answers."""

import base64
import contextlib
import gzip
import hashlib
import http.server
import json
import os
import socket
import socketserver
import threading
import time

from harness import MIB, Failed, attack, changes, exchange, status_of

EPOCH = "5f3c9a1be2d40718"
HUGE = 300 * MIB


class Evil(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """A server whose answers a rule makes: it gets the request and may use its socket."""

    daemon_threads, allow_reuse_address, request_queue_size = True, True, 128

    def __init__(self, rule):
        self.rule, self.requests = rule, []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def act(handler):
                length = int(handler.headers.get("Content-Length") or 0)
                handler.content = handler.rfile.read(length)
                if handler.headers.get("Content-Encoding") == "gzip":
                    handler.content = gzip.decompress(handler.content)
                self.requests.append((handler.command, handler.path, dict(handler.headers)))
                with contextlib.suppress(OSError):
                    answer = self.rule(handler)
                    if answer is not None:
                        reply(handler, *answer)

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = act

            def log_message(*_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass


def reply(handler, status, content, kind="application/json", headers=()):
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(content)))
    for name, text in headers:
        handler.send_header(name, text)
    handler.end_headers()
    handler.wfile.write(content)


def endless(handler, kind, block):
    """Sends until the device ends the connection, or 300 MiB are sent."""
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.send_header("Connection", "close")
    handler.end_headers()
    sent = 0
    while sent < HUGE:
        handler.wfile.write(block)
        sent += len(block)


def page(**changed):
    return {"epoch": EPOCH, "head": "0", "cursor": f"{EPOCH}.0.0", "more": False, "applied": None,
            "time": int(time.time() * 1000), "count": 0, "changes": [], **changed}


def space(name):
    return {"space": name, "epoch": EPOCH, "head": "0", "role": "writer",
            "time": int(time.time() * 1000)}


def receipt(handler, **changed):
    packet = json.loads(handler.content)
    operations = packet["operations"]
    return {"tail": operations[-1]["id"], "status": "applied", "first": "1",
            "last": str(len(operations)), "historyHashBefore": "0" * 16, "historyHash": "1" * 16,
            "outcomes": ["applied"] * len(operations), "epoch": EPOCH, "head": str(len(operations)),
            "time": int(time.time() * 1000), **changed}


def change(**changed):
    return {"sequence": "1", "table": "notes", "record": "b", "writes": [
        {"sequence": "1", "time": "0199c82cc0010000",
         "device": "0199c368-0c00-7000-800b-0b0000000002", "kind": "insert",
         "data": {"body": "x"}}], **changed}


def bomb():
    return gzip.compress(b'{"epoch":"' + b"0" * HUGE)


BOMB = []
# Answers to a pull.
PAGES = {
    "no JSON": lambda h: (200, b"<html>"), "an empty answer": lambda h: (200, b""),
    "changes as an object": lambda h: (200, page(changes={})),
    "changes as a text": lambda h: (200, page(changes="none")),
    "no changes": lambda h: (200, {k: v for k, v in page().items() if k != "changes"}),
    "a count that lies": lambda h: (200, page(count=5)),
    "a count below zero": lambda h: (200, page(count=-1)),
    "a head of 2^63": lambda h: (200, page(head=str(2**63 - 1))),
    "a time of -2^63": lambda h: (200, page(time=-2**63)),
    "a time far ahead": lambda h: (200, page(time=2**48 - 1)),
    "more without progress": lambda h: (200, page(more=True, head="9")),
    "a cursor of 1 MiB": lambda h: (200, page(cursor="x" * MIB)),
    "a list of 300 pages that then ends in nothing": lambda h: (200, page(
        more=True, head=str(2**61), count=1, cursor=(
            f"{EPOCH}.0.{len(h.server.requests)}.{2**61}.0199c82c-c384-7000-800a-000000000384."
            "38c96ad21f07b5e4"), changes=[change(sequence=str(len(h.server.requests)))]))
    if len(h.server.requests) < 300 else (200, b""),
    "a list that always advances": lambda h: (200, page(
        more=True, head=str(2**61), count=1, cursor=f"{EPOCH}.0.{len(h.server.requests)}",
        changes=[change(sequence=str(len(h.server.requests)))])),
    "a list whose head runs ahead": lambda h: (200, page(
        more=True, head=str(len(h.server.requests) + 1), cursor=f"{EPOCH}.0.{len(h.server.requests)}")),
    "deep JSON": lambda h: (200, b"[" * 5_000_000), "a body without end": lambda h: endless(
        h, "application/json", b'{"a":"' + b"x" * MIB),
    "white space without end": lambda h: endless(h, "application/json", b" " * MIB),
    "a bomb": lambda h: (200, BOMB[0], "application/json", [("Content-Encoding", "gzip")]),
    "a head without end": lambda h: [h.wfile.write(b"HTTP/1.1 200 OK\r\n")] + [
        h.wfile.write(b"X-%d: %s\r\n" % (n, b"y" * 1000)) for n in range(100_000)] and None,
    "a web page": lambda h: (200, b"<html>hello</html>", "text/html"),
    "another type": lambda h: (200, page(), "image/png"),
    "a redirect to another host": lambda h: (307, b"", "text/plain", [
        ("Location", "http://169.254.169.254/latest/meta-data")]),
    "a redirect to a file": lambda h: (302, b"", "text/plain", [("Location", "file:///etc/passwd")]),
    "redirects without end": lambda h: (302, b"", "text/plain", [("Location", h.path + "x")]),
    "an error with a lie": lambda h: (409, {
        "type": "urn:ferry:problem:history_lost", "title": "\x1b[2Jx" * 1000, "status": 409,
        "detail": "\x1b]0;x\x07" * 1000, "code": "history_lost", "action": "resynchronise"}),
    "an unknown code": lambda h: (418, {"code": "tea", "action": "explode", "status": 99999}),
    "a long pause": lambda h: (503, b"", "text/plain", [("Retry-After", "99999999999")]),
    "a status of 999": lambda h: (999, b""), "a closed connection": lambda h: h.connection.shutdown(socket.SHUT_RDWR),
    "every record deleted": lambda h: (200, page(head="1", count=1, cursor=f"{EPOCH}.1.1", changes=[
        change(record="a", writes=[{"sequence": "1", "time": "ffffffffffff0000", "kind": "delete",
                                    "device": "0199c368-0c00-7000-800b-0b0000000002"}])])),
    "names of Ferry's tables": lambda h: (200, page(head="1", count=1, cursor=f"{EPOCH}.1.1",
        changes=[change(table="ferry_operations", record="1")])),
    "names with SQL": lambda h: (200, page(head="1", count=1, cursor=f"{EPOCH}.1.1", changes=[
        change(table='notes\u0600"; DROP TABLE notes; --')])),
}
# Answers to a push, after pages that are right.
RECEIPTS = {
    "another tail": lambda h: (200, receipt(h, tail="0199c82c-c384-7000-800a-000000000384")),
    "too few outcomes": lambda h: (200, receipt(h, outcomes=[])),
    "too many outcomes": lambda h: (200, receipt(h, outcomes=["applied"] * 50)),
    "unknown outcomes": lambda h: (200, receipt(h, outcomes=["exploded"])),
    "no status": lambda h: (200, {k: v for k, v in receipt(h).items() if k != "status"}),
    "an unknown status": lambda h: (200, receipt(h, status="perhaps")),
    "places that are wrong": lambda h: (200, receipt(h, first="9", last="1")),
    "places of 2^63": lambda h: (200, receipt(h, first=str(2**62), last=str(2**63 - 1))),
    "a page": lambda h: (200, page()), "nothing": lambda h: (200, b""),
    "buffered for ever": lambda h: (202, receipt(h, status="buffered", outcomes=[])),
    "201": lambda h: (201, receipt(h)), "204": lambda h: (204, b""),
    "applied, and denied by the next page": lambda h: (200, receipt(h)),
    "released by chance": lambda h: (200, receipt(h, released=[{"tail": "x"}] * 1000)),
    "forked for ever": lambda h: (409, {"code": "device_forked", "status": 409, "title": "x",
                                       "action": "resynchronise", "detail": "x"}),
    "cursor lost for ever": lambda h: (409, {"code": "history_lost", "status": 409, "title": "x",
                                            "action": "resynchronise", "detail": "x"}),
    "refused without names": lambda h: (422, {"code": "operation_refused", "status": 422,
                                             "title": "x", "action": "fix", "detail": "x"}),
    "a redirect of the body": lambda h: (307, b"", "text/plain", [
        ("Location", f"http://localhost:{h.server.server_address[1]}/stolen")]),
}


def hostile(run, name, rule, server, counts):
    """One device, one evil server, then the honest one. The pending row has to survive."""
    space_name = f"s{counts['n']}"
    counts["n"] += 1
    evil = Evil(rule(space_name))
    try:
        device = run.device("d")
        device.ferry("init", "--offline", "--server", evil.url, "--space", space_name)
        device.notes()
        device.sql("INSERT INTO notes VALUES('a', 'kept')")
        began = time.monotonic()
        done = device.ferry("sync", expect=None, timeout=150, peak=True)
        counts["largest"] = max(counts["largest"], done.peak)
        run.check(done.peak < 256 * MIB, f"{name}: sync had {done.peak >> 20} MiB")
        counts["slowest"] = max(counts["slowest"], (time.monotonic() - began, name))
        run.check(done.returncode in (0, 1, 3, 4), f"{name}: sync ended with {done.returncode}")
        run.check("\x1b" not in done.stdout + done.stderr, f"{name}: an escape reached the terminal")
        run.check(len(done.stdout) + len(done.stderr) < 64 << 10, f"{name}: a message is too long")
        run.check(len(evil.requests) < 1_100, f"{name}: {len(evil.requests)} requests in one sync")
        run.check(not any("/stolen" in path for _, path, _ in evil.requests),
                  f"{name}: the body went to another origin")
        size = sum(os.path.getsize(f"{device.folder}/{f}") for f in os.listdir(device.folder))
        run.check(size < 64 * MIB, f"{name}: the replica has {size >> 20} MiB")
    finally:
        evil.shutdown()
        evil.server_close()
    with counts["lock"]:
        server.space(space_name)
    device.ferry("init", "--server", server.url, "--space", space_name, expect=None)
    final = device.ferry("sync", expect=None)
    if final.returncode:
        final = device.ferry("sync", expect=None)
    stored = changes(server.client(), space_name)
    rows = device.ferry("sql", "SELECT body FROM notes WHERE id = 'a'", "--json", expect=None)
    held = '"a"' in device.ferry("quarantine", "list", "--json", expect=None).stdout
    run.check(stored.get(("notes", "a")) == {"body": "kept"} or held or "deleted" in name,
              f"{name}: the row does not arrive at the honest server: {final.returncode} "
              f"{final.stderr[:200]!r}, the device has {rows.stdout[:100]!r}")


def in_turn(run, cases, make_rule):
    server = run.server("embedded")
    counts = {"n": 0, "slowest": (0.0, ""), "largest": 0, "lock": threading.Lock()}
    names, lock = list(cases), threading.Lock()

    def work():
        while True:
            with lock:
                if not names:
                    return
                name = names.pop()
            try:
                hostile(run, name, make_rule(cases[name]), server, counts)
            except Failed as failure:
                run.check(False, f"{name}: {failure}")
            except Exception as error:
                run.check(False, f"{name}: the attack itself failed: {error!r}")

    workers = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(400)
    run.figure("cases", len(cases))
    run.figure("longest sync", counts["slowest"][0], f"s ({counts['slowest'][1]})")
    run.figure("largest sync", counts["largest"] / MIB, "MiB")
    run.alive(server)


@attack
def pages(run):
    """Pages that lie, never end, explode or redirect end a sync with a code, and the pending work arrives later."""
    BOMB[:] = [bomb()]

    def make(rule):
        def rules(name):
            def answer(handler):
                if "/changes" in handler.path or "/records" in handler.path:
                    return rule(handler)
                if "/packets" in handler.path:
                    return 503, b""
                return 200, space(name)
            return answer
        return rules

    in_turn(run, PAGES, make)


@attack
def receipts(run):
    """Receipts that lie confirm nothing for good: the work that they hide arrives at the honest server."""
    def make(rule):
        def rules(name):
            def answer(handler):
                if "/packets" in handler.path:
                    return rule(handler)
                if "/changes" in handler.path:
                    return 200, page()
                return 200, space(name)
            return answer
        return rules

    in_turn(run, RECEIPTS, make)


@attack
def key_servers(run):
    """A hostile OpenID Connect key server leaves the server alive and small, and makes no token valid."""
    import jwt
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    numbers = key.public_key().public_numbers()

    def text(number):
        data = number.to_bytes((number.bit_length() + 7) // 8, "big")
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    genuine = {"kty": "RSA", "kid": "k", "n": text(numbers.n), "e": text(numbers.e)}
    bombs = gzip.compress(b'{"keys":[' + b" " * HUGE)
    cases = {
        "endless": lambda h: endless(h, "application/json", b'{"keys":[' + b" " * MIB),
        "bomb": lambda h: (200, bombs, "application/json", [("Content-Encoding", "gzip")]),
        "redirect": lambda h: (302, b"", "text/plain", [("Location", "http://169.254.169.254/k")]),
        "loop": lambda h: (302, b"", "text/plain", [("Location", h.path + "x")]),
        "deep": lambda h: (200, b"[" * MIB), "many": lambda h: (200, {"keys": [
            {**genuine, "kid": f"k{n}"} for n in range(100_000)]}),
        "secret": lambda h: (200, {"keys": [{"kty": "oct", "kid": "k", "k": text(numbers.n)}]}),
        "exponent": lambda h: (200, {"keys": [{**genuine, "e": text(1)}]}),
        "wide": lambda h: (200, {"keys": [{**genuine, "n": "_" * 400_000}]}),
        "small": lambda h: (200, {"keys": [{**genuine, "n": text(15)}]}),
        "other types": lambda h: (200, {"keys": [7, None, [], {"kty": 7}, {"kid": {}}]}),
        "web page": lambda h: (200, b"<html>", "text/html"),
        "wrong lengths": lambda h: (200, {"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k",
                                                    "x": text(7)}]}),
    }
    for name, rule in cases.items():
        evil = Evil(rule)
        server = run.server("embedded", "--jwt-issuer", evil.url, "--jwt-audience", "ferry",
                            "--jwks", f"{evil.url}/keys")
        server.space("team")
        claims = {"iss": evil.url, "aud": "ferry", "sub": "x", "exp": int(time.time()) + 600,
                  "ferry": {"team": "admin"}}
        other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        forged = [jwt.encode(claims, other, "RS256", headers={"kid": "k"}),
                  jwt.encode(claims, text(numbers.n), "HS256", headers={"kid": "k"}),
                  jwt.encode(claims, "", "HS256", headers={"kid": "k"}),
                  jwt.encode(claims, None, "none", headers={"kid": "k"})]
        for token in forged:
            status, _ = server.client(token).send("GET", "/v1/spaces/team")
            run.check(status in (401, 403, 429, 503), f"{name}: a forged token got {status}")
        if run.alive(server, name):
            run.check(server.peak() < 256 * MIB, f"{name}: {server.peak() >> 20} MiB")
        server.stop()
        evil.shutdown()
        evil.server_close()
    run.figure("cases", len(cases))


class HostileStore:
    """An S3 store that keeps objects, and answers their readers by its mode."""

    def __init__(self):
        self.mode, self.objects = None, {}

    def __call__(self, handler):
        place = handler.path.split("?")[0]
        if handler.command == "PUT":
            self.objects[place] = handler.content
            return 200, b"", "application/xml", [("ETag", '"x"')]
        if "list-type" in handler.path:
            return 200, (b'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>'
                         b"</ListBucketResult>"), "application/xml"
        content = self.objects.get(place)
        if content is None or handler.command not in ("GET", "HEAD"):
            return 404 if content is None else 200, b"", "application/xml"
        if handler.command == "HEAD":
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(content)))
            handler.send_header("ETag", '"x"')
            handler.end_headers()
            return None
        return self.read(handler, content)

    def read(self, handler, content):
        kind = "application/octet-stream"
        if self.mode == "endless":
            return endless(handler, kind, b"x" * MIB)
        if self.mode == "redirect":
            return 307, b"", "text/plain", [("Location", "http://169.254.169.254/x")]
        if self.mode == "xml":
            return 200, b"<!DOCTYPE a [<!ENTITY b 'x'>]>" + b"<a>" * 500_000, "application/xml"
        if self.mode == "bomb":
            return 200, BOMB[0], kind, [("Content-Encoding", "gzip")]
        if self.mode == "status":
            return 999, b""
        if self.mode == "head":
            for number in range(50_000):
                handler.wfile.write(b"X-%d: %s\r\n" % (number, b"y" * 1000))
            return None
        if self.mode == "stalled":
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content[:1000])
            return handler.connection.recv(1) and None
        content = {"short": content[:3], "other bytes": content[:-1] + b"?"}.get(self.mode, content)
        return 200, content, kind


@attack
def object_stores(run):
    """A hostile S3 store leaves the server alive and small; content that is not the named one is never delivered."""
    BOMB[:] = BOMB or [bomb()]
    store = HostileStore()
    evil = Evil(store)
    server = run.server(
        "embedded", "--content", "s3://bucket/prefix", "--content-endpoint", evil.url,
        environment={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
                     "AWS_REGION": "eu-central-1"})
    server.space("team")
    client, content = server.client(), run.rng.randbytes(MIB)
    digest = hashlib.sha256(content).hexdigest()
    status, answer = client.send("PUT", f"/v1/spaces/team/blobs/{digest}", content,
                                 {"Content-Type": "application/octet-stream"})
    run.check(status == 201, f"content is stored: {status} {answer[:200]!r}")
    status, answer = client.send("PUT", "/v1/spaces/team/missions/m", {"items": [
        {"path": "f", "sha256": digest, "size": len(content)}]})
    run.check(status == 200, f"a mission is published: {status} {answer[:200]!r}")
    run.check(client.send("GET", f"/v1/blobs/{digest}") == (200, content), "its content is delivered")
    base, delivered = server.peak(), 0
    modes = ("endless", "short", "other bytes", "bomb", "redirect", "xml", "status", "head", "stalled")
    for mode in modes:
        store.mode = mode
        answer = exchange(server.port, f"GET /v1/blobs/{digest} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                       "Connection: close\r\n\r\n".encode(), timeout=5, read=4 * MIB)
        run.check(status_of(answer) in (None, 200, 404, 500, 502, 503), f"{mode}: {status_of(answer)}")
        body = answer.partition(b"\r\n\r\n")[2]
        whole = status_of(answer) == 200 and len(body) >= len(content)
        delivered += whole
        run.check(not whole or body == content, f"{mode}: other content is delivered")
        if not run.alive(server, mode):
            break
    if server.is_alive:
        store.mode = None
        run.check(client.send("GET", f"/v1/blobs/{digest}") == (200, content),
                  "the content is delivered again when the store is honest")
        run.figure("growth", (server.peak() - base) / MIB, "MiB")
        run.check(server.peak() - base < 256 * MIB, "answers of the store take little memory")
        run.check(client.send("GET", "/healthz")[0] == 200, "/healthz answers")
    run.figure("modes", len(modes))
    run.figure("delivered whole", delivered)
    evil.shutdown()
    evil.server_close()
