// The list of spaces, and one space over time.
import { get, pagePath, send, spacePath } from "./api.js";
import { bars } from "./chart.js";
import { bytes, counted, date, number, span } from "./format.js";
import { announce, el, facts, failure, field, hint, listing } from "./parts.js";

const retention = (space) => space.retention === null ? "for ever" : span(space.retention);

export async function spaces() {
  const list = el("div");
  const load = async () => list.replaceChildren(await listing({
    caption: "Spaces",
    empty: "There is no space yet that you administer.",
    columns: [
      { label: "Space", cell: (space) => el("a", { href: pagePath(space.space) }, space.space) },
      { label: "Head", number: true, cell: (space) => number(space.head) },
      { label: "Last hour", number: true, cell: (space) => counted(space.lastHour, "operation") },
      { label: "Records", number: true, cell: (space) => number(space.records) },
      { label: "Size", number: true, cell: (space) => bytes(space.bytes) },
      { label: "Devices", number: true, cell: (space) => number(space.devices) },
      { label: "Buffered", number: true, cell: (space) => space.bufferedPackets
        ? el("span", { class: "warn" }, counted(space.bufferedPackets, "packet")) : "none" },
      { label: "History", cell: (space) => retention(space) },
    ],
    load: async (after) => {
      const answer = await get("/v1/spaces", { after });
      return { rows: answer.spaces, next: answer.next };
    },
  }));
  await load();
  return el("div", {}, el("h2", { tabindex: "-1" }, "Spaces"), list, creation(load));
}

/** The form that creates a space. */
function creation(load) {
  const input = el("input", {
    name: "space", required: true, maxlength: "63", pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*",
    title: "Letters, digits, . _ and -; the first is a letter or a digit", autocomplete: "off",
  });
  const result = el("div");
  return el("form", { class: "card", submit: async (event) => {
    event.preventDefault();
    try {
      await send("PUT", spacePath(input.value));
      result.replaceChildren();
      announce(`Space ${input.value} exists`);
      input.value = "";
      await load();
    } catch (error) {
      result.replaceChildren(failure(error));
    }
  } }, el("h3", {}, "Create a space"), field("Name", input),
  el("div", { class: "actions" }, el("button", { type: "submit" }, "Create")), result);
}

export async function space(name) {
  const [overview, hours] = await Promise.all([
    get(spacePath(name, "overview")),
    get(spacePath(name, "activity"), { unit: "hour", since: Date.now() - 7 * 86_400_000 }),
  ]);
  const minutes = await get(
    spacePath(name, "activity"), { unit: "minute", since: Date.now() - 3_600_000 });
  return el("div", {}, figures(overview), el("div", { class: "columns" },
    graph("Operations in the last hour", minutes, 60_000, 60, [["operations", "operations"]]),
    graph("Operations in 7 days", hours, 3_600_000, 168, [["operations", "operations"]]),
    graph("Conflicts and rejected packets in the last hour", minutes, 60_000, 60,
      [["conflicts", "values that lost", "second"], ["rejected", "rejected packets", "bad"]]),
    graph("Conflicts and rejected packets in 7 days", hours, 3_600_000, 168,
      [["conflicts", "values that lost", "second"], ["rejected", "rejected packets", "bad"]])),
  hint("The counts are written every few seconds. A server that is killed loses the last ones; "
    + "no data is lost with them."));
}

const figures = (space) => facts([
  ["Head", number(space.head), `epoch ${space.epoch}`],
  ["Last hour", number(space.lastHour), "operations"],
  ["Records", number(space.records), bytes(space.bytes)],
  ["Devices", number(space.devices)],
  ["Buffered packets", number(space.bufferedPackets), bytes(space.bufferedBytes)],
  ["Written today", bytes(space.writtenToday)],
  ["History is kept", retention(space), `from place ${number(space.horizon)}`],
  ["Schema", space.schemaVersion === 0 ? "none" : `version ${space.schemaVersion}`],
]);

/** Fills the intervals without activity with zeros. */
export function filled(answer, length, count) {
  const end = answer.time - answer.time % length;
  const known = new Map(answer.counts.map((one) => [one.at, one]));
  const none = { operations: 0, conflicts: 0, rejected: 0 };
  return Array.from({ length: count }, (_, index) =>
    known.get(end - (count - 1 - index) * length) ?? none);
}

function graph(title, answer, length, count, keys) {
  const intervals = filled(answer, length, count);
  const series = keys.map(([key, label, kind]) => ({
    name: label, kind, values: intervals.map((interval) => interval[key]),
  }));
  const total = series.map((one) =>
    `${number(one.values.reduce((sum, value) => sum + value, 0))} ${one.name}`).join(", ");
  const start = answer.time - count * length;
  const ends = [count === 60 ? "60 minutes ago" : date(start).slice(0, 10), "now"];
  return el("section", { class: "card" }, el("h3", {}, title), hint(total),
    bars(`${title}: ${total}`, series, ends));
}
