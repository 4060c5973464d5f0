"""Servers, devices, clients and measures that the attacks share."""

import collections
import contextlib
import http.client
import json
import multiprocessing
import os
import pwd
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

MIB = 1 << 20
# Ends a hang; it decides nothing else.
HANG_LIMIT = 240
# Milliseconds that a busy machine may take from anybody.
PAUSE = 250
ATTACKS = {}
fork = multiprocessing.get_context("fork")


class Failed(Exception):
    """A promise that was not kept."""


def attack(function):
    """Registers an attack. Its docstring is the promise."""
    name = f"{function.__module__}.{function.__name__}"
    ATTACKS[name] = function
    return function


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# Memory


class MemoryLimit:
    """A cgroup of its own for one process, or nothing if this system lets nobody make one."""

    def __init__(self, size):
        self.size, self.folder = size, None
        name = f"ferry-attack-{os.getpid()}-{random.randrange(1 << 30)}"
        for root, limit, peak in (
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
            ("/sys/fs/cgroup", "memory.max", "memory.peak"),
        ):
            folder = os.path.join(root, name)
            try:
                if not os.path.exists(os.path.join(root, "cgroup.procs")):
                    continue
                os.mkdir(folder)
            except OSError:
                continue
            try:
                with open(os.path.join(folder, limit), "w") as file:
                    file.write(str(size))
                self.folder, self.peak_file = folder, os.path.join(folder, peak)
                return
            except OSError:
                os.rmdir(folder)

    def enter(self):
        """Runs in the child, before its program."""
        if self.folder:
            with open(os.path.join(self.folder, "cgroup.procs"), "w") as file:
                file.write("0")

    def remove(self):
        for _ in range(100):
            if not self.folder:
                return
            try:
                os.rmdir(self.folder)
                self.folder = None
            except OSError:
                time.sleep(0.05)


# PostgreSQL


