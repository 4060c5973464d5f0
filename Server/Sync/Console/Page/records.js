// The records of a table, and one record with its history.
import { get, pagePath, spacePath } from "./api.js";
import { clock, date, deviceName, number, value } from "./format.js";
import { announce, badge, el, failure, field, hint, listing } from "./parts.js";

export async function records(space, query) {
  const tables = await allTables(space);
  const own = tables.filter((table) => !table.startsWith("ferry_"));
  const table = query.get("table") ?? own[0] ?? tables[0];
  if (table === undefined) return hint("This space has no records yet.");
  const choice = el("select", { change: (event) => {
    location.hash = pagePath(space, "records", { table: event.target.value });
  } }, [...new Set([...tables, table])].map((name) =>
    el("option", { value: name, selected: name === table }, name)));
  const from = el("input", { type: "search", value: query.get("from") ?? "", autocomplete: "off" });
  const form = el("form", { class: "card", submit: (event) => {
    event.preventDefault();
    const start = from.value ? { table, from: from.value } : { table };
    location.hash = pagePath(space, "records", start);
  } }, el("div", { class: "form" }, field("Table", choice), field("From identifier", from)),
  el("div", { class: "actions" }, el("button", { type: "submit", class: "quiet" }, "Show")));
  return el("div", {}, form, await list(space, table, query.get("from")));
}

/** The first thousand tables. */
async function allTables(space) {
  const names = [];
  let after = null;
  do {
    const answer = await get(spacePath(space, "tables"), { after, limit: 500 });
    names.push(...answer.tables);
    after = answer.next;
  } while (after && names.length < 1_000);
  return names;
}

async function list(space, table, from) {
  let start = null;
  if (from) {
    // The record itself, which the list after it leaves out.
    const answer = await get(spacePath(space, "history"), { table, record: from, limit: 1 });
    start = answer.record ? { ...answer.record, columns: answer.record.columns.slice(0, 6) } : null;
  }
  return listing({
    caption: `Records of ${table}`,
    empty: "There are no records here.",
    columns: [
      { label: "Record", cell: (row) => el("a", {
        href: pagePath(space, "record", { table, record: row.record }),
      }, row.record) },
      { label: "Values", cell: (row) => row.alive ? summary(row) : badge("deleted", "soft") },
      { label: "Changed", cell: (row) => changed(row) },
      { label: "Place", number: true, cell: (row) => number(row.sequence) },
    ],
    load: async (after) => {
      const answer = await get(spacePath(space, "records"), { table, after: after ?? from });
      const first = after === null && start ? [start] : [];
      return { rows: [...first, ...answer.records], next: answer.next };
    },
  });
}

const shown = (column, limit = 60) =>
  "value" in column ? value(column.value, limit) : `${number(column.bytes)} bytes`;

const summary = (row) => el("ul", { class: "values" }, row.columns.slice(0, 6).map((column) =>
  el("li", {}, el("span", { class: "soft" }, `${column.column}: `), shown(column))),
row.columns.length > 6 && el("li", { class: "soft" }, `${row.columns.length - 6} more columns`));

function changed(row) {
  const stamps = [row.inserted, row.deleted, ...row.columns].filter(Boolean);
  const times = stamps.map((stamp) => clock(stamp.time));
  return times.length ? date(Math.max(...times)) : "";
}

// MARK: One record

export async function record(space, query) {
  const key = { table: query.get("table") ?? "", record: query.get("record") ?? "" };
  const first = await get(spacePath(space, "history"), key);
  const known = [...first.devices];
  const back = el("p", {}, el("a", { href: pagePath(space, "records", { table: key.table }) },
    `Records of ${key.table}`));
  const title = el("h3", {}, `${key.table} / ${key.record}`);
  return el("div", {}, back, el("section", { class: "card" }, title, present(first.record, known)),
    history(space, key, first, known));
}

