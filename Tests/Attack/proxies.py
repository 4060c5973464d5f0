"""Proxies that lie, cut, trickle or smuggle give nobody another's rights, and take no connections from others."""

import contextlib
import gzip
import json
import os
import socket
import subprocess
import threading
import time
import zlib

from harness import Writer, attack, changes, exchange, free_port, status_of, wait_until


@attack
def forwarded(run):
    """Forged Forwarded and X-Forwarded headers never open a server, and are never an address that is trusted."""
    server = run.server("embedded", "--auth-failures", "20")
    server.space("team")
    lies = ["Forwarded: for=127.0.0.1", "X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1",
            "X-Forwarded-Host: localhost", "Via: 1.1 evil", "Forwarded: for=\"[::1]\";host=localhost",
            "X-Forwarded-For: 1.2.3.4, 127.0.0.1", "Forwarded: for=_hidden, for=unknown",
            "Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Host: evil.example"]
    for lie in lies:
        host = "" if lie.startswith("Host") else "Host: 127.0.0.1\r\n"
        answer = exchange(server.port, f"GET /v1/spaces/team HTTP/1.1\r\n{host}{lie}\r\n"
                                       "Connection: close\r\n\r\n".encode())
        run.check(status_of(answer) in (400, 403), f"open server, {lie}: {status_of(answer)}")
    token = server.token("team", "writer")
    for lie in lies[:8]:
        answer = exchange(server.port, f"GET /v1/spaces/team HTTP/1.1\r\nHost: 127.0.0.1\r\n{lie}\r\n"
                                       "Connection: close\r\n\r\n".encode())
        run.check(status_of(answer) == 401, f"without a token, {lie}: {status_of(answer)}")
    # Each guess claims another address; the limit counts the connection's.
    statuses = [status_of(exchange(server.port, (
        f"GET /v1/spaces/team HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: 198.51.100.{n % 250}"
        f"\r\nForwarded: for=198.51.100.{n % 250}\r\nConnection: close\r\n"
        f"Authorization: Bearer ferry_{n:043}\r\n\r\n").encode())) for n in range(120)]
    run.figure("guesses answered with 429", statuses.count(429), f"of {len(statuses)}")
    run.check(statuses.count(429) >= 60, "guesses behind forged addresses are limited")
    status, _ = server.client(token).send("GET", "/v1/spaces/team")
    run.check(status == 200, f"a valid token beside the guesses gets {status}")
    run.alive(server)


@attack
def declared_proxy(run):
    """Behind a declared proxy, limits count the client's address: one client takes no place of another."""
    server = run.server("embedded", "--trusted-proxy", "127.0.0.1", "--connections-per-address", "40",
                        starts=False)
    # Behind a proxy, no server starts without a token.
    server.space("team")
    token = server.token("team", "reader")
    server.start()

    def ask(address, path="/v1/spaces/team/events"):
        connection = socket.create_connection(("127.0.0.1", server.port), 20)
        connection.settimeout(20)
        connection.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                            f"X-Forwarded-For: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
                            ).encode())
        try:
            return status_of(connection.recv(4096)), connection
        except OSError:
            return None, connection

    held = [ask("198.51.100.7") for _ in range(120)]
    taken = sum(1 for status, _ in held if status == 200)
    run.figure("streams of one address, of 120", taken)
    run.check(taken <= 40, f"one client's address has {taken} connections of 40")
    others = [ask(f"203.0.113.{n}") for n in range(200)]
    served = sum(1 for status, _ in others if status == 200)
    run.figure("other addresses served, of 200", served)
    run.check(served == 200, f"{served} of 200 other clients are served")
    run.check(server.client().send("GET", "/healthz")[0] == 200, "/healthz answers")
    for _, connection in held + others:
        connection.close()
    run.alive(server)


