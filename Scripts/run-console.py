#!/usr/bin/env python3
"""Runs each console block of the documents with the built programs, and compares the output.

Each page has a fresh folder, free ports and one shell. Lines that begin with `$ ` run in order. The lines below
a command have to be its output, after the rules in VARIABLE. A line `…` stands for any lines, and `…` inside a
line for any text. A command has to exit with 0, unless the page shows a message of Ferry's below it. Servers and
watches run until the end of the page: the next command waits for the output that the page shows, or for the
first line. `$ cat FILE` writes the lines below it into a new file. A line above a block may have comments:

    <!-- not run: REASON -->         the block is left out; the end of the run lists it
    <!-- given: COMMANDS -->         commands that the block takes for granted, each on a line
    <!-- file: NAME -->              the block, of any language, is this file in the page's folder

    Scripts/run-console.py .build/debug [Documentation/PAGE.md …]
"""
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"((?:^<!-- (?:(?!-->).)+ -->\n)*)^```([\w-]*)\n(.*?)^```", re.M | re.S)
COMMENT = re.compile(r"<!-- (not run|given|file): ((?:(?!-->).)+) -->", re.S)
# Languages that would look like a console block, and not be run.
SHELLS = {"sh", "bash", "shell", "zsh"}
# Commands that run until the end of the page.
ENDLESS = re.compile(
    r"(\w+=\S+ )*(ferryd (serve|mirror run)|ferry shell|ferry [^#|;&]*--watch|python3 -m http\.server)\b")
# Parts of the output that differ from run to run; both sides are changed.
VARIABLE = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"), "HEX"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b\d[\d,]*(\.\d+)? ([KMG]i)?B\b"), "SIZE"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s)\b"), "DURATION"),
    # Columns of tables are as wide as their contents.
    (re.compile(r"─+"), "─"),
    (re.compile(r"(?<=\S) {2,}"), "  "),
    (re.compile(r"^ +(?=\d)|\s+$"), ""),
]
# Pages name these ports; each run has free ones.
PORTS = (8080, 8000)
# Pages name these folders; they are in the page's own folder.
PLACES = ("/backups", "/srv/ferry", "/etc/ferry")
POSTGRES = "/usr/lib/postgresql"
LIBRARIES = "/usr/local/lib/"
MESSAGE = re.compile(r"ferryd?: ")
# Ends a page that hangs, and decides nothing else.
HANG_LIMIT = 300


class Fault(Exception):
    """A difference between a page and its run."""


class Command:
    """A command of a page: its line, its text, and the output that the page shows."""

    def __init__(self, line, text):
        self.line, self.text, self.shown = line, text, []


class Block:
    """A fenced block of a page: its first line, its commands or its file, and the reason to leave it out."""

    def __init__(self, line, commands=(), given=(), file=None, reason=None):
        self.line, self.commands, self.given = line, list(commands), list(given)
        self.file, self.reason = file, reason


def documents(root=ROOT):
    """Returns the documents with examples for users."""
    places = ["README.md", "SIMULATION.md", "Documentation/*.md", "Examples/*/*.md", "Client/Ferry/Ferry.docc/*.md"]
    return sorted(path for place in places for path in root.glob(place))


def blocks(text):
    """Returns the console blocks and the files of a page."""
    found = []
    for match in FENCE.finditer(text):
        line = text[:match.start(2)].count("\n") + 1
        comments = dict(COMMENT.findall(match[1]))
        if match[2] in SHELLS:
            raise Fault(f"{line}: write ```console instead of ```{match[2]}, so that the block is run")
        if len(comments.get("not run", "a good reason")) < 10:
            raise Fault(f"{line}: `not run` needs a reason")
        if "file" in comments:
            found.append(Block(line, file=(comments["file"], match[3])))
        if match[2] == "console":
            given = "".join(f"$ {part}\n" for part in joined(comments.get("given", "").split("\n")))
            found.append(
                Block(line, commands(match[3], line), commands(given, line), reason=comments.get("not run")))
    return found


def joined(lines):
    """Returns commands of one or more lines each."""
    found = []
    for text in lines:
        if found and is_open(found[-1]):
            found[-1] += "\n" + text
        elif text.strip():
            found.append(text.strip())
    return found


def commands(block, line=0):
    """Returns the commands of a console block."""
    found = []
    for number, text in enumerate(block.splitlines(), line + 1):
        if text.startswith("$ "):
            found.append(Command(number, text[2:]))
        elif not found:
            raise Fault(f"{number}: a console block begins with `$ `")
        elif not found[-1].shown and is_open(found[-1].text):
            found[-1].text += "\n" + text
        else:
            found[-1].shown.append(text)
    return found


