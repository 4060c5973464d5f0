// The server itself: requests and latency as they are, and the audit log.
import { get, send } from "./api.js";
import { lines } from "./chart.js";
import { ago, bytes, date, number, span } from "./format.js";
import { badge, el, facts, hint, listing } from "./parts.js";

const interval = 2_000;
const kept = 60;

/** Reads Prometheus' text format 0.0.4 into {name: [{labels, value}]}. */
export function readMetrics(text) {
  const found = {};
  for (const line of text.split("\n")) {
    const match = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[name] = value.replace(/\\(.)/g, (_, sign) => sign === "n" ? "\n" : sign);
    }
    (found[match[1]] ??= []).push({ labels, value: Number(match[3]) });
  }
  return found;
}

const sum = (samples = [], where = () => true) =>
  samples.filter(({ labels }) => where(labels)).reduce((total, { value }) => total + value, 0);

/** Returns the requests of devices and people; the page's own look at the metrics does not count. */
const isCounted = (labels) => labels.route !== "/metrics";

function buckets(metrics) {
  const counts = new Map();
  for (const { labels, value } of metrics.ferry_http_request_duration_seconds_bucket ?? []) {
    if (!isCounted(labels)) continue;
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  return [...counts].sort(([one], [other]) => one - other);
}

/** Returns the bound in milliseconds below which a share of the new requests took. */
export function quantile(before, after, share) {
  const old = new Map(before);
  const fresh = after.map(([bound, count]) => [bound, count - (old.get(bound) ?? 0)]);
  const all = fresh.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  const [bound] = fresh.find(([, count]) => count >= all * share);
  const last = fresh.filter(([limit]) => Number.isFinite(limit)).at(-1)?.[0] ?? 0;
  return (Number.isFinite(bound) ? bound : last) * 1_000;
}

function sample(metrics, at) {
  const requests = metrics.ferry_http_requests_total;
  return {
    at,
    requests: sum(requests, isCounted),
    failed: sum(requests, (labels) => isCounted(labels) && Number(labels.status) >= 400),
    operations: sum(metrics.ferry_operations_total),
    conflicts: sum(metrics.ferry_conflicts_total),
    durations: buckets(metrics),
  };
}

const read = async () => readMetrics(await (await send("GET", "/metrics")).text());

function figures(metrics) {
  const start = sum(metrics.process_start_time_seconds) * 1_000;
  const version = metrics.ferry_build_info?.[0]?.labels.version ?? "unknown";
  return facts([
    ["Version", version],
    ["Runs for", span(Date.now() - start), `since ${date(start)} UTC`],
    ["Connections", number(sum(metrics.ferry_http_connections))],
    ["Event streams", number(sum(metrics.ferry_event_listeners))],
    ["Memory of requests", bytes(sum(metrics.ferry_memory_used_bytes))],
    ["Errors of the store", number(sum(metrics.ferry_store_errors_total))],
  ]);
}

/** Shows the mirrors of this process by the figures of their last rounds. */
function mirrors(metrics) {
  const named = metrics.ferry_mirror_info ?? [];
  if (!named.length) return [];
  const value = (key, mirror) =>
    sum(metrics[`ferry_mirror_${key}`], (labels) => labels.mirror === mirror);
  const heads = ["Mirror", "Space", "State", "Sends late", "Applies late", "Captured", "Deferred",
    "Unsent"];
  const row = ({ labels: { mirror, space } }) => {
    const stopped = value("stopped", mirror) > 0;
    const state = stopped
      ? el("span", {}, badge("stopped", "bad"), " see ", el("code", {}, `ferryd mirror status ${mirror}`))
      : badge("runs", "good");
    const cells = [mirror, space, state,
      ...["send_lag_seconds", "apply_lag_seconds"].map((key) => span(value(key, mirror) * 1_000)),
      ...["captured_writes", "deferred_rows", "unsent_rows"].map((key) => number(value(key, mirror)))];
    return el("tr", {}, cells.map((cell) => el("td", {}, cell)));
  };
  return [el("section", { class: "card" }, el("table", {}, el("caption", {}, "Mirrors"),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, named.map(row))))];
}

function rates(samples, key) {
  return samples.slice(1).map((one, index) => {
    const before = samples[index];
    return Math.max(0, one[key] - before[key]) / ((one.at - before.at) / 1_000);
  });
}

function graphs(samples) {
  const pairs = samples.slice(1).map((one, index) => [samples[index].durations, one.durations]);
  const middle = pairs.map(([before, after]) => quantile(before, after, .5));
  const slow = pairs.map(([before, after]) => quantile(before, after, .95));
  const requests = rates(samples, "requests");
  const failed = rates(samples, "failed");
  const first = samples[0]?.at ?? Date.now();
  const ends = [`${span(Date.now() - first)} ago`, "now"];
  const last = (values) => (values.at(-1) ?? 0).toFixed(1);
  return [
    el("section", { class: "card" }, el("h3", {}, "Requests a second"), lines(
      `Requests a second: ${last(requests)} now, ${last(failed)} of them failed`,
      [{ name: "answered", values: requests }, { name: "failed", kind: "second", values: failed }],
      ends)),
    el("section", { class: "card" }, el("h3", {}, "Latency"), lines(
      `Latency: half of the requests took at most ${middle.at(-1) ?? "unknown"} milliseconds`,
      [{ name: "half took at most", values: middle },
        { name: "95 % took at most", kind: "second", values: slow }], ends, " ms")),
    el("section", { class: "card" }, el("h3", {}, "Operations a second"), lines(
      `Operations a second: ${last(rates(samples, "operations"))} now`,
      [{ name: "applied", values: rates(samples, "operations") },
        { name: "values that lost", kind: "second", values: rates(samples, "conflicts") }], ends)),
  ];
}

export async function server(_, life) {
  const samples = [];
  const top = el("div");
  const area = el("div", { class: "columns" });
  async function step() {
    const metrics = await read();
    samples.push(sample(metrics, Date.now()));
    if (samples.length > kept) samples.shift();
    top.replaceChildren(figures(metrics), ...mirrors(metrics));
    area.replaceChildren(...graphs(samples));
  }
  try {
    await step();
  } catch (error) {
    if (error.status !== 404) throw error;
    return el("div", {}, el("h2", { tabindex: "-1" }, "Server"), hint(
      "The proxy before the server keeps the metrics to itself, since they belong to one of several "
        + "servers. Open the console at a server's own address to see them."));
  }
  const timer = setInterval(() => step().catch(() => {}), interval);
  life.addEventListener("abort", () => clearInterval(timer));
  return el("div", {}, el("h2", { tabindex: "-1" }, "Server"), top,
    hint("This server process, every two seconds while the page is open. Several servers of one "
      + "database count for themselves."), area);
}

export async function audit() {
  let after = 0;
  const rows = await listing({
    caption: "Audit log, oldest first",
    empty: "The log has no entries yet.",
    columns: [
      { label: "Time (UTC)", cell: (entry) => [date(entry.time),
        el("span", { class: "small" }, ago(entry.time))] },
      { label: "Who", cell: (entry) => entry.principal },
      { label: "What", cell: (entry) => el("code", {}, entry.action) },
      { label: "Space", cell: (entry) => entry.space ?? "" },
      { label: "Detail", cell: (entry) => entry.detail },
    ],
    load: async () => {
      const { entries } = await get("/v1/audit", { after, limit: 200 });
      after = entries.at(-1)?.number ?? after;
      return { rows: entries, next: entries.length === 200 ? after : null };
    },
  });
  return el("div", {}, el("h2", { tabindex: "-1" }, "Audit log"), rows);
}
