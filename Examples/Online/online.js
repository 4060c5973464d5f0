// An online client of Ferry for browsers. It keeps nothing on the device: it pulls all records,
// shows the changes of others as they come, and pushes edits. § is a section of Protocol/SPEC.md.
"use strict";
const byId = (id) => document.getElementById(id);
const show = (text) => { byId("status").textContent = text; };
const records = new Map(); // By table and record: { article, inputs, values }.
const keyOf = (table, record) => JSON.stringify([table, record]);
const waiting = []; // Packets that the server has not confirmed, in their order.
let [space, headers, connection] = ["", {}, new AbortController()];
let [cursor, head, device, tail] = ["", "0", "", null]; // The last operation is the tail (§4).
let [reading, offset, work] = [0n, 0, Promise.resolve()];

/** Returns a time that is later than all times that this page has seen (§2). */
function newTime() {
  const now = BigInt(Date.now() + offset) << 16n;
  return (reading = now > reading ? now : reading + 1n).toString(16).padStart(16, "0");
}

/** Returns a UUID of version 7 (§2). */
const newIdentifier = (time = newTime()) =>
  `${time.slice(0, 8)}-${time.slice(8, 12)}-7${crypto.randomUUID().slice(15)}`;

/** Runs a step after the steps before it, so that a pull and a push never overlap. */
const inOrder = (step) => (work = work.catch(() => {}).then(step));

/** Sends a request. Throws the server's problem (§9) if it refuses the request. */
async function ask(path, options = {}) {
  const answer = await fetch(space + path,
    { signal: connection.signal, ...options, headers: { ...headers, ...options.headers } });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({ action: "retry" }));
  throw Object.assign(new Error(problem.detail ?? `status ${answer.status}`), problem);
}

/** Pulls all changes after the cursor, and shows them when the whole list is here (§5). */
async function pull() {
  const changes = [];
  let page = { cursor, more: true };
  while (page.more) {
    page = await (await ask(`/changes?cursor=${encodeURIComponent(page.cursor)}`)).json();
    changes.push(...page.changes);
  }
  [cursor, head, offset] = [page.cursor, page.head, page.time - Date.now()];
  for (const change of changes) apply(change);
  show(`Live: ${records.size} records, head ${head}.`);
}

function apply({ table, record, writes }) {
  const kinds = writes.map((write) => write.kind);
  if (kinds.includes("insert") || kinds.includes("delete")) remove(keyOf(table, record));
  for (const { time } of writes) if (BigInt(`0x${time}`) > reading) reading = BigInt(`0x${time}`);
  if (!kinds.includes("delete")) render(table, record, writes.map((write) => write.data ?? {}));
}

/** Sends the packets that wait, each unchanged until it is answered: it is applied once (§4). */
async function push() {
  while (waiting.length > 0) {
    try {
      await ask(`/packets?cursor=${encodeURIComponent(cursor)}`, { method: "POST",
        headers: { "Content-Type": "application/json" }, body: JSON.stringify(waiting[0]) });
    } catch (error) {
      if (error.action !== "fix" && error.action !== "resynchronise") throw error;
      if (error.action === "fix") waiting.shift();
      restart();
      await pull();
      throw error;
    }
    waiting.shift();
  }
}

function edit(table, record, column, former, text) {
  const isNumber = typeof former === "number" && text.trim() !== "" && Number.isFinite(+text);
  const [time, value] = [newTime(), isNumber ? +text : text];
  const operation = { id: newIdentifier(time), table, record, kind: "update", time,
    data: { [column]: value } };
  waiting.push({ device, dependency: tail, base: head, operations: [operation] });
  tail = operation.id;
  inOrder(push).catch((error) => show(`The edit is not on the server: ${error.message}`));
  return value;
}

/** Begins with a new device and from the start: no server would take up the old chain. */
function restart() {
  [cursor, head, device, tail] = ["", "0", newIdentifier(), null];
  for (const key of [...records.keys()]) remove(key);
  for (const packet of waiting) {
    Object.assign(packet, { device, dependency: tail, base: head });
    tail = packet.operations[0].id;
  }
}

/** Listens to the head (§7). EventSource cannot send a token, but fetch can. */
async function live({ signal } = connection) {
  while (!signal.aborted) {
    try {
      const events = (await ask("/events")).body.pipeThrough(new TextDecoderStream()).getReader();
      await inOrder(pull);
      for (let rest = "", part; !(part = await inTime(events)).done;) {
        const lines = (rest + part.value).split("\n");
        rest = lines.pop();
        if (lines.some((line) => line.startsWith("data:"))) await inOrder(pull);
        await inOrder(push);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.action === "resynchronise") restart();
      show(error.action ? `The server refuses: ${error.message}.`
        : `No server, or it does not declare --allow-origin ${location.origin}.`);
      if (error.action === "fix") return;
    }
    await new Promise((done) => setTimeout(done, 1000));
  }
}

/** Reads on. A heartbeat comes every 15 s, so silence means a dead connection (§7). */
async function inTime(events) {
  const timer = setTimeout(() => events.cancel(), 45_000);
  return events.read().finally(() => clearTimeout(timer));
}

function remove(key) {
  records.get(key)?.article.remove();
  records.delete(key);
}

/** Shows values of a record. The field that the user is editing keeps its text. */
function render(table, record, values) {
  const key = keyOf(table, record);
  if (!records.has(key)) {
    const article = byId("records").appendChild(document.createElement("article"));
    article.appendChild(document.createElement("h2")).textContent = `${table}/${record}`;
    records.set(key, { article, inputs: new Map(), values: {} });
  }
  const entry = records.get(key);
  Object.assign(entry.values, ...values);
  for (const [column, value] of Object.entries(entry.values)) {
    let input = entry.inputs.get(column);
    if (!input) {
      const label = entry.article.appendChild(document.createElement("label"));
      label.append(column);
      input = label.appendChild(document.createElement("input"));
      const write = () => edit(table, record, column, entry.values[column], input.value);
      input.onchange = () => { entry.values[column] = write(); };
      input.onblur = () => records.get(key) === entry && render(table, record, []);
      entry.inputs.set(column, input);
    }
    input.readOnly = value !== null && typeof value === "object"; // A tagged value (§3).
    if (input === document.activeElement) continue;
    input.value = input.readOnly ? JSON.stringify(value) : value ?? "";
  }
}

byId("connection").addEventListener("submit", (event) => {
  event.preventDefault();
  connection.abort();
  connection = new AbortController();
  const { server, space: name, token } = Object.fromEntries(new FormData(event.target));
  space = `${server.replace(/\/+$/, "")}/v1/spaces/${encodeURIComponent(name)}`;
  headers = token ? { Authorization: `Bearer ${token}` } : {};
  waiting.length = 0;
  restart();
  live();
});