def is_open(command):
    """Returns whether the shell reads another line of the command."""
    if command.endswith("\\"):
        return True
    checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
    return "unexpected EOF" in checked.stderr or "here-document" in checked.stderr


def plain(line):
    """Returns a line without its variable parts."""
    for pattern, name in VARIABLE:
        line = pattern.sub(name, line)
    return line


def matches(shown, real):
    """Returns whether the real lines are those that a page shows."""
    if not shown:
        return not real
    if shown[0] == "…":
        return any(matches(shown[1:], real[skipped:]) for skipped in range(len(real) + 1))
    if not real:
        return False
    pattern = ".*".join(re.escape(part) for part in plain(shown[0]).split("…"))
    return bool(re.fullmatch(pattern, plain(real[0]))) and matches(shown[1:], real[1:])


class Ports:
    """Free ports below those that systems give to connections; never the same one twice."""

    def __init__(self):
        self._next, self._lock = itertools.count(21000 + os.getpid() % 1000 * 10), threading.Lock()

    def allocate(self):
        """Returns a free port."""
        with self._lock:
            for port in self._next:
                with socket.socket() as probe:
                    try:
                        probe.bind(("127.0.0.1", port))
                        return port
                    except OSError:
                        continue
        raise Fault("no port is free")


class Endless:
    """A command in the background, and the lines that it has printed."""

    def __init__(self, command, process, path):
        self.command, self.process = command, process
        self.lines, self.ended = [], False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, args=(path,), daemon=True)
        self._reader.start()

    def _read(self, path):
        with open(path, encoding="utf-8", errors="replace") as pipe:
            for line in pipe:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait_until_ready(self, shown):
        """Waits for the output that the page shows, or for the first line."""
        def ready():
            return matches([*shown, "…"], self.lines) if shown else bool(self.lines)
        with self._changed:
            self._changed.wait_for(lambda: self.ended or ready(), HANG_LIMIT)
            if not ready() or self.ended:
                raise Fault("it " + ("ended" if self.ended else "did not print that") + output(self.lines))

    def stop(self):
        """Ends the command, and waits for its end."""
        try:
            os.kill(self.process, signal.SIGTERM)
        except ProcessLookupError:
            pass
        self._reader.join(HANG_LIMIT)


def output(lines):
    """Returns real output as the end of a fault."""
    return "; the output is:\n" + "\n".join(f"    {line}" for line in lines[-40:])