class Cluster:
    """A private PostgreSQL on a port of its own."""

    def __init__(self, folder):
        self.folder, self.port, self.count = folder, free_port(), 0
        places = [f"/usr/lib/postgresql/{v}/bin" for v in sorted(
            filter(str.isdigit, _listed("/usr/lib/postgresql")), key=int, reverse=True)]
        places += os.environ.get("PATH", "").split(":")
        self.bin = next((p for p in places if os.access(f"{p}/initdb", os.X_OK)), None)
        if not self.bin:
            raise Failed("PostgreSQL is not installed: run `apt-get install postgresql`")
        self.prefix = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
            self.prefix = ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid),
                           "--init-groups", "--"]
        self.run("initdb", "-D", f"{folder}/data", "-U", "postgres", "--auth=trust",
                 "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
        with open(f"{folder}/data/postgresql.conf", "a") as file:
            file.write(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\n"
                       f"unix_socket_directories = '{folder}'\nmax_connections = 200\n")
        self.run("pg_ctl", "start", "-D", f"{folder}/data", "-l", f"{folder}/log", "-w", "-s")

    def run(self, program, *arguments):
        subprocess.run([*self.prefix, f"{self.bin}/{program}", *arguments], check=True,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd="/")

    def database(self):
        self.count += 1
        name = f"attack{self.count}"
        self.query("postgres", f"CREATE DATABASE {name}")
        return f"postgres://postgres@127.0.0.1:{self.port}/{name}"

    def query(self, database, text):
        """Returns the rows of the last statement as lists of texts."""
        done = subprocess.run(
            [f"{self.bin}/psql", "-X", "-q", "-A", "-t", "-F", "\x1f", "-R", "\x1e",
             "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres",
             "-d", database.rsplit("/", 1)[-1], "-c", text],
            capture_output=True, text=True, timeout=HANG_LIMIT)
        if done.returncode:
            raise Failed(f"psql: {done.stderr[:300]}")
        rows = done.stdout.rstrip("\n")
        return [row.split("\x1f") for row in rows.split("\x1e")] if rows else []

    def stop(self):
        with contextlib.suppress(Exception):
            self.run("pg_ctl", "stop", "-D", f"{self.folder}/data", "-m", "immediate", "-s")


def _listed(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


# Programs


class Server:
    """A real `ferryd serve` on a port of its own."""

    def __init__(self, run, store, options, memory, environment, starts):
        self.run, self.store, self.options = run, store, list(options)
        self.folder = run.folder("server")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = run.cluster().database() if store == "postgres" else None
        self.place = (["--database", self.database] if self.database
                      else ["--data", f"{self.folder}/data"])
        self.limit = MemoryLimit(memory) if memory else None
        self.environment = {**os.environ, **(environment or {})}
        self.process = None
        if starts:
            self.start()

    def start(self):
        self.log_path = f"{self.folder}/log"
        with open(self.log_path, "ab") as log:
            # An earlier start has written to it as well.
            former = log.tell()
            self.process = subprocess.Popen(
                [self.run.ferryd, "serve", "--listen", f"127.0.0.1:{self.port}", *self.place,
                 *self.options],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment,
                preexec_fn=self.limit.enter if self.limit else None)
        deadline = time.monotonic() + HANG_LIMIT
        while "listening on http://" not in self.log_after(former):
            if self.process.poll() is not None:
                raise Failed(f"ferryd did not start: {self.log_after(former)[-500:]}")
            if time.monotonic() > deadline:
                raise Failed("ferryd did not start in time")
            time.sleep(0.02)

    @property
    def log(self):
        return self.log_after(0)

    def log_after(self, place):
        with open(self.log_path, "rb") as file:
            file.seek(place)
            return file.read().decode(errors="replace")

    @property
    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def peak(self):
        """The most memory that it had resident, in bytes."""
        return resident_peak(self.process.pid)

    def ferryd(self, *arguments):
        done = subprocess.run([self.run.ferryd, *arguments, *self.place], capture_output=True,
                              text=True, timeout=HANG_LIMIT, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Failed(f"ferryd {arguments[0]} ended with {done.returncode}: {done.stderr[:500]}")
        return done.stdout.strip()

    def space(self, *names):
        for name in names:
            self.ferryd("space", "create", name)

    def token(self, space, role, owner=None):
        arguments = ["token", "create", "--role", role]
        arguments += ["--all-spaces"] if space == "*" else ["--space", space]
        return self.ferryd(*arguments, *(["--owner", owner] if owner else []))

    def client(self, token=None):
        return Client(self.port, token)

    def stop(self):
        if self.process and self.is_alive:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.limit:
            self.limit.remove()


class Device:
    """A replica that is used by the real `ferry`."""

    def __init__(self, run, name="device"):
        self.run = run
        self.folder = run.folder(name)
        self.file = f"{self.folder}/ferry.db"

    def ferry(self, *arguments, expect=(0,), timeout=HANG_LIMIT, peak=False):
        """Returns the finished process. Its exit code has to be one of `expect`, if given. With
        `peak`, its memory is measured as it runs."""
        environment = {**os.environ, "FERRY_REPLICA": self.file, "NO_COLOR": "1"}
        process = subprocess.Popen(
            [self.run.ferry, *arguments], env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=self.folder)
        most = [0]
        if peak:
            threading.Thread(target=follow_memory, args=(process, most), daemon=True).start()
        try:
            output, error = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failed(f"ferry {_shown(arguments)} did not end within {timeout} s") from None
        done = subprocess.CompletedProcess(
            arguments, process.returncode, output.decode(errors="replace"),
            error.decode(errors="replace"))
        done.raw, done.peak = output, most[0]
        if expect is not None and done.returncode not in expect:
            raise Failed(f"ferry {_shown(arguments)} ended with {done.returncode}, not "
                         f"{expect}: {done.stderr[:400]}")
        return done

    def init(self, server, space, token=None):
        extra = []
        if token:
            path = f"{self.folder}/token"
            with open(path, "w") as file:
                file.write(token)
            extra = ["--token", token]
        self.ferry("init", "--server", server.url, "--space", space, *extra)
        return self

    def notes(self):
        """Creates and tracks a table of notes."""
        self.sql("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
        self.ferry("track", "notes")
        return self

    def sql(self, text):
        """Runs one statement. Returns its rows as objects."""
        done = self.ferry("sql", text, "--json")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def follow_memory(process, most):
    """Notes the most memory that a process has resident, until it ends."""
    while process.poll() is None:
        with contextlib.suppress(OSError, TypeError):
            most[0] = max(most[0], resident_peak(process.pid))
        time.sleep(0.02)


def resident_peak(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) << 10


def _shown(arguments):
    return " ".join(arguments)[:80]


# Requests


class Client:
    """One connection that is kept, and opened again when the server has closed it."""

    def __init__(self, port, token=None, timeout=HANG_LIMIT):
        self.port, self.token, self.timeout, self.connection = port, token, timeout, None

    def send(self, method, path, body=None, headers=None):
        """Returns the status and the body."""
        status, _, content = self.answer(method, path, body, headers)
        return status, content

    def answer(self, method, path, body=None, headers=None):
        headers = dict(headers or {})
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        for attempt in (1, 2):
            if not self.connection:
                self.connection = http.client.HTTPConnection(
                    "127.0.0.1", self.port, timeout=self.timeout)
            try:
                self.connection.request(method, path, body, headers)
                response = self.connection.getresponse()
                content = response.read()
                if response.will_close:
                    self.close()
                return response.status, response.headers, content
            except (http.client.HTTPException, OSError):
                self.close()
                if attempt == 2:
                    raise

    def json(self, method, path, body=None):
        status, content = self.send(method, path, body)
        if status >= 300:
            raise Failed(f"{method} {path[:60]} got {status}: {content[:300]!r}")
        return json.loads(content) if content else None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def exchange(port, data, timeout=30, read=1 << 16):
    """Sends raw bytes. Returns the first bytes of the answer; empty if the connection was closed."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout) as connection:
            connection.settimeout(timeout)
            with contextlib.suppress(OSError):
                connection.sendall(data)
            answer = b""
            while len(answer) < read:
                part = connection.recv(65536)
                if not part:
                    break
                answer += part
            return answer
    except socket.timeout:
        return answer if "answer" in dir() else b""
    except OSError:
        return b""


def status_of(answer):
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(found[1]) if found else None


class Writer:
    """A device that speaks the protocol by itself."""

    def __init__(self, client, space, rng):
        self.client, self.space, self.rng = client, space, rng
        self.device, self.tail, self.counter = self.uuid(), None, 0

    def uuid(self, version=7):
        bits = self.rng.getrandbits(128)
        bits = bits & ~(0xF << 76) | version << 76
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        text = f"{bits:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def operation(self, table, record=None, data=None, kind="insert", **more):
        self.counter += 1
        stamp = (int(time.time() * 1000) << 16 | self.counter & 0xFFFF) & (1 << 64) - 1
        operation = {"id": self.uuid(), "table": table, "kind": kind, "time": f"{stamp:016x}"}
        if record is not None:
            operation["record"] = record
        if data is not None:
            operation["data"] = data
        return {**operation, **more}

    def packet(self, operations):
        packet = {"device": self.device, "operations": operations}
        if self.tail:
            packet["dependency"] = self.tail
        return packet

    def offer(self, operations):
        """Sends a packet. Returns the status and the body; the chain goes on if it was applied."""
        status, content = self.client.send(
            "POST", f"/v1/spaces/{self.space}/packets", self.packet(operations))
        if status in (200, 202):
            self.tail = operations[-1]["id"]
        return status, content

    def offer_until(self, operations, deadline):
        """Sends a packet, and again after each 503 and its Retry-After. Returns the statuses."""
        statuses, packet = [], self.packet(operations)
        while True:
            status, headers, _ = self.client.answer(
                "POST", f"/v1/spaces/{self.space}/packets", packet)
            statuses.append(status)
            if status != 503 or "Retry-After" not in headers or time.monotonic() > deadline:
                break
            time.sleep(int(headers["Retry-After"]))
        if statuses[-1] in (200, 202):
            self.tail = operations[-1]["id"]
        return statuses

    def push(self, operations):
        status, content = self.offer(operations)
        if status != 200:
            raise Failed(f"a packet got {status}: {content[:300]!r}")
        return json.loads(content)

    def insert(self, table, record, **data):
        return self.push([self.operation(table, record, data)])

    def fill(self, table, count, size=40):
        """Inserts this many small records."""
        for first in range(0, count, 1000):
            self.push([
                self.operation(table, f"r{first + i}", {"n": first + i, "text": "x" * size})
                for i in range(min(1000, count - first))])


def changes(client, space):
    """Returns all records of a space by their table and name: the columns that are in force."""
    records, cursor = {}, None
    while True:
        path = f"/v1/spaces/{space}/changes?limit=10000" + (f"&cursor={cursor}" if cursor else "")
        page = client.json("GET", path)
        for change in page["changes"]:
            data = {}
            for write in change["writes"]:
                data.update(write.get("data", {}))
            records[change["table"], change["record"]] = data
        cursor = page["cursor"]
        if not page["more"]:
            return records


# Processes that load a server, and a neighbour that is measured beside them


class Load:
    """Runs a function in processes of its own until it is stopped."""

    def __init__(self, function, *arguments, processes=1):
        self.stopping = fork.Event()
        self.children = [
            fork.Process(target=self._work, args=(function, number, arguments), daemon=True)
            for number in range(processes)]

    def _work(self, function, number, arguments):
        resource.setrlimit(resource.RLIMIT_NOFILE, (_files(), _files()))
        with contextlib.suppress(KeyboardInterrupt):
            function(self.stopping, number, *arguments)

    def __enter__(self):
        for child in self.children:
            child.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for child in self.children:
            child.join(5)
            if child.is_alive():
                child.kill()
                child.join()


def _files():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


class Failures(int):
    """The number of calls that failed; its text also names the most frequent reasons."""

    def __new__(cls, reasons):
        failures = super().__new__(cls, sum(reasons.values()))
        failures.reasons = reasons
        return failures

    def __reduce__(self):
        return Failures, (self.reasons,)

    def __format__(self, form):
        reasons = ", ".join(f"{count} × {reason}" for reason, count in self.reasons.most_common(3))
        return f"{int(self)} ({reasons})" if reasons else str(int(self))


def succeeds(answer):
    """Raises unless an answer, a status and a body, is 200."""
    status, body = answer
    if status != 200:
        raise Failed(f"{status} {body[:120]!r}")
    return True


def measure(function, seconds, least=20):
    """Calls a function again and again in a process of its own. Returns its times in ms, and the
    failed calls (Failures)."""
    mine, theirs = fork.Pipe(duplex=False)

    def work():
        try:
            theirs.send(repeat())
        except BaseException as error:
            theirs.send(error)

    def repeat():
        times, reasons, end = [], collections.Counter(), time.monotonic() + seconds
        while time.monotonic() < end or len(times) + reasons.total() < least:
            began = time.monotonic()
            try:
                if function() is False:
                    reasons["refused"] += 1
                    continue
            except (OSError, http.client.HTTPException, Failed) as error:
                reasons[f"{type(error).__name__}: {error}"[:160]] += 1
                continue
            times.append((time.monotonic() - began) * 1000)
            if time.monotonic() > end + HANG_LIMIT / 4:
                break
        return times, Failures(reasons)

    child = fork.Process(target=work, daemon=True)
    child.start()
    if not mine.poll(HANG_LIMIT):
        child.kill()
        raise Failed("the neighbour got no answer at all")
    result = mine.recv()
    child.join()
    if isinstance(result, BaseException):
        raise result
    return result


def percentile(times, part):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else float("inf")


def beside(run, name, honest, *attackers):
    """Measures an honest call alone, then beside attackers, each in a process of its own, until all of them end. An
    attacker is an iterator in which each step is one request: it yields a status. No call of the neighbour may wait for
    a third of the longest request, unless that is as short as 100 of its own calls or PAUSE. Returns all statuses."""
    alone = percentile(measure(honest, 1)[0], 0.5)
    seen, times, failures = fork.SimpleQueue(), [], 0

    def work(_, number):
        began = time.monotonic()
        for status in attackers[number]:
            seen.put((status, (time.monotonic() - began) * 1000))
            began = time.monotonic()

    with Load(work, processes=len(attackers)) as load:
        end = time.monotonic() + HANG_LIMIT
        while any(child.is_alive() for child in load.children) and time.monotonic() < end:
            began = time.monotonic()
            failures += honest() is False
            times.append((time.monotonic() - began) * 1000)
    requests = []
    while not seen.empty():
        requests.append(seen.get())
    worst, longest = max(times, default=0), max((t for _, t in requests), default=0)
    statuses = [status for status, _ in requests]
    run.series[f"{name}, beside"] = times
    run.figure(f"{name}: answers", " ".join(f"{s}×{statuses.count(s)}" for s in sorted(set(statuses))))
    run.figure(f"{name}: longest request", longest, "ms")
    run.figure(f"{name}: push alone p50", alone, "ms")
    run.figure(f"{name}: push beside p50", percentile(times, 0.5), "ms")
    run.figure(f"{name}: push beside, worst", worst, "ms")
    run.check(requests, f"{name}: no request ended")
    run.check(failures == 0, f"{name}: {failures} of {len(times)} pushes failed")
    run.check(worst <= max(longest / 3, 100 * alone, PAUSE), f"{name}: a push waited for {worst:.0f} ms of "
                                                             f"{longest:.0f}; alone {alone:.1f}")
    return statuses


def wait_until(condition, reason, process=None, limit=HANG_LIMIT):
    """Waits for a condition; a process that is dead meanwhile ends the wait."""
    end = time.monotonic() + limit
    while not condition():
        if process and not process.is_alive:
            raise Failed(f"the server died while the attack waited for {reason}")
        if time.monotonic() > end:
            raise Failed(f"{reason} did not come")
        time.sleep(0.05)


# One run of one attack


class Run:
    """What an attack uses: programs, folders, figures and checks. All of it ends with the run."""

    shared_cluster = None

    def __init__(self, name, programs, root, seed):
        self.name, self.seed = name, seed
        self.ferry, self.ferryd = f"{programs}/ferry", f"{programs}/ferryd"
        self.root = tempfile.mkdtemp(prefix="run-", dir=root)
        os.chmod(self.root, 0o755)
        self.rng = random.Random(f"{name} {seed}")
        self.figures, self.failures, self.servers, self.series = {}, [], [], {}
        self.closing = contextlib.ExitStack()

    def folder(self, name):
        return tempfile.mkdtemp(prefix=f"{name}-", dir=self.root)

    def cluster(self):
        if not Run.shared_cluster:
            Run.shared_cluster = Cluster(tempfile.mkdtemp(prefix="postgres-", dir=os.path.dirname(self.root)))
        return Run.shared_cluster

    def server(self, store="embedded", *options, memory=None, environment=None, starts=True):
        server = Server(self, store, options, memory, environment, starts)
        self.servers.append(server)
        return server

    def device(self, name="device"):
        return Device(self, name)

    def figure(self, name, value, unit=""):
        self.figures[name] = (round(value, 2) if isinstance(value, float) else value, unit)

    def check(self, holds, promise):
        if not holds and promise not in self.failures:
            self.failures.append(promise)
        return holds

    def alive(self, server, what=""):
        text = f"{server.store}: the server lives" + (f" ({what})" if what else "")
        return self.check(server.is_alive, text)

    def neighbour(self, name, function, seconds=3.0):
        """Measures an honest neighbour, and notes p50, p99 and the share of served requests."""
        times, failures = measure(function, seconds)
        self.series[name] = times
        median = percentile(times, 0.5)
        self.figure(f"{name} p50", median, "ms")
        self.figure(f"{name} p99", percentile(times, 0.99), "ms")
        if failures:
            self.figure(f"{name} served", 100.0 * len(times) / (len(times) + failures), "%")
        return median, len(times), failures

    def close(self):
        self.closing.close()
        for server in self.servers:
            server.stop()
        shutil.rmtree(self.root, ignore_errors=True)


@contextlib.contextmanager
def threads(function, *argument_lists):
    """Runs a function in threads, one for each list of arguments; waits for them at the end."""
    workers = [threading.Thread(target=function, args=a, daemon=True) for a in argument_lists]
    for worker in workers:
        worker.start()
    yield workers
    for worker in workers:
        worker.join(HANG_LIMIT)
