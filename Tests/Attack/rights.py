"""No text of a token, a query, a schema or a backup gives more than the one that it states to every reader."""

import base64
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import time

from harness import Writer, attack, changes


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(claim='{"team":"reader"}', more="", exp=None, **members):
    """The claims as a text, so that a member may be there twice. Members replace the right ones."""
    right = {"iss": '"https://id.example"', "aud": '"ferry"', "sub": '"x"',
             "exp": str(int(time.time()) + 600 if exp is None else exp), **members}
    return "{" + ",".join(f'"{name}":{value}' for name, value in right.items()) + f',"ferry":{claim}{more}}}'


HEAD = '{"alg":"HS256","kid":"k"}'
# All of them are signed with the right key.
REFUSED = {
    "an algorithm twice": ('{"alg":"none","alg":"HS256","kid":"k"}', claims()),
    "extensions": ('{"alg":"HS256","kid":"k","crit":["b64"],"b64":false}', claims()),
    "another type": ('{"alg":"HS256","kid":"k","typ":"id+jwt"}', claims()),
    "no algorithm": ('{"alg":"none","kid":"k"}', claims()),
    "the algorithm of another key": ('{"alg":"RS256","kid":"k"}', claims()),
    "spaces twice": (HEAD, claims(more=',"ferry":{"*":"admin"}')),
    "a space twice": (HEAD, claims('{"team":"reader","team":"admin"}')),
    "an end twice": (HEAD, claims(more=',"exp":1')), "an end before": (HEAD, claims(exp=-1)),
    "an end out of range": (HEAD, claims(exp="9223372036854775807")),
    "an end of 1e400": (HEAD, claims(exp="1e400")), "an end as a text": (HEAD, claims(exp='"99999999999"')),
    "a beginning out of range": (HEAD, claims(more=',"nbf":9223372036854775807')),
    "issued in the future": (HEAD, claims(more=f',"iat":{int(time.time()) + 9999}')),
    "another audience": (HEAD, claims(aud='"ferry\\u0000"')), "another issuer": (HEAD, claims(iss='"https://id.example/"')),
    "a role by case": (HEAD, claims('{"team":"READER"}')), "no spaces": (HEAD, claims("null")),
    "a new line in a list": (HEAD, claims('"team=reader,\\nsecret=reader"')),
    "101 spaces": (HEAD, claims(json.dumps({f"s{n}": "reader" for n in range(101)}))),
    "no subject": (HEAD, claims(sub='""')), "controls in a subject": (HEAD, claims(sub='"a\\u001b[2J\\n"')),
    "an invisible subject": (HEAD, claims(sub='"a\\u202eb"')), "a subject of 5 KB": (HEAD, claims(sub=f'"{"z" * 5000}"')),
    "another space by case": (HEAD, claims('{"TEAM":"reader"}')),
}
ACCEPTED = {
    "plain": (HEAD, claims()), "an audience in a list": (HEAD, claims(aud='["x","ferry"]')),
    "an issuer with escapes": (HEAD, claims(iss='"https:\\/\\/id.example"')),
    "a list as a text": (HEAD, claims('"team=reader"')),
    "the address of a key": ('{"alg":"HS256","kid":"k","jku":"http://127.0.0.1:1/"}', claims()),
}


@attack
def signed_tokens(run):
    """A signed JSON Web Token that two readers could understand differently gives no right at all."""
    key, folder = os.urandom(32), run.folder("keys")
    with open(f"{folder}/jwks.json", "w") as file:
        json.dump({"keys": [{"kty": "oct", "kid": "k", "alg": "HS256", "k": text(key)}]}, file)
    server = run.server("embedded", "--jwt-issuer", "https://id.example", "--jwt-audience", "ferry",
                        "--jwks", f"{folder}/jwks.json")
    server.space("team", "secret")

    def token(head, body):
        signed = f"{text(head.encode())}.{text(body.encode())}"
        return f"{signed}.{text(hmac.new(key, signed.encode(), hashlib.sha256).digest())}"

    def rights(secret):
        client = server.client(secret)
        return (client.send("GET", "/v1/spaces/team")[0], client.send("GET", "/v1/spaces/secret")[0],
                client.send("PUT", "/v1/spaces/team/schema", {"tables": {}})[0])

    for name, parts in ACCEPTED.items():
        seen = rights(token(*parts))
        run.check(seen == (200, 403, 403), f"{name}: {seen}")
    for name, parts in REFUSED.items():
        seen = rights(token(*parts))
        run.check(set(seen) <= {400, 401, 403}, f"{name}: {seen}")
    right = token(*ACCEPTED["plain"])
    for name, secret in {"padding": right + "=", "a point more": right + ".", "a word more": right + " x",
                         "other bits at the end": right[:-1] + chr(ord(right[-1]) + 1),
                         "no signature": right.rsplit(".", 1)[0] + "."}.items():
        seen = rights(secret)
        run.check(set(seen) <= {400, 401, 403}, f"{name}: {seen}")
    run.check("\x1b" not in server.log, "no escape of a subject is in the log")
    run.figure("tokens", len(REFUSED) + len(ACCEPTED) + 5)
    run.alive(server)


