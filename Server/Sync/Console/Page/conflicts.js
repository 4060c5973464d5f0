// The values that lost, and the rejected packets.
import { get, pagePath, spacePath } from "./api.js";
import { ago, clock, date, deviceName, number, short, value } from "./format.js";
import { badge, el, hint, listing } from "./parts.js";

const recordLink = (space, table, record) => el("a", {
  href: pagePath(space, "record", { table, record }),
}, `${table} / ${record}`);

export async function conflicts(space) {
  let known = [];
  let horizon = "0";
  const rows = await listing({
    caption: "Values that lost, the last first",
    empty: "No value has lost a conflict in the history that the server keeps.",
    columns: [
      { label: "Decided at (UTC)", cell: ({ notice }) => [
        date(Math.max(...notice.conflicts.map((one) => clock(one.winner.time)))),
        el("span", { class: "small" }, `place ${number(notice.sequence)}`)] },
      { label: "Record", cell: ({ notice }) => recordLink(space, notice.table, notice.record) },
      { label: "Lost", cell: ({ notice }) => el("ul", { class: "values" },
        notice.conflicts.map((one) => el("li", {}, what(one)))) },
      { label: "Of", cell: ({ device }) => person(device, known) },
      { label: "To", cell: ({ notice }) => [...new Set(notice.conflicts.map((one) =>
        one.winner.device))].map((device) => person(device, known)) },
    ],
    load: async (before) => {
      const answer = await get(spacePath(space, "conflicts"), { before, limit: 50 });
      known = [...known, ...answer.devices];
      horizon = answer.horizon;
      return { rows: answer.conflicts, next: answer.next };
    },
  });
  return el("div", {}, rows, hint("Devices keep a value that lost, and ",
    el("code", {}, "ferry resolve"), " writes it again. ", horizon === "0"
      ? "The server keeps all of this space's history."
      : `The server keeps conflicts from place ${number(horizon)} on.`));
}

const what = (conflict) => [
  conflict.column == null ? "the record's existence"
    : [el("span", { class: "soft" }, `${conflict.column}: `),
      el("span", { class: "lost" }, value(conflict.lost))],
  conflict.ask && [" ", badge("question", "warn")],
];

const person = (device, known) => el("span", { title: device }, deviceName(device, known),
  el("span", { class: "small" }, known.find((one) => one.device === device)?.principal));

export async function rejections(space) {
  const rows = await listing({
    caption: "Rejected packets and operations, the last first",
    empty: "Nothing was rejected.",
    columns: [
      { label: "Last", cell: (row) => [ago(row.lastAt),
        el("span", { class: "small" }, `${date(row.lastAt)} UTC`)] },
      { label: "Times", number: true, cell: (row) => number(row.times) },
      { label: "Reason", cell: (row) => [badge(row.code, "bad"),
        el("span", { class: "small" }, row.detail)] },
      { label: "Record", cell: (row) => row.table === null
        ? el("span", { class: "soft" }, "the whole packet")
        : recordLink(space, row.table, row.record) },
      { label: "Device", cell: (row) => row.device === null
        ? el("span", { class: "soft" }, "unknown") : row.name ?? short(row.device) },
      { label: "Owner", cell: (row) => row.principal },
    ],
    load: async (before) => {
      const answer = await get(spacePath(space, "rejections"), { before });
      return { rows: answer.rejections, next: answer.next };
    },
  });
  return el("div", {}, rows, hint("A device keeps a rejected operation, and ",
    el("code", {}, "ferry status"), " shows it there. The server lists the newest 1,000."));
}
