"""Text of others reaches a user's shell, terminal and disk only as text: no command, no escape, no file for others."""

import json
import os
import re
import stat
import subprocess

from harness import Writer, attack

MARKS = ["", "\u0600", "\u0300", "\u202e", "\u200d", "\U000110bd"]
COMMANDS = ["'; touch X; '", '"; touch X; "', "$(touch X)", "`touch X`", "\n touch X\n", "| touch X",
            "&& touch X &&", "\\'; touch X; #", "-h'; touch X; '", "--help; touch X", "!touch X",
            "> X", "~/X", "*; touch X"]


def hostile_names(rng, count):
    names = []
    for number in range(count):
        command = COMMANDS[number % len(COMMANDS)]
        mark = MARKS[number // len(COMMANDS) % len(MARKS)]
        name = mark.join([command[:1], command[1:]]) if number % 2 else mark + command
        if rng.random() < 0.3:
            name = "-h" + mark + name
        name = name.replace("\n", "\u2028")
        if name not in names:
            names.append(name)
    return names


def suggestions(text):
    """The commands that a message offers to paste: between back quotes, which end outside of quotes."""
    found = set()
    for start in re.finditer(r"`(?=ferryd? )", text):
        command, quoted = "", None
        for mark in text[start.end():].split("\n")[0]:
            if mark == "`" and not quoted:
                found.add(command)
                break
            if mark in "'\"" and quoted in (None, mark):
                quoted = None if quoted else mark
            command += mark
    return found


def paste(run, text, place):
    """Runs the suggested lines by a shell in a folder of their own; nothing there may appear."""
    folder = run.folder("shell")
    fake = run.folder("fake")
    for program in ("ferry", "ferryd"):
        with open(f"{fake}/{program}", "w") as file:
            file.write("#!/bin/sh\nexit 0\n")
        os.chmod(f"{fake}/{program}", 0o755)
    lines = suggestions(text)
    for line in lines:
        subprocess.run(["sh", "-c", line], cwd=folder, stdout=subprocess.DEVNULL, timeout=20,
                       stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                       env={"PATH": f"{fake}:/usr/bin:/bin", "HOME": folder})
        made = os.listdir(folder)
        if not run.check(not made, f"{place}: a suggested line ran a command: {line[:160]!r}"):
            for name in made:
                os.remove(f"{folder}/{name}")
    return len(lines)


@attack
def suggested_lines(run):
    """Lines that messages offer to paste run nothing of another's names, in sh."""
    server = run.server("embedded")
    server.space("team")
    writer = Writer(server.client(), "team", run.rng)
    lines = 0
    for number, name in enumerate(hostile_names(run.rng, 56)):
        status, _ = writer.offer([
            writer.operation(name, name, {name: "x", "id": "a"}),
            writer.operation("notes", f"n{number}", {"body": name, name: name})])
        run.check(status in (200, 400, 422), f"a packet with {name!r} got {status}")
        if number % 8 and number < 53:
            continue
        device = run.device("reader").init(server, "team")
        device.sql("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT NOT NULL CHECK(body = ''))")
        device.ferry("track", "notes")
        text = ""
        for command in (["sync"], ["status"], ["to-apply"], ["log"], ["verify"], ["track", name],
                        ["track", "--create", name], ["track", "--create", "--all"], ["schema"],
                        ["conflicts"], ["quarantine", "list"], ["sync"], ["history", "notes", name],
                        ["rename", "notes", "body", "--column", name], ["untrack", name]):
            done = device.ferry(*command, expect=None)
            run.check(done.returncode in (0, 1, 2, 3, 4), f"{command} ended with {done.returncode}")
            text += done.stdout + done.stderr + "\n"
        lines += paste(run, text, name[:40])
    run.figure("suggested lines run", lines)
    run.check(lines > 0, "messages suggest lines at all")


ESCAPES = ["\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x07", "\x9b31m", "\x08\x08", "\r\x1b[K",
           "\x1bP1$r\x1b\\", "\x7f", "\x00", "\u009d0;x\u009c"]
FORBIDDEN = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


@attack
def escapes(run):
    """Control characters of records, names and problems reach no terminal, neither from ferry nor from ferryd."""
    server = run.server("embedded")
    server.space("team")
    device = run.device("reader").init(server, "team").notes()
    writer = Writer(server.client(), "team", run.rng)
    for number, escape in enumerate(ESCAPES):
        writer.offer([writer.operation("notes", f"n{number}{escape}".replace("\0", ""),
                                       {"body": f"x{escape}y"})])
        writer.offer([writer.operation("notes", f"m{number}", {"body": 1, f"c{number}": escape})])
        server.client().send("PUT", f"/v1/spaces/team/devices/{writer.device}",
                             {"name": f"a{escape}"})
    outputs = {}
    for command in (["sync"], ["status"], ["log"], ["to-apply"], ["pending"], ["history", "notes", "n0"],
                    ["conflicts"], ["verify"], ["sql", "SELECT * FROM notes"], ["quarantine", "list"]):
        done = device.ferry(*command, expect=None)
        outputs[" ".join(command)] = done.raw + done.stderr.encode()
    for command in (["space", "show", "team"], ["space", "usage", "team"], ["audit"], ["token", "list"]):
        done = subprocess.run([run.ferryd, *command, *server.place], capture_output=True)
        outputs["ferryd " + " ".join(command)] = done.stdout + done.stderr
    for command, output in outputs.items():
        found = FORBIDDEN.search(output)
        run.check(not found, f"{command} prints {found and found[0]!r}")
    run.figure("commands", len(outputs))


# They reverse a line, or nobody sees them.
INVISIBLE = ["\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\u00ad", "\u2063", "\u3164", "\u115f", "\u180e",
             "\ufff9", "\ufeff", "\u2028", "\U000e0041\U000e0042"]


@attack
def invisible(run):
    """Characters that reverse a line or are invisible reach no terminal, and are in no name of a token or a device."""
    server = run.server("embedded")
    server.space("team")
    admin = server.client(server.token("team", "admin"))
    device = run.device("reader").init(server, "team", admin.token).notes()
    writer = Writer(admin, "team", run.rng)
    for number, text in enumerate(INVISIBLE):
        name, manifest = f"a{text}b", {"name": f"a{text}b", "spaces": {"team": "reader"}}
        status, _ = admin.send("POST", "/v1/tokens", manifest)
        run.check(status == 400, f"a token named {name!a} got {status}")
        status, _ = admin.send("PUT", f"/v1/spaces/team/devices/{writer.device}", {"name": name})
        run.check(status == 400, f"a device named {name!a} got {status}")
        writer.insert("notes", f"n{number}{text}", body=name)
        writer.offer([writer.operation(f"t{number}{text}", name, {name: 1})])
    commands = [["sync"], ["status"], ["log"], ["to-apply"], ["history", "notes", "n0\u202e"], ["verify"],
                ["sql", "SELECT * FROM notes"], ["schema"], ["sql", "SELECT * FROM notes", "--json"]]
    outputs = {" ".join(c)[:30]: device.ferry(*c, expect=None).raw.decode() for c in commands}
    for command in (["token", "list"], ["audit"], ["space", "show", "team"], ["space", "usage", "team"]):
        done = subprocess.run([run.ferryd, *command, *server.place], capture_output=True)
        outputs["ferryd " + " ".join(command)] = (done.stdout + done.stderr).decode()
    for command, output in outputs.items():
        found = {mark for text in INVISIBLE for mark in text if mark in output}
        if "--json" in command or "SELECT" in command and output.startswith("{"):
            found &= {"\u202e", "\u2066", "\u2028"}
        run.check(not found, f"{command!a} prints {sorted(found)!a}")
    run.check("n0" in outputs["sql SELECT * FROM notes"], "the rows are there")
    run.figure("commands", len(outputs))


@attack
def file_modes(run):
    """The files of a replica, a server, a token and a backup can be read by their owner only."""
    os.umask(0o022)
    server = run.server("embedded")
    server.space("team")
    token = server.token("team", "writer")
    device = run.device("member").init(server, "team", token)
    os.remove(f"{device.folder}/token")
    device.notes()
    device.sql("INSERT INTO notes VALUES('a', 'b')")
    device.ferry("sync")
    backup = f"{run.folder('backup')}/copy"
    server.ferryd("backup", backup)
    server.ferryd("token", "create", "--space", "team", "--role", "reader", "--out",
                  f"{run.folder('out')}/token")
    files = 0
    for place in (device.folder, f"{server.folder}/data", backup, run.root + "/"):
        for folder, _, names in os.walk(place):
            for name in names:
                path = os.path.join(folder, name)
                if not re.search(r"ferry|store|token|\.db|key|backup|manifest|copy", path[len(run.root):]):
                    continue
                if "/fake-" in path or path.endswith("/log"):
                    continue
                mode = stat.S_IMODE(os.lstat(path).st_mode)
                files += 1
                private = not mode & 0o077 or not open_to_others(path, run.root)
                run.check(private, f"{path[len(run.root):]} has mode {mode:o}")
    run.figure("files", files)
    with open(device.file, "rb") as file:
        run.check(token.encode() not in file.read(), "the database does not contain the token")


def open_to_others(path, root):
    """True if others may pass each folder between the run's own and the file, and read it."""
    if not stat.S_IMODE(os.lstat(path).st_mode) & 0o044:
        return False
    folder = os.path.dirname(path)
    while len(folder) > len(root):
        # The folders of a run are made by mkdtemp with 0700: they are not the product's.
        if os.path.dirname(folder) != root and not stat.S_IMODE(os.stat(folder).st_mode) & 0o011:
            return False
        folder = os.path.dirname(folder)
    return True


@attack
def paths_of_missions(run):
    """Paths of a mission's files never leave its folder, whatever a manifest's author writes."""
    server = run.server("embedded")
    server.space("team")
    evil = run.folder("evil")
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    paths = ["../x", "/etc/x", "a/../../x", "a/./b", "a//b", "a\\..\\x", "~/.ssh/x", ".", "..", "",
             "a/\u2025/x", "con\0", "a\nb", "x" * 5000, "a/" * 2000, "\u0600../x", "..\u0300/x", "-rf",
             "a\u202egpj.exe"]
    for number, path in enumerate(paths):
        manifest = {"id": f"m{number}", "title": "x", "items": [
            {"path": path, "sha256": digest, "size": 0, "url": "http://127.0.0.1:9/x"}]}
        file = f"{evil}/m{number}.json"
        with open(file, "w") as out:
            json.dump(manifest, out)
        done = subprocess.run([run.ferryd, "mission", "publish", file, "--space", "team", *server.place],
                              capture_output=True, text=True)
        run.check(done.returncode in (0, 1, 2, 3, 4), f"publish of {path[:30]!r}: {done.returncode}")
        status, _ = server.client().send("PUT", f"/v1/spaces/team/missions/n{number}", manifest)
        run.check(status != 500, f"a manifest with {path[:30]!r} got {status}")
    device = run.device("reader").init(server, "team")
    device.ferry("sync", expect=(0, 4))
    device.ferry("mission", "download", "--all", expect=None)
    outside = [name for name in os.listdir(run.root) if name in ("x", "etc")]
    run.check(not outside and not os.path.exists("/etc/x"), f"files outside of the folder: {outside}")
    run.figure("paths", len(paths))