BODIES = {
    "a space twice": b'{"spaces":{"team":"reader","team":"admin"}}',
    "spaces twice": b'{"spaces":{"team":"reader"},"spaces":{"*":"admin"}}',
    "all names that begin so": b'{"spaces":{"team*":"reader"}}',
    "another space": b'{"spaces":{"secret":"reader"}}', "all spaces": b'{"spaces":{"*":"reader"}}',
    "an owner": b'{"spaces":{"team":"reader"},"owner":"root"}',
    "an end of 1e400": b'{"spaces":{"team":"reader"},"expiresIn":1e400}',
    "half a pair": b'{"spaces":{"team":"reader"},"name":"\\ud800"}',
    "controls": b'{"spaces":{"team":"reader"},"name":"\\u009b31m"}',
    "an escaped name of another space": b'{"spaces":{"\\u0073ecret":"reader"}}',
}


@attack
def tokens(run):
    """An admin of one space makes no token with more rights than its own, and each change of rights is in the audit log."""
    server = run.server("embedded")
    server.space("team", "secret")
    root = server.client(server.token("*", "admin", "root"))
    admin = server.client(server.token("team", "admin"))
    for name, body in BODIES.items():
        status, content = admin.send("POST", "/v1/tokens", body)
        run.check(status in (400, 403), f"{name}: {status} {content[:100]!r}")

    def entries():
        return [entry["action"] for entry in root.json("GET", "/v1/audit")["entries"]]

    def step(action, change):
        before = len(entries())
        result = change()
        run.check(action in entries()[before:], f"{action} is not in the audit log")
        return result

    made = step("token_created", lambda: admin.json(
        "POST", "/v1/tokens", {"name": "n", "spaces": {"team": "reader"}}))
    step("token_rotated", lambda: admin.json("POST", f"/v1/tokens/{made['id']}/rotation", {"grace": 0}))
    step("token_revoked", lambda: admin.send("DELETE", f"/v1/tokens/{made['id']}"))
    step("schema_applied", lambda: admin.json("PUT", "/v1/spaces/team/schema", {"tables": {"t": {}}}))
    step("space_created", lambda: root.send("PUT", "/v1/spaces/new"))
    step("retention_set", lambda: server.ferryd("space", "set", "team", "--retention", "30d"))
    step("space_pruned", lambda: server.ferryd("space", "prune", "team"))
    run.check(server.client(made["token"]).send("GET", "/v1/spaces/team")[0] == 401,
              "the token of before the rotation is worth nothing")
    run.figure("bodies", len(BODIES))
    run.alive(server)


LISTS = ["changes", "records?table=t&", "tables", "history?table=t&record=r&", "conflicts", "rejections",
         "devices", "missions", "bundles"]
LIMITS = ["limit=1&limit=2", "limit=1&%6cimit=1", "limit=0", "limit=-0", "limit=-1", "limit=%2B1", "limit=1e3",
          "limit=01x", "limit=1%00", "limit=99999999999999999999", "limit=9223372036854775808", "limit=",
          "limit=%D9%A1", "limit=1;limit=2&limit=3"]


@attack
def parameters(run):
    """A parameter that is there twice, or is no plain number in its range, is refused on each list."""
    server = run.server("embedded")
    server.space("team")
    admin = server.client(server.token("team", "admin"))
    root = server.client(server.token("*", "admin", "root"))
    Writer(admin, "team", run.rng).insert("t", "r", n=1)
    places = [f"/v1/spaces/team/{name}" for name in LISTS] + ["/v1/audit", "/v1/tokens", "/v1/spaces"]
    for place in places:
        place += "" if place.endswith("&") else "?"
        client = admin if "team" in place else root
        status, content = client.send("GET", place + "limit=1")
        run.check(status == 200, f"{place}limit=1: {status} {content[:100]!r}")
        for limit in LIMITS:
            status, _ = client.send("GET", place + limit)
            run.check(status == 400, f"{place}{limit}: {status}")
    for path in ("changes?cursor=x", "changes?cursor=0000000000000000.9223372036854775807.9223372036854775807",
                 "changes?device=00000000-0000-0000-0000-000000000000", "activity?unit=year",
                 "conflicts?before=99999999999999999999/x", "changes?cursor=&cursor="):
        status, _ = admin.send("GET", f"/v1/spaces/team/{path}")
        run.check(status == 400, f"{path}: {status}")
    run.figure("requests", len(places) * len(LIMITS))
    run.alive(server)


