"""No value, record or packet of one writer stops, slows down or fills the devices of the other members."""

import time

from harness import Writer, attack, changes


def members(run, store="embedded"):
    """A server, a device whose tables have foreign keys, and a writer that speaks by itself."""
    server = run.server(store)
    server.space("team")
    member = run.device("member").init(server, "team")
    member.sql("CREATE TABLE list(id TEXT PRIMARY KEY, name TEXT);"
               "CREATE TABLE task(id TEXT PRIMARY KEY, list TEXT REFERENCES list(id), body TEXT);"
               "CREATE TABLE node(id TEXT PRIMARY KEY, up TEXT REFERENCES node(id) ON DELETE CASCADE)")
    member.ferry("track", "--all")
    return server, member, Writer(server.client(), "team", run.rng)


def goes_on(run, server, member, name):
    """A member's pull, push and verify go on: a row of another travels in, an own one out."""
    writer = Writer(server.client(), "team", run.rng)
    writer.insert("list", f"in {name}", name="in")
    member.sql(f"INSERT INTO list VALUES('out {name}', 'out')")
    done = member.ferry("sync", expect=None)
    run.check(done.returncode in (0, 4), f"{name}: sync ended with {done.returncode}: "
                                         f"{done.stderr[:200]}")
    rows = member.sql(f"SELECT count(*) AS n FROM list WHERE id = 'in {name}'")
    run.check(rows[0]["n"] == 1, f"{name}: another's row did not arrive")
    run.check(("list", f"out {name}") in changes(server.client(), "team"),
              f"{name}: the member's own row did not leave")


PARENTS = {"empty": "", "513 bytes": "x" * 513, "1 MiB": "y" * (1 << 20), "U+0000": "a\0b",
           "an integer": 7, "a real": 0.5, "a blob": {"blob": "AAE="}, "mark": "\u0600'",
           "a new line": "a\nb", "512 marks": "\u0300" * 256}


@attack
def parent_keys(run):
    """A foreign key that can be no record's name defers its row, and every other row goes on, on both stores."""
    for store in ("embedded", "postgres"):
        server, member, writer = members(run, store)
        for name, parent in PARENTS.items():
            writer.insert("task", f"t {name}", list=parent, body="x")
            goes_on(run, server, member, name)
        verified = member.ferry("verify", expect=None)
        run.check(verified.returncode in (0, 4) and "malformed" not in verified.stderr,
                  f"{store}: verify ends with {verified.returncode}: {verified.stderr[:200]}")
        # The writer heals its rows, and the member's table has all of them.
        writer.insert("list", "home", name="home")
        for name in PARENTS:
            writer.push([writer.operation("task", f"t {name}", {"list": "home"}, "update")])
        member.ferry("sync", expect=(0, 4))
        rows = member.sql("SELECT count(*) AS n FROM task")
        run.figure(f"{store} rows after the correction", rows[0]["n"], f"of {len(PARENTS)}")
        run.check(rows[0]["n"] == len(PARENTS), f"{store}: {rows[0]['n']} rows of {len(PARENTS)}")


def sync_time(member):
    began = time.monotonic()
    member.ferry("sync", expect=(0, 4))
    return time.monotonic() - began


@attack
def missing_root(run):
    """A chain of records without its root costs each sync of a member the same as few records do."""
    seconds = {}
    for count in (1, 400, 800):
        server, member, writer = members(run)
        for first in range(0, count, 400):
            writer.push([
                writer.operation("node", f"n{i}", {"up": f"n{i + 1}"})
                for i in range(first, min(first + 400, count))])
        first_sync = sync_time(member)
        later = min(sync_time(member) for _ in range(2))
        seconds[count] = max(first_sync, later)
        run.figure(f"{count} records, first sync", first_sync, "s")
        run.figure(f"{count} records, later sync", later, "s")
        goes_on(run, server, member, f"chain of {count}")
        if seconds[count] > 30:
            break
    run.check(seconds[max(seconds)] <= 10 * seconds[1] + 1 and 800 in seconds,
              f"a sync takes {seconds[max(seconds)]:.1f} s with {max(seconds)} records, "
              f"{seconds[1]:.2f} s with one")


