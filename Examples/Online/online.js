// An online client of Ferry for browsers. It keeps nothing on the device: it pulls all records,
// shows the changes of others as they come, and pushes edits. § is a section of Protocol/SPEC.md.
const byId = (id) => document.getElementById(id);
const append = (parent, tag, members) =>
  parent.appendChild(Object.assign(document.createElement(tag), members));
const show = (text) => { byId("status").textContent = text; };
const pause = (time, value) => new Promise((done) => setTimeout(done, time, value));
let [latest, offset] = [0n, 0]; // The latest time so far; the server's clock minus this one.
/** Returns a time that is later than all times that this page has seen (§2). */
function newTime() {
  const now = BigInt(Date.now() + offset) << 16n;
  return (latest = now > latest ? now : latest + 1n).toString(16).padStart(16, "0");
}
/** Returns a UUID of version 7 (§2). */
const newID = () => newTime().replace(/(.{8})(.{4}).*/, "$1-$2-7") + crypto.randomUUID().slice(15);
const headers = { "Content-Type": "application/json" };
let [space, cursor, head, device, tail, work] = ["", "", "0", newID(), null, Promise.resolve()];
/** Runs a step after the steps before it, so that a pull and a push never overlap. */
const inOrder = (step) => (work = work.catch(() => {}).then(step));
/** Sends a request until it is answered. Throws a problem (§9) that no repetition solves. */
async function ask(path, options) {
  for (;; await pause(1000)) {
    const answer = await fetch(space + path, { headers, ...options }).catch(() => null);
    if (answer?.ok) return answer;
    const problem = await answer?.json().catch(() => null);
    if (problem && problem.action !== "retry") throw problem;
    show(problem?.detail ?? `No server, or it does not declare --allow-origin ${location.origin}.`);
  }
}
/** Pulls all changes after the cursor, and shows them when the whole list is here (§5). */
async function pull() {
  const [changes, page] = [[], { cursor, more: true }];
  while (page.more) {
    const answer = await ask(`/changes?cursor=${encodeURIComponent(page.cursor)}`);
    changes.push(...Object.assign(page, await answer.json()).changes);
  }
  [cursor, head, offset] = [page.cursor, page.head, page.time - Date.now()];
  changes.forEach(apply);
  show(`Live: ${byId("records").childElementCount} records, head ${head}.`);
}
/** Shows a change. The field that the user is editing keeps its text. */
function apply({ table, record, writes }) {
  for (const { time } of writes) if (BigInt(`0x${time}`) > latest) latest = BigInt(`0x${time}`);
  const [id, kinds] = [JSON.stringify([table, record]), writes.map(({ kind }) => kind)];
  if (kinds.some(Boolean)) byId(id)?.remove(); // Writes of columns have no kind.
  if (kinds.includes("delete")) return;
  const fields = byId(id) ?? append(byId("records"), "fieldset", { id });
  if (!fields.firstChild) append(fields, "h2", { textContent: `${table}/${record}` });
  for (const [name, value] of writes.flatMap(({ data }) => Object.entries(data ?? {}))) {
    const input = fields.elements.namedItem(name)
      ?? append(append(fields, "label", { textContent: name }), "input", { name, step: "any" });
    input.readOnly = value !== null && typeof value === "object"; // A tagged value (§3).
    input.type = typeof value === "number" ? "number" : "text";
    input.defaultValue = input.readOnly ? JSON.stringify(value) : value ?? "";
    if (input !== document.activeElement) input.value = input.defaultValue;
    input.onblur = () => { input.value = input.defaultValue; };
    input.onchange = () => edit(table, record, input);
  }
}
function edit(table, record, input) {
  const value = input.type === "number" ? input.valueAsNumber : input.value;
  input.defaultValue = input.value;
  inOrder(() => push(table, record, { [input.name]: value })).catch(restart);
}
/** Pushes an edit after the last one, the same packet until it is answered (§4). */
async function push(table, record, data) {
  const operation = { id: newID(), table, record, kind: "update", time: newTime(), data };
  const body = JSON.stringify({ device, dependency: tail, base: head, operations: [operation] });
  await ask(`/packets?cursor=${encodeURIComponent(cursor)}`, { method: "POST", body });
  tail = operation.id;
}
/** Begins from the start after a refusal, with a device that has no operations before (§4). */
async function restart({ detail }) {
  [cursor, head, device, tail] = ["", "0", newID(), null];
  byId("records").replaceChildren();
  await inOrder(pull);
  show(`The server refuses: ${detail}`);
}
/** Listens to the head (§7). EventSource cannot send a token, but fetch can. */
async function live() {
  for (;; await pause(1000)) {
    try {
      const events = (await ask("/events")).body.getReader();
      do await inOrder(pull); // Heartbeats come every 15 s, so silence means a dead connection.
      while (!(await Promise.race([events.read(), pause(45_000, { done: true })])).done);
      events.cancel();
    } catch (problem) {
      if (problem.action === "fix") return show(`The server refuses: ${problem.detail}`);
      if (problem.action === "resynchronise") await restart(problem).catch(() => {});
    }
  }
}
byId("connection").onsubmit = (event) => {
  event.preventDefault();
  event.target.inert = true;
  const { server, space: name, token } = Object.fromEntries(new FormData(event.target));
  space = `${server.replace(/\/+$/, "")}/v1/spaces/${encodeURIComponent(name)}`;
  if (token) headers.Authorization = `Bearer ${token}`;
  live();
};