@attack
def half_sent(run):
    """Connections with half a request take no connection from syncs and probes: the oldest gives way."""
    server = run.server("embedded", "--connections", "200")
    server.space("team")
    writer = Writer(server.client(), "team", run.rng)
    writer.insert("t", "before", n=1)
    writer.client.close()
    held, served, tried = [], 0, 0
    parts = [b"", b"GET /v1/spaces/team HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", b"POST",
             b"POST /v1/spaces/team/packets HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
             b"application/json\r\nContent-Length: 100\r\n\r\n{"]
    for number in range(600):
        with contextlib.suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", server.port), 5)
            connection.sendall(parts[number % len(parts)])
            held.append(connection)
    slowest = 0.0
    for number in range(20):
        for path in ("/healthz", "/v1/spaces/team"):
            tried += 1
            began = time.monotonic()
            answer = exchange(server.port, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                           "Connection: close\r\n\r\n".encode(), timeout=20)
            slowest = max(slowest, time.monotonic() - began)
            served += status_of(answer) == 200
        for connection in held[number * 20:number * 20 + 20]:
            with contextlib.suppress(OSError):
                connection.send(b"x")
        if served == 0 and number == 2:
            break
    run.figure("half-sent connections", len(held))
    run.figure("requests served", 100.0 * served / tried, "%")
    run.figure("slowest", slowest, "s")
    run.check(served == tried, f"{served} of {tried} requests were served")
    for connection in held:
        connection.close()
    run.alive(server)


SMUGGLED = b"GET /v1/spaces/secret/changes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
AMBIGUOUS = {
    "two lengths": b"Content-Length: 0\r\nContent-Length: %d",
    "length and chunks": b"Content-Length: %d\r\nTransfer-Encoding: chunked",
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: %d",
    "signed length": b"Content-Length: +%d", "negative length": b"Content-Length: -1",
    "length in hex": b"Content-Length: 0x5", "list of lengths": b"Content-Length: 5, 5",
    "length with a space": b"Content-Length : %d", "coding by case": b"Transfer-Encoding: xchunked",
    "coding twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "coding in a folded line": b"Transfer-Encoding:\r\n chunked",
    "coding with a tab": b"Transfer-Encoding:\tchunked\r\nContent-Length: %d",
    "coding with a vertical tab": b"Transfer-Encoding: \x0bchunked",
    "coding in quotes": b'Transfer-Encoding: "chunked"', "NUL in a name": b"Content-Length\0: %d",
    "bare line feed": b"X: y\nContent-Length: %d", "bare return": b"X: y\rContent-Length: %d",
    "long length": b"Content-Length: 99999999999999999999999",
    "length in a folded line": b"Content-Length:\r\n %d", "length that is folded": b"Content-Length: 0\r\n %d",
    "length that a tab folds": b"Content-Length: 0\r\n\t%d", "NUL in a length": b"Content-Length: 0\0%d",
    "NUL in a coding": b"Transfer-Encoding: chunked\0x",
}


@attack
def smuggling(run):
    """A request that two readers could understand differently is refused, and its rest is never a request."""
    server = run.server("embedded")
    server.space("team", "secret")
    token = server.token("team", "writer")
    for name, field in AMBIGUOUS.items():
        line = field % len(SMUGGLED) if b"%d" in field else field
        for end in (b"", b"0\r\n\r\n"):
            answer = exchange(server.port, (
                b"POST /v1/spaces/team/packets HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
                + token.encode() + b"\r\nContent-Type: application/json\r\n" + line
                + b"\r\n\r\n" + end + SMUGGLED), timeout=2)
            answers = answer.count(b"HTTP/1.1 ")
            status = status_of(answer)
            run.check(answers <= 1, f"{name}: {answers} answers to one request")
            run.check(status is None or 400 <= status < 600 and status != 500, f"{name}: {status}")
    chunks = {
        "size of 2^64": b"10000000000000000\r\n", "signed size": b"-1\r\n", "no size": b"\r\n",
        "size with 0x": b"0x5\r\n", "long extension": b"1;" + b"x" * 100_000 + b"\r\na\r\n",
        "no line end": b"5\r\nabcdeX", "endless trailer": b"0\r\n" + b"A: b\r\n" * 20_000,
    }
    for name, body in chunks.items():
        answer = exchange(server.port, (
            b"POST /v1/spaces/team/packets HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
            + token.encode() + b"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked"
            + b"\r\n\r\n" + body + SMUGGLED), timeout=3)
        status = status_of(answer)
        run.check(answer.count(b"HTTP/1.1 ") <= 1, f"{name}: more than one answer")
        run.check(status is None or status != 500 and status >= 400, f"{name}: {status}")
    status, _ = server.client(token).send("GET", "/v1/spaces/team")
    run.check(status == 200, "honest requests are served afterwards")
    run.alive(server)


