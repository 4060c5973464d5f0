// Numbers, times and values for people.

const plain = new Intl.NumberFormat("en");

export const number = (value) =>
  value === null || value === undefined ? "unknown" : plain.format(BigInt(value));

/** A number with its word: "1 file", "2 files". */
export const counted = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

/** A share in hundredths of a percent. */
export const share = (hundredths) => `${hundredths / 100} %`;

export function bytes(value) {
  if (value < 1024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let unit = -1;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

export function span(milliseconds) {
  const units = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1_000]];
  for (const [name, length] of units) {
    const count = Math.floor(milliseconds / length);
    if (count >= 1) return `${count} ${name}${count === 1 ? "" : "s"}`;
  }
  return "under a second";
}

/** The time since a moment. A clock may be ahead of this one. */
export function ago(moment) {
  const passed = Date.now() - moment;
  return passed < 1_000 ? "just now" : `${span(passed)} ago`;
}

export function date(moment) {
  if (!Number.isFinite(moment) || Math.abs(moment) > 8.64e15) return "unknown time";
  return new Date(moment).toISOString().replace("T", " ").slice(0, 19);
}

/** Milliseconds of a hybrid timestamp: its first 12 digits. */
export const clock = (stamp) => Number.parseInt(stamp.slice(0, 12), 16);

/** The end of an identifier, which differs between devices of one time. */
export const short = (identifier) => identifier.slice(-8);

/** A value in its form on the wire (SPEC.md §3). */
export function value(wire, limit = 200) {
  if (wire === null) return "NULL";
  let text;
  if (typeof wire !== "object") text = String(wire);
  else if ("int" in wire) text = wire.int;
  else if ("real" in wire) text = wire.real;
  else if ("blob" in wire) return `blob of ${bytes(Math.floor(wire.blob.length * 3 / 4))}`;
  else text = JSON.stringify(wire);
  const points = [...text];
  return points.length > limit ? `${points.slice(0, limit).join("")}… (${points.length} characters)` : text;
}

/** A principal for people: an owner of tokens without `owner:`. */
export function principal(text) {
  const name = text.startsWith("owner:") ? text.slice(6) : "";
  return name === "" || /^(owner|jwt):./.test(name) ? text : name;
}

/** Returns the name of a device among known ones, or the end of its identifier. */
export function deviceName(device, known) {
  if (/^0{8}-/.test(device)) return "the server";
  return known?.find((one) => one.device === device)?.name ?? short(device);
}
