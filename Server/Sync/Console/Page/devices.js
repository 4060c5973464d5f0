// The devices of a space.
import { get, spacePath } from "./api.js";
import { ago, bytes, counted, date, number, short } from "./format.js";
import { badge, el, hint, listing } from "./parts.js";

const name = (device) => [
  device.name ?? el("span", { class: "soft" }, "unnamed"),
  el("span", { class: "small code", title: device.device }, short(device.device)),
];

function behind(device) {
  if (device.behind === null) return el("span", { class: "soft" }, "unknown");
  if (device.behind === "0") return badge("up to date", "good");
  return [device.behind === "1" ? "1 place" : `${number(device.behind)} places`,
    el("span", { class: "small" }, `at ${number(device.reached)}`)];
}

const buffer = (device) => device.bufferedPackets === 0 ? "none"
  : [el("span", { class: "warn" }, counted(device.bufferedPackets, "packet")),
    el("span", { class: "small" }, bytes(device.bufferedBytes))];

export async function devices(space) {
  return el("div", {}, await listing({
    caption: "Devices",
    empty: "No device has used this space yet.",
    columns: [
      { label: "Device", cell: name },
      { label: "Owner", cell: (device) => device.principal },
      { label: "Client", cell: (device) => device.client ?? el("span", { class: "soft" }, "unknown") },
      { label: "Last seen", cell: (device) => [ago(device.seenAt),
        el("span", { class: "small" }, `${date(device.seenAt)} UTC`)] },
      { label: "Behind", cell: behind },
      { label: "Operations", number: true, cell: (device) => device.operations === null
        ? el("span", { class: "soft" }, "only reads") : number(device.operations) },
      { label: "Buffered", cell: buffer },
    ],
    load: async (after) => {
      const answer = await get(spacePath(space, "devices"), { after });
      return { rows: answer.devices, next: answer.next };
    },
  }), hint("A device is behind by the changes that it had not applied at its last request. Buffered "
    + "packets wait for an earlier packet of the device."));
}