@attack
def doubtful_heads(run):
    """A head with NUL, or with two tokens, hosts or codings, gives nobody the rights of its token."""
    server = run.server("embedded")
    server.space("team")
    token = server.token("team", "admin").encode()
    right = {"Host": b"127.0.0.1", "Authorization": b"Bearer " + token}
    cases = {
        "NUL behind the token": [("Host", b"127.0.0.1"), ("Authorization", b"Bearer " + token + b"\0x")],
        "NUL behind the host": [("Host", b"127.0.0.1\0.evil.example"), *list(right.items())[1:]],
        "two tokens": [*right.items(), ("Authorization", b"Bearer ferry_" + b"x" * 43)],
        "two tokens, the right one last": [
            ("Host", b"127.0.0.1"), ("Authorization", b"Bearer ferry_" + b"x" * 43),
            ("Authorization", right["Authorization"])],
        "two hosts": [*right.items(), ("Host", b"evil.example")],
        "another host in the target": [*right.items(), ("Target", b"http://evil.example")],
    }
    for name, fields in cases.items():
        target = dict(fields).get("Target", b"") + b"/v1/spaces/team"
        head = b"".join(f"{field}: ".encode() + text + b"\r\n" for field, text in fields
                        if field != "Target")
        answer = exchange(server.port, b"GET " + target + b" HTTP/1.1\r\n" + head
                          + b"Connection: close\r\n\r\n", timeout=5)
        run.check((status_of(answer) or 400) in (400, 401, 403), f"{name}: {status_of(answer)}")
    writer = Writer(server.client(token.decode()), "team", run.rng)
    body = json.dumps(writer.packet([writer.operation("t", "r", {"n": 1})])).encode()
    packed = gzip.compress(body)
    codings = {
        "bytes behind the end": ("gzip", packed + b"x"), "no end": ("gzip", packed[:-4]),
        "a false checksum": ("gzip", packed[:-8] + bytes(4) + packed[-4:]),
        "nothing": ("gzip", b""), "two codings": ("gzip, gzip", gzip.compress(packed)),
        "an unknown coding": ("deflate", packed), "noise": ("zstd", packed),
        "a long frame to skip": ("zstd", b"\x50\x2a\x4d\x18\xff\xff\xff\x7f" + body),
    }
    for name, (coding, content) in codings.items():
        status, _ = writer.client.send("POST", "/v1/spaces/team/packets", content,
                                       {"Content-Encoding": coding})
        run.check(status in (400, 413, 415), f"{name}: {status}")
    run.check(not changes(server.client(token.decode()), "team"), "nothing of it is applied")
    members = gzip.compress(b"") * 100_000 + packed
    status, _ = writer.client.send("POST", "/v1/spaces/team/packets", members, {"Content-Encoding": "gzip"})
    run.check(status in (200, 400, 413), f"a body of 100,000 members: {status}")
    run.alive(server)