function present(row, known) {
  if (!row) return el("p", { class: "soft" }, "The server has no such record.");
  if (!row.alive) {
    return el("p", {}, badge("deleted", "bad"), row.deleted
      && ` by ${deviceName(row.deleted.device, known)} at ${date(clock(row.deleted.time))} UTC`);
  }
  return el("table", {}, el("caption", {}, "The values in force"), el("thead", {}, el("tr", {},
    ["Column", "Value", "Written by", "At (UTC)"].map((label) =>
      el("th", { scope: "col" }, label)))),
  el("tbody", {}, row.columns.map((column) => el("tr", {},
    el("td", { "data-label": "Column" }, el("span", {}, column.column)),
    el("td", { "data-label": "Value" }, el("span", {}, shown(column, 4_000))),
    el("td", { "data-label": "Written by" }, el("span", {}, deviceName(column.device, known))),
    el("td", { "data-label": "At (UTC)" }, el("span", {}, date(clock(column.time))))))));
}

function history(space, key, first, known) {
  const body = el("tbody");
  const state = el("p", { class: "hint" });
  const more = el("button", { type: "button", class: "quiet", click: () => next() },
    "Look further back");
  const heads = ["Place", "When (UTC)", "Who", "What", "Values", "What lost"];
  const area = el("section", { class: "card" }, el("h3", {}, "History"),
    el("table", {}, el("caption", {}, "Operations on this record, the last first"),
      el("thead", {}, el("tr", {}, heads.map((label) => el("th", { scope: "col" }, label)))), body),
    state, more);
  let place = null;
  function add(answer) {
    known.push(...answer.devices);
    for (const entry of answer.operations) body.append(line(entry, known, heads));
    place = answer.next;
    more.hidden = place === null;
    state.textContent = place === null
      ? ended(answer.horizon) : `Looked at the space's history down to place ${number(place)}.`;
    announce(`${body.children.length} operations on this record`);
  }
  async function next() {
    more.disabled = true;
    try {
      const before = body.children.length;
      // Until another operation is found, or for a while.
      for (let round = 0; round < 25 && place && body.children.length === before; round += 1) {
        add(await get(spacePath(space, "history"), { ...key, before: place }));
      }
    } catch (error) {
      area.append(failure(error));
    }
    more.disabled = false;
  }
  add(first);
  return area;
}

const ended = (horizon) => horizon === "0"
  ? "This is all of the space's history."
  : `This is all that the server keeps. Operations before place ${number(horizon)} were pruned.`;

function line(entry, known, heads) {
  const cells = [
    number(entry.sequence), date(clock(entry.time)),
    [deviceName(entry.device, known), owner(entry.device, known)],
    [badge(entry.kind, entry.kind === "delete" ? "bad" : "good"), entry.batch && " by a batch"],
    entry.data === null ? "" : pairs(Object.entries(entry.data)),
    lost(entry.outcome, known),
  ];
  return el("tr", {}, cells.map((cell, index) =>
    el("td", { "data-label": heads[index] }, el("span", {}, cell))));
}

function owner(device, known) {
  const found = known.find((one) => one.device === device);
  return found && el("span", { class: "small" }, found.principal);
}

const pairs = (entries) => el("ul", { class: "values" }, entries.map(([name, wire]) =>
  el("li", {}, el("span", { class: "soft" }, `${name}: `), value(wire))));

/** The values that lost when an operation was merged. */
export function lost(outcome, known) {
  const conflicts = typeof outcome === "object" ? outcome.conflicts ?? [] : [];
  if (conflicts.length === 0) return el("span", { class: "soft" }, "nothing");
  return el("ul", { class: "values" }, conflicts.map((conflict) => el("li", {},
    conflict.column == null ? "the record's existence"
      : [el("span", { class: "soft" }, `${conflict.column}: `),
        el("span", { class: "lost" }, value(conflict.lost))],
    el("span", { class: "small" }, `of ${deviceName(conflict.loser.device, known)}, to `
      + `${deviceName(conflict.winner.device, known)}`))));
}