class Page:
    """One page: its folder, its shell, and the commands in the background."""

    def __init__(self, build, ports):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="ferry-page-"))
        self._ports = {port: ports.allocate() for port in PORTS}
        self._tools = max(pathlib.Path(POSTGRES).glob("*/bin"), key=lambda path: float(path.parent.name), default="")
        self._build, self._count, self._endless, self._database = build, 0, [], None
        self._work = self._folder / "work"
        self._work.mkdir()
        (self._work / "Examples").symlink_to(ROOT / "Examples")
        replies, self._reply_descriptor = os.pipe()
        self._replies = os.fdopen(replies, encoding="utf-8")
        self._environment = {
            "PATH": f"{build}:{ROOT}/.build:{self._tools}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self._folder), "LANG": "C.UTF-8", "TZ": "UTC", "PWD": str(self._work), "TMPDIR": str(self._folder),
            "FERRY_LISTEN": f"127.0.0.1:{self._ports[PORTS[0]]}", "ROOT": str(ROOT), "PGPORT": str(ports.allocate()),
            "PYTHONUNBUFFERED": "1"}
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, cwd=self._work, env=self._environment,
            pass_fds=[self._reply_descriptor], start_new_session=True)
        os.close(self._reply_descriptor)

    def run(self, block):
        """Runs a block; throws the first difference."""
        if block.file:
            path = self._work / block.file[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.file[1], encoding="utf-8")
        for command in [*block.given, *block.commands]:
            try:
                self._run(command)
            except Fault as fault:
                raise Fault(f"{command.line}: `{command.text}`: {fault}") from None

    def _run(self, command):
        text = command.text
        for port, free in self._ports.items():
            text = re.sub(rf"\b{port}\b", str(free), text)
        text = text.replace(LIBRARIES, f"{self._build}/")
        for place in PLACES:
            text = re.sub(rf"(?<![\w/:]){place}\b", str(self._folder) + place, text)
        written = re.fullmatch(r"cat ([\w.-]+)", text)
        if written and command.shown and not (self._work / written[1]).exists():
            (self._work / written[1]).write_text("\n".join(command.shown) + "\n", encoding="utf-8")
            return
        if "postgres://" in text:
            self._start_database()
        self._count += 1
        script = self._folder / f"{self._count}.sh"
        script.write_text(text + "\n", encoding="utf-8")
        if ENDLESS.match(text):
            self._start(command, script)
        else:
            self._compare(command, script)

    def _compare(self, command, script):
        path = script.with_suffix(".out")
        status = int(self._send(f". {script} >{path} 2>&1 </dev/null; echo $? >&{self._reply_descriptor}"))
        real = path.read_text(encoding="utf-8", errors="replace").splitlines()
        if command.shown and not matches(command.shown, real):
            raise Fault(f"the page shows other lines{output(real)}")
        if status and not any(MESSAGE.match(line) for line in command.shown):
            raise Fault(f"exit {status}{output(real)}")

    def _start(self, command, script):
        kind = ENDLESS.match(command.text)[2]
        # A server has the port and the store for itself.
        for former in [one for one in self._endless if ENDLESS.match(one.command.text)[2] == kind]:
            former.stop()
            self._endless.remove(former)
        path = script.with_suffix(".pipe")
        os.mkfifo(path)
        text = script.read_text(encoding="utf-8")
        # One process, so that a signal reaches it.
        script.write_text("exec " + text if not re.match(r"\w+=", text) else "exec env " + text, encoding="utf-8")
        reply = self._reply_descriptor
        process = int(self._send(
            f"(exec {reply}>&-; . {script}) >{path} 2>&1 </dev/null & echo $! >&{reply}"))
        endless = Endless(command, process, path)
        self._endless.append(endless)
        endless.wait_until_ready(command.shown)

    def _send(self, line):
        """Sends a line to the shell, and returns its reply."""
        try:
            self._shell.stdin.write(line.encode() + b"\n")
            self._shell.stdin.flush()
        except BrokenPipeError:
            pass
        reply = self._replies.readline()
        if not reply:
            raise Fault("the page's shell has ended")
        return reply

    def _start_database(self):
        """Starts a PostgreSQL with the database `company` of the role `app`."""
        if self._database:
            return
        self._database = pathlib.Path(tempfile.mkdtemp(prefix="ferry-page-"))
        # PostgreSQL refuses to run as root.
        if os.getuid() == 0:
            shutil.chown(self._database, "postgres")
        data = self._database / "data"
        self._postgres("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
        settings = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={self._database} -c fsync=off"
        self._postgres("pg_ctl", "start", "-w", "-D", data, "-l", self._database / "log", "-o", settings)
        # A role of its own, as operators are advised.
        self._postgres(
            "psql", "-q", "-h", "127.0.0.1", "-U", "postgres", "-c", "CREATE ROLE app LOGIN", "-c",
            "CREATE DATABASE company OWNER app")

    def _postgres(self, name, *arguments):
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        result = subprocess.run(
            [*as_user, str(self._tools / name), *map(str, arguments)], cwd=self._database,
            env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if result.returncode:
            raise Fault(f"PostgreSQL's {name} fails: {result.stderr}")

    def close(self):
        """Ends all processes, and removes the folder."""
        for endless in self._endless:
            endless.stop()
        try:
            self._shell.stdin.close()
        except BrokenPipeError:
            pass
        self._shell.wait(HANG_LIMIT)
        if self._database:
            self._postgres("pg_ctl", "stop", "-m", "immediate", "-D", self._database / "data")
            shutil.rmtree(self._database, ignore_errors=True)
        self._replies.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def run_page(path, build, ports):
    """Returns the number of commands that ran, the reasons of blocks that did not, and the faults."""
    name, count, left_out = path.relative_to(ROOT), 0, []
    try:
        found = blocks(path.read_text(encoding="utf-8"))
    except Fault as fault:
        return 0, [], [f"{name}:{fault}"]
    left_out = [f"{name}:{block.line}: {block.reason}" for block in found if block.reason]
    found = [block for block in found if not block.reason]
    if not any(block.commands for block in found):
        return 0, left_out, []
    page = Page(build, ports)
    try:
        for block in found:
            page.run(block)
            count += len(block.commands)
    except Fault as fault:
        return count, left_out, [f"{name}:{fault}"]
    finally:
        page.close()
    return count, left_out, []


def main():
    build, ports = os.path.abspath(sys.argv[1]), Ports()
    pages = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or documents()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda path: run_page(path, build, ports), pages))
    faults = [fault for _, _, found in results for fault in found]
    left_out = [reason for _, found, _ in results for reason in found]
    print("\n".join(["These console blocks are not run:", *(f"  {line}" for line in left_out)] if left_out else []))
    print("\n".join(faults) if faults else f"{sum(count for count, _, _ in results)} commands of the documents run.")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