class Shipped:
    """A real proxy in front of a server, with the settings that Ferry ships or documents."""

    def __init__(self, run, program, server):
        self.run, self.port, folder = run, free_port(), run.folder(program)
        here = os.path.join(os.path.dirname(__file__), "../..")
        if program == "haproxy":
            with open(f"{here}/Server/proxy/haproxy.cfg") as file:
                text = file.read()
            text = text.replace("bind :8080", f"bind 127.0.0.1:{self.port}").replace(
                "ferryd-1:8080", f"127.0.0.1:{server.port}").replace(
                "  server ferryd-2 ferryd-2:8080\n", "").replace('"${FERRY_OUTER_PROXY}"', "127.9.9.9")
            command = ["haproxy", "-db", "-f", f"{folder}/settings"]
        else:
            with open(f"{here}/Documentation/server.md") as file:
                row = next(line for line in file if line.startswith("| nginx |"))
            inner, beside = (part.replace(":8080", f":{server.port}") for part in row.split("`")[1::2])
            places = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in (
                "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            text = (f"daemon off; pid {folder}/pid; error_log {folder}/errors; events {{}}\n"
                    f"http {{ access_log off; {places} server {{ listen 127.0.0.1:{self.port};\n"
                    f"location / {{ {inner} }}\n{beside} }} }}\n")
            command = ["nginx", "-c", f"{folder}/settings", "-e", f"{folder}/errors"]
        with open(f"{folder}/settings", "w") as file:
            file.write(text)
        with open(f"{folder}/log", "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        run.closing.callback(self.close)
        wait_until(lambda: self.is_alive and status_of(
            self.ask(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")) == 200,
            f"an answer through {program}", self)

    @property
    def is_alive(self):
        return self.process.poll() is None

    def ask(self, data):
        """Sends from an address of its own, so that the proxy's is another one."""
        answer = b""
        with contextlib.suppress(OSError), socket.create_connection(
                ("127.0.0.1", self.port), 5, source_address=("127.0.0.2", 0)) as connection:
            connection.settimeout(1)
            connection.sendall(data)
            while len(answer) < 1 << 16:
                part = connection.recv(65536)
                if not part:
                    break
                answer += part
        return answer

    def close(self):
        self.process.terminate()
        self.process.wait()


METRICS = [b"/metrics", b"/metrics?x", b"/metrics/", b"//metrics", b"/./metrics", b"/%6detrics",
           b"/x/../metrics", b"/%2fmetrics", b"/metrics%00", b"/metrics%3f", b"/metrics;", b"/metrics#a",
           b"http://127.0.0.1/metrics", b"http:///metrics", b"/healthz/../metrics", b"/%2e/metrics"]
FORWARDED = [b"X-Forwarded-For: 9.9.9.9\r\nx-forwarded-for: 8.8.8.8", b"X_Forwarded_For: 7.7.7.7",
             b"Forwarded: for=5.5.5.5", b"Connection: X-Forwarded-For, keep-alive",
             b"Connection: close, X-Forwarded-For\r\nX-Forwarded-For: 6.6.6.6"]


@attack
def shipped_proxies(run):
    """Through HAProxy and nginx as Ferry ships and documents them, no stranger reads metrics, smuggles or forges an address."""
    server = run.server("embedded", "--trusted-proxy", "127.0.0.1", starts=False)
    server.space("team")
    token = server.token("team", "writer")
    server.start()
    smuggled = b"GET /v1/spaces/smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for program in ("haproxy", "nginx"):
        proxy = Shipped(run, program, server)
        for target in METRICS:
            answer = proxy.ask(b"GET " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                               b"Connection: close\r\n\r\n")
            run.check(b"ferry_" not in answer, f"{program}: {target!r} shows the metrics")
        answer = proxy.ask(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, "
                           b"HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
        run.check(b"ferry_" not in answer, f"{program}: an upgrade shows the metrics")
        for name, field in AMBIGUOUS.items():
            # These have one reading in RFC 9112 §6.3, by which the rest is the next request.
            if name in ("length and chunks", "chunks and length", "coding with a tab",
                        "coding in a folded line", "list of lengths"):
                continue
            line = field % len(smuggled) if b"%d" in field else field
            answer = proxy.ask(b"POST /v1/spaces/team/packets HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                               b"Authorization: Bearer " + token.encode() + b"\r\nContent-Type: "
                               b"application/json\r\n" + line + b"\r\n\r\n" + smuggled)
            run.check(answer.count(b"HTTP/1.1 ") <= 1, f"{program}: {name}: several answers")
        run.check("/v1/spaces/smuggled" not in server.log, f"{program}: a smuggled request is served")
        addresses = set()
        for number, lie in enumerate(FORWARDED):
            path = f"/v1/spaces/{program}{number}".encode()
            proxy.ask(b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + lie + b"\r\n\r\n")
            addresses |= {json.loads(line).get("remote") for line in server.log.splitlines()
                          if path.decode() in line}
        run.check(addresses == {"127.0.0.2"}, f"{program}: requests of {addresses}")
    run.figure("targets", len(METRICS))
    run.alive(server)


@attack
def strangers_log(run):
    """Strangers' long paths and headers neither fill the log nor forge lines of it."""
    server = run.server("embedded")
    server.space("team")
    server.token("team", "reader")
    before = os.path.getsize(server.log_path)
    sent = 0
    for number in range(400):
        path = f"/{number}" + "a%0a%1b" * 2000
        request = (f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: {'u' * 8000}\r\n"
                   "Connection: close\r\n\r\n").encode()
        sent += len(request)
        exchange(server.port, request, timeout=5)
    time.sleep(0.2)
    grown = os.path.getsize(server.log_path) - before
    run.figure("sent", sent / 1024, "KiB")
    run.figure("log grew", grown / 1024, "KiB")
    run.check(grown <= 400 * 1200, f"the log grew by {grown} bytes for 400 requests")
    lines = server.log.splitlines()
    run.check(all(len(line) < 4096 for line in lines), "each line of the log is bounded")
    run.check(not any("\x1b" in line for line in lines), "no escape reaches the log")
    run.alive(server)


class Proxy:
    """Passes bytes on between a device and a server, and spoils the answers in one way."""

    def __init__(self, target, spoil):
        self.target, self.spoil, self.count = target, spoil, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            connection.settimeout(20)
            request = b""
            while b"\r\n\r\n" not in request:
                part = connection.recv(65536)
                if not part:
                    return
                request += part
            head, _, body = request.partition(b"\r\n\r\n")
            length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                           if line.lower().startswith(b"content-length:")), 0)
            while len(body) < length:
                body += connection.recv(65536)
            lines = [line for line in head.split(b"\r\n")
                     if not line.lower().startswith((b"connection:", b"expect:"))]
            answer = exchange(self.target, b"\r\n".join(lines) + b"\r\nConnection: close\r\n\r\n"
                              + body, read=1 << 26)
            self.count += 1
            with contextlib.suppress(OSError):
                connection.sendall(self.spoil(answer, self.count))

    def close(self):
        self.listener.close()


def page(status):
    return lambda *_: (f"HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: 13\r\n"
                       "Connection: close\r\n\r\n<html></html>").encode()


SPOILS = {
    "half of each answer": lambda answer, _: answer[: len(answer) // 2],
    "no answer": lambda *_: b"", "a page with 200": page(200), "a page with 413": page(413),
    "a page with 407": page(407), "a page with 502": page(502), "a page with 304": page(304),
    "another length": lambda answer, _: answer.replace(b"ontent-Length: ", b"ontent-Length: 9", 1),
    "a flipped byte": lambda answer, _: answer[:-9] + bytes([answer[-9] ^ 1]) + answer[-8:]
    if len(answer) > 9 else b"",
    "a former answer": None, "two heads": lambda answer, _: b"HTTP/1.1 200 OK\r\n\r\n" + answer,
    "100 for ever": lambda *_: b"HTTP/1.1 100 Continue\r\n\r\n" * 5000,
    "compressed noise": lambda *_: b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: "
    b"40\r\nConnection: close\r\n\r\n" + zlib.compress(bytes(range(200)))[:40].ljust(40, b"x"),
}


@attack
def spoiled_answers(run):
    """A device behind a proxy that spoils answers loses nothing, and all of it arrives without the proxy."""
    server = run.server("embedded")
    for number, (name, spoil) in enumerate(SPOILS.items()):
        space = f"s{number}"
        server.space(space)
        device = run.device().init(server, space).notes()
        former = []

        def replay(answer, count):
            former.append(answer)
            return former[0]

        proxy = Proxy(server.port, spoil or replay)
        try:
            # The address is changed unchecked: the proxy's answers are not the server's.
            device.ferry("init", "--offline", "--server", proxy.url, "--space", space, expect=None)
            device.sql("INSERT INTO notes VALUES('a', 'kept')")
            done = device.ferry("sync", expect=None, timeout=120)
            run.check(done.returncode in (0, 1, 3, 4), f"{name}: sync ends with {done.returncode}")
        finally:
            proxy.close()
        device.ferry("init", "--server", server.url, "--space", space, expect=None)
        device.ferry("retry", "--all", expect=None)
        final = device.ferry("sync", expect=None)
        stored = changes(server.client(), space)
        if ("notes", "a") not in stored:
            quarantined = device.ferry("quarantine", "list", "--json", expect=None).stdout
            run.check("kept" in quarantined or '"a"' in quarantined,
                      f"{name}: the row is neither on the server nor on the device: "
                      f"{final.returncode} {final.stderr[:200]}")
    run.figure("kinds of proxies", len(SPOILS))
    run.alive(server)