@attack
def restored(run):
    """A changed backup restores nothing from outside of its folder, and nothing without its checksum."""
    server = run.server("embedded")
    server.space("team")
    admin = server.client(server.token("team", "admin"))
    digest = hashlib.sha256(b"hello").hexdigest()
    admin.send("PUT", f"/v1/spaces/team/blobs/{digest}", b"hello",
               {"Content-Type": "application/octet-stream"})
    admin.send("PUT", "/v1/spaces/team/missions/m", {"items": [
        {"path": "f", "sha256": digest, "size": 5}]})
    backup, outside = f"{run.folder('backup')}/copy", run.folder("outside")
    server.ferryd("backup", backup)
    with open(f"{outside}/secret", "w") as file:
        file.write("a secret of the machine")

    def restore(name, change):
        copy, to = f"{run.folder(name)}/copy", f"{run.folder(name)}/to"
        shutil.copytree(backup, copy)
        change(copy)
        done = subprocess.run([run.ferryd, "restore", copy, "--data", to], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        found = [path for path in files(to) if os.path.islink(path)]
        run.check(not found, f"{name}: links are restored: {found}")
        return done

    def link(path):
        os.rename(path, f"{outside}/{os.path.basename(path)}")
        os.symlink(f"{outside}/{os.path.basename(path)}", path)

    def folder_link(copy):
        os.rename(f"{copy}/content", f"{outside}/content")
        os.symlink(f"{outside}/content", f"{copy}/content")

    def secret(copy):
        """A content whose checksum the attacker guessed: it would be served to members."""
        digest = hashlib.sha256(open(f"{outside}/secret", "rb").read()).hexdigest()
        place = f"{copy}/content/{digest[:2]}/{digest[2:4]}"
        os.makedirs(place)
        os.symlink(f"{outside}/secret", f"{place}/{digest}")
        rewrite(copy, lambda manifest: manifest["content"].append(
            {"sha256": digest, "size": os.path.getsize(f"{outside}/secret")}))

    def rewrite(copy, change):
        with open(f"{copy}/backup.json") as file:
            manifest = json.load(file)
        change(manifest)
        with open(f"{copy}/backup.json", "w") as file:
            json.dump(manifest, file)

    run.check(restore("plain", lambda copy: None).returncode == 0, "the backup itself is restored")
    cases = {
        "a secret": secret, "a folder": folder_link,
        "the store": lambda copy: link(f"{copy}/store.sqlite"),
        "the key": lambda copy: link(f"{copy}/mission-key.pem"),
        "another name": lambda copy: rewrite(copy, lambda m: m["content"][0].update(
            sha256="../../../outside/secret")),
        "another store": lambda copy: open(f"{copy}/store.sqlite", "ab").write(b"x"),
    }
    for name, change in cases.items():
        done = restore(name, change)
        run.check(done.returncode != 0, f"{name}: restored, {done.stdout[:80]!r}")
        run.check(done.returncode in (0, 1, 2, 3, 4), f"{name}: ended with {done.returncode}")
    run.figure("changed backups", len(cases))


def files(folder):
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]


@attack
def private_tables(run):
    """No schema, alias or reference of a space takes a table along that the device does not track."""
    server = run.server("embedded")
    server.space("team")
    client, device = server.client(), run.device().init(server, "team")
    device.sql("CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT);"
               "CREATE TABLE secrets(id TEXT PRIMARY KEY, title TEXT, pin TEXT)")
    device.sql("INSERT INTO secrets VALUES('s0', 't', '0')")
    device.ferry("track", "tasks")
    device.sql("INSERT INTO tasks VALUES('t1', 'x')")
    device.ferry("sync")
    writer = Writer(client, "team", run.rng)
    key = {"key": "id", "columns": [{"name": "title", "type": "text"}]}
    schemas = [
        {"tasks": {"aliases": ["secrets"]}}, {"other": {"aliases": ["secrets"]}},
        {"SECRETS": {"definition": key}}, {"secrets": {"definition": key}}, {"kid": {"definition": {
            "key": "id", "columns": [{"name": "s", "type": "text"}], "references": [
                {"columns": ["s"], "table": "secrets", "onDelete": "restrict", "onUpdate": "cascade"}]}}}]
    accepted = 0
    for number, tables in enumerate(schemas):
        accepted += client.send("PUT", "/v1/spaces/team/schema?losses=accept", {"tables": tables})[0] == 200
        for table in ("secrets", "SECRETS", "kid", "other"):
            writer.offer([writer.operation(table, "s0", {"title": "theirs", "s": "s0"})])
        device.ferry("sync", expect=(0, 4))
        device.sql(f"INSERT INTO secrets VALUES('s{number + 1}', 't', '{number + 1}')")
        if number == 1:
            device.sql("DROP TABLE tasks")
        device.ferry("sync", expect=(0, 4))
        device.ferry("sync", expect=(0, 4))
    rows = device.sql("SELECT id, title, pin FROM secrets ORDER BY id")
    run.check(rows == [{"id": f"s{n}", "title": "t", "pin": str(n)} for n in range(len(schemas) + 1)],
              f"the private table is as its owner left it: {rows}")
    pins = [key for key, data in changes(client, "team").items() if "pin" in data]
    run.check(not pins, f"private rows are on the server: {pins}")
    run.figure("schemas accepted", accepted, f"of {len(schemas)}")
    run.check(accepted, "a schema is accepted at all")
    run.alive(server)
