"""A node of the shipped size, 1 GiB, lives and serves others whatever a member sends, asks for or leaves unread."""

import contextlib
import gzip
import json
import os
import select
import shutil
import socket
import struct
import tempfile
import threading
import time
import zlib

from harness import MIB, Failed, Writer, attack, exchange, status_of, threads

NODE = 1024 * MIB


@contextlib.contextmanager
def node(run, store, *options):
    """A server with 1 GiB, whose store is on a disk: files in memory would count as its own."""
    former, run.root = run.root, tempfile.mkdtemp(prefix="ferry-attack.", dir="/var/tmp")
    os.chmod(run.root, 0o755)
    server = None
    try:
        disk = run.root
        if store == "postgres":
            run.root = former
        server = run.server(store, *options, memory=NODE)
        run.root = former
        yield server
        judge(run, server)
    finally:
        run.root = former
        if server:
            server.stop()
        shutil.rmtree(disk, ignore_errors=True)


def judge(run, server):
    if run.alive(server, "1 GiB"):
        peak = server.peak()
        run.figure(f"{server.store} peak", peak / MIB, "MiB")
        run.check(peak <= NODE, f"{server.store}: {peak / MIB:.0f} MiB are more than 1 GiB")
        status, _ = server.client().send("GET", "/healthz")
        run.check(status == 200, f"{server.store}: /healthz answers {status} afterwards")


def large_record(writer, table, record, data=None):
    """One record of 8 MB with this data as well, in one packet."""
    text = "x" * 1_000_000
    writer.push([
        writer.operation(table, record, {**{f"c{n}": text for n in range(4)}, **(data or {})}),
        writer.operation(table, record, {f"c{n}": text for n in range(4, 8)}, "update")])


@attack
def large_records(run):
    """A packet of 4.5 KB that updates 31 records of 8 MB, in three spaces at once, leaves a node of 1 GiB alive."""
    for store in ("embedded", "postgres"):
        with node(run, store) as server:
            spaces = ["one", "two", "three"]
            server.space(*spaces, "honest")
            writers = [Writer(server.client(), space, run.rng) for space in spaces]
            for number in range(31):
                for writer in writers:
                    large_record(writer, "t", f"r{number}")
            honest = Writer(server.client(), "honest", run.rng)
            alone = waits(lambda: honest.insert("t", f"a{honest.counter}", n=1), 20)
            seen, took, stop, beside, tries = [], [], threading.Event(), [], []
            deadline = time.monotonic() + 600

            def attack_space(writer):
                for _ in range(3):
                    packet = [writer.operation("t", f"r{n}", {"n": 1}, "update") for n in range(31)]
                    run.figure("packet", len(json.dumps(writer.packet(packet))), "bytes")
                    began = time.monotonic()
                    try:
                        statuses = writer.offer_until(packet, deadline)
                    except OSError:
                        return
                    seen.append(statuses[-1])
                    tries.append(len(statuses))
                    if statuses == [200]:
                        took.append((time.monotonic() - began) * 1000)

            def neighbour():
                while not stop.is_set():
                    beside.extend(waits(lambda: honest.insert("t", f"b{honest.counter}", n=1), 1))

            try:
                with threads(neighbour, ()):
                    with threads(attack_space, *[(w,) for w in writers]):
                        pass
                    stop.set()
            finally:
                stop.set()
            run.figure(f"{store} answers", " ".join(map(str, sorted(seen))) or "none")
            run.check(seen and all(s in (200, 413, 422, 429) for s in seen),
                      f"{store}: each packet is applied or refused for good: {seen}")
            run.figure(f"{store} most attempts of a packet", max(tries, default=0), "")
            run.check(beside, f"{store}: another space's pushes go on")
            run.alive(server, "1 GiB")
            if beside:
                run.figure(f"{store} other pushes, alone p50", sorted(alone)[10], "ms")
                run.figure(f"{store} other pushes, beside, worst", max(beside), "ms")
            if beside and took and store == "embedded":
                # The packet is written in more than sixty slices.
                run.figure(f"{store} quickest packet", min(took), "ms")
                bound = max(min(took) / 2, 100 * sorted(alone)[10])
                run.check(max(beside) <= bound,
                          f"{store}: a push waited for {max(beside):.0f} ms, longer than {bound:.0f}")


def waits(function, count):
    times = []
    for _ in range(count):
        began = time.monotonic()
        try:
            function()
        except (OSError, Failed):
            return times
        times.append((time.monotonic() - began) * 1000)
    return times


def unread(run, server, requests, honest):
    """Sends requests in turn over 150 connections that read nearly nothing, for eight seconds. An honest path is served
    beside them."""
    sockets = []
    for number in range(150):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(OSError):
            reader.connect(("127.0.0.1", server.port))
            reader.sendall(requests[number % len(requests)])
        sockets.append(reader)
    served = tried = 0
    end = time.monotonic() + 8
    while (time.monotonic() < end or tried < 10) and server.is_alive:
        tried += 1
        with contextlib.suppress(OSError, Failed):
            served += server.client(honest[1]).send("GET", honest[0])[0] == 200
        for reader in sockets[: tried % 40]:
            with contextlib.suppress(OSError):
                reader.recv(1000, socket.MSG_DONTWAIT)
        time.sleep(0.05)
    for reader in sockets:
        reader.close()
    run.figure(f"{server.store} honest pulls served", 100.0 * served / max(1, tried), "%")
    run.check(served * 2 >= tried, f"{server.store}: {served} of {tried} honest pulls were served")