@attack
def waiting_rows(run):
    """20,000 rows that a member's tables reject cost a sync no more each time than the first time."""
    server, member, writer = members(run)
    baseline = sync_time(member)
    for first in range(0, 20_000, 1000):
        writer.push([writer.operation("task", f"t{first + i}", {"list": "absent", "body": "x"})
                     for i in range(1000)])
    first_sync = sync_time(member)
    later = min(sync_time(member) for _ in range(2))
    run.figure("sync without them", baseline, "s")
    run.figure("first sync", first_sync, "s")
    run.figure("later sync", later, "s")
    run.check(later <= 10 * baseline + first_sync / 4, f"each later sync takes {later:.1f} s, the "
                                                       f"first one took {first_sync:.1f} s")
    goes_on(run, server, member, "waiting rows")


def hostile_packets(writer, rng):
    """Packets that follow the protocol's form and break its sense. Yields a name and operations."""
    make = writer.operation
    yield "times at the end", [make("list", "end", {"name": "z"}, time="ffffffffffffffff")]
    yield "a time of zero", [make("list", "zero", {"name": "z"}, time="0" * 16)]
    yield "types that no column has", [make("task", "types", {"list": {"blob": ""}, "body": 1e300})]
    yield "columns that nobody has", [make("list", "wide", {f"c{n}": n for n in range(900)})]
    yield "many columns by many updates", [
        make("list", "wider", {f"d{i}-{n}": n for n in range(40)}, "update") for i in range(45)]
    yield "names by case", [make("list", "case", {"name": 1, "NAME": 2, "Name": 3})]
    yield "tables by case", [make("LIST", "case", {"name": 1}), make("List", "case", {"name": 1})]
    yield "a cycle", [make("node", "a", {"up": "b"}), make("node", "b", {"up": "a"})]
    yield "itself", [make("node", "self", {"up": "self"})]
    yield "a record of marks", [make("list", "\u0600\"'\u0300" * 30, {"name": "\u202e\x1b[2J"})]
    yield "delete of all", [make("list", kind="batch", where=["is null", "nothing"], data={"name": None})]
    yield "delete of the unknown", [make("ghost", "r", kind="delete")]
    yield "large texts", [make("list", "big", {"name": "\u0000" * 150_000})]
    yield "numbers", [make("list", f"n{n}", {"name": v}) for n, v in enumerate(
        [{"int": str(-2**63)}, {"int": str(2**63 - 1)}, {"real": "-inf"}, {"real": "-0.0"}, 5e-324])]
    yield "one record, many operations", [make("list", "many", {"name": n}, "update")
                                          for n in range(900)]
    yield "insert and delete in turn", [
        make("list", "turn", {"name": "x"}) if n % 2 else make("list", "turn", kind="delete")
        for n in range(400)]


@attack
def hostile_writer(run):
    """Packets that keep the form and break the sense leave each member's pull, push and verify working."""
    for store in ("embedded", "postgres"):
        server, member, writer = members(run, store)
        accepted = refused = 0
        for name, operations in hostile_packets(writer, run.rng):
            status, body = writer.offer(operations)
            run.check(status in (200, 202, 400, 409, 413, 422), f"{store}, {name}: {status}")
            accepted, refused = accepted + (status == 200), refused + (status != 200)
            goes_on(run, server, member, name)
        run.figure(f"{store} packets accepted", accepted)
        run.figure(f"{store} packets refused", refused)
        done = member.ferry("verify", expect=None)
        run.check(done.returncode in (0, 4), f"{store}: verify ends with {done.returncode}: "
                                             f"{done.stderr[:200]}")
        run.alive(server)


@attack
def hostile_chains(run):
    """Buffered packets, forks and stolen device identifiers of one principal block no packet of another."""
    server = run.server("embedded")
    server.space("team")
    evil_token, good_token = (server.token("team", "writer", owner) for owner in ("evil", "good"))
    evil = Writer(server.client(evil_token), "team", run.rng)
    good = Writer(server.client(good_token), "team", run.rng)
    good.insert("t", "a", n=1)
    statuses = {}
    for number in range(6000):
        thief = Writer(evil.client, "team", run.rng)
        if number % 3 == 0:
            thief.device = good.device
        thief.tail = thief.uuid() if number % 2 else good.tail
        status, _ = thief.offer([thief.operation("t", f"x{number % 50}", {"n": number})])
        statuses[status] = statuses.get(status, 0) + 1
        if status == 429 and statuses[429] > 50:
            break
    run.figure("answers", " ".join(f"{s}×{n}" for s, n in sorted(statuses.items())))
    run.check(not {500, 503} & set(statuses), f"answers are clear: {statuses}")
    good.insert("t", "b", n=2)
    good.insert("t", "c", n=3)
    page = good.client.json("GET", f"/v1/spaces/team/changes?limit=1&device={good.device}")
    run.check(page["applied"] == good.tail, "the honest device's chain is its own")
    run.alive(server)