@attack
def slow_readers(run):
    """150 connections that ask for pages of 8 MB and do not read them leave a node of 1 GiB alive and serving."""
    for store in ("embedded", "postgres"):
        with node(run, store) as server:
            server.space("large", "honest")
            writer = Writer(server.client(), "large", run.rng)
            for number in range(12):
                large_record(writer, "t", f"r{number}")
            Writer(server.client(), "honest", run.rng).fill("t", 100)
            unread(run, server,
                   [b"GET /v1/spaces/large/changes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"],
                   ("/v1/spaces/honest/changes?limit=50", None))


@attack
def trickling_bodies(run):
    """400 bodies of 8 MiB that never end take a bounded part of the memory, and pushes of another principal are served."""
    for store in ("embedded",):
        with node(run, store) as server:
            server.space("attacked", "honest")
            evil, good = (server.token(s, "writer") for s in ("attacked", "honest"))
            sockets = []
            head = (f"POST /v1/spaces/attacked/packets HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: "
                    f"Bearer {evil}\r\nContent-Type: application/json\r\nContent-Length: {8 * MIB}"
                    "\r\n\r\n").encode()
            for _ in range(400):
                sender = socket.create_connection(("127.0.0.1", server.port))
                sender.setblocking(False)
                with contextlib.suppress(OSError):
                    sender.send(head)
                sockets.append(sender)
            honest = Writer(server.client(good), "honest", run.rng)
            block, served, tried = b"[" * 65536, 0, 0
            end = time.monotonic() + 6
            while time.monotonic() < end and server.is_alive:
                _, ready, _ = select.select([], sockets, [], 0.05) if sockets else ([], [], [])
                for sender in ready:
                    try:
                        sender.send(block)
                    except BlockingIOError:
                        pass
                    except OSError:
                        sockets.remove(sender)
                        sender.close()
                tried += 1
                with contextlib.suppress(OSError, Failed):
                    honest.insert("t", f"r{tried}", n=1)
                    served += 1
            for sender in sockets:
                sender.close()
            run.figure("pushes served", 100.0 * served / max(1, tried), "%")
            run.check(served * 10 >= tried * 9, f"{served} of {tried} honest pushes were served")


def gzip_bomb():
    """1 MiB that becomes 1 GiB."""
    worker = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = b"[" * MIB
    return b"".join([worker.compress(zeros) for _ in range(1024)] + [worker.flush()])


def zstd_bomb():
    """1 GiB of one byte in blocks of run-length form (RFC 8878 §3.1.1)."""
    block = struct.pack("<I", (128 << 10) << 3 | 1 << 1)[:3] + b"["
    last = struct.pack("<I", (128 << 10) << 3 | 1 << 1 | 1)[:3] + b"["
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * 8191 + last


@attack
def bombs(run):
    """Bodies that become 1 GiB are refused with 413 or another clear code, in little memory."""
    with node(run, "embedded") as server:
        server.space("attacked")
        token = server.token("attacked", "writer")
        base = server.peak()
        nested = gzip.compress(gzip_bomb())
        cases = [("gzip", gzip_bomb()), ("zstd", zstd_bomb()), ("gzip", nested),
                 ("gzip", gzip_bomb()[:-9]), ("zstd", zstd_bomb()[:-4]),
                 ("gzip", gzip.compress(b"{}") * 20000), ("gzip, gzip", nested)]
        seen = []

        def send(coding, body):
            client = server.client(token)
            with contextlib.suppress(OSError):
                seen.append(client.send("POST", "/v1/spaces/attacked/packets", body,
                                        {"Content-Encoding": coding})[0])

        with threads(send, *(cases * 4)):
            pass
        run.figure("answers", " ".join(f"{s}×{seen.count(s)}" for s in sorted(set(seen))))
        run.check(all(400 <= s < 500 or s == 503 for s in seen), f"bombs are refused: {set(seen)}")
        if server.is_alive:
            growth = (server.peak() - base) / MIB
            run.figure("growth", growth, "MiB")
            run.check(growth < 512, f"{growth:.0f} MiB for bodies of 1 MiB")


@attack
def deep_json(run):
    """Documents that are deep, wide or full of long numbers and escapes are refused in memory near their size."""
    with node(run, "embedded") as server:
        server.space("attacked")
        size = 7 * MIB
        cases = {
            "arrays": b"[" * size, "objects": b'{"a":' * (size // 5),
            "number": b'{"device":' + b"1" * size + b"}", "exponent": b'{"device":1e' + b"9" * size,
            "escapes": b'{"device":"' + b"\\u0600" * (size // 6) + b'"}',
            "members": b"{" + b",".join(b'"%d":0' % n for n in range(size // 11)) + b"}",
            "operations": b'{"operations":[' + b"{}," * (size // 3) + b"{}]}",
            "blob": b'{"operations":[{"data":{"a":{"blob":"' + b"AAAA" * (size // 4) + b'"}}}]}',
            "predicate": b'{"operations":[{"where":' + b'["not",' * (size // 7),
            "name": b'{"' + b"x" * size + b'":1}', "space": b" " * size,
        }
        base = server.peak()
        for name, body in cases.items():
            answer = exchange(server.port, (
                f"POST /v1/spaces/attacked/packets HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close"
                f"\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            ).encode() + body, timeout=60)
            run.check(status_of(answer) in (400, 413), f"{name}: {status_of(answer)}, not 400 or 413")
        if server.is_alive:
            growth = (server.peak() - base) / MIB
            run.figure("growth", growth, "MiB")
            run.check(growth < 20 * 7, f"{growth:.0f} MiB for bodies of 7 MiB, one after the other")
