// A to-do board over a replica. The pages call native services by `ferry`; see Documentation/shell.md.
import { card } from "./card.js";
import { showConflicts } from "./conflicts.js";
import { showFilm } from "./film.js";

const lanes = ["todo", "doing", "done"];

/** Shows a failure until the next success. */
const attempt = async (work) => {
  const line = document.getElementById("error");
  try {
    await work();
    line.hidden = true;
  } catch (error) {
    line.textContent = error.message;
    line.hidden = false;
  }
};

const change = (action, values) =>
  ferry.call("data.write", { changes: [{ table: "cards", action, values }] });

const show = (rows) => {
  for (const lane of lanes) {
    const section = document.querySelector(`[data-lane="${lane}"]`);
    const list = section.querySelector("ul");
    const mine = rows.filter((row) => row.lane === lane);
    section.querySelector(".count").textContent = mine.length;
    const kept = new Map([...list.children].map((item) => [item.dataset.id, item]));
    const items = mine.map((row) => {
      const item = kept.get(row.id) ?? card(row, lanes, attempt, change);
      item.update(row);
      return item;
    });
    // A card that is being edited keeps the focus.
    if (items.some((item, place) => list.children[place] !== item) || list.children.length !== items.length) {
      list.replaceChildren(...items);
    }
  }
};

document.getElementById("add").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = document.getElementById("title");
  attempt(async () => {
    await change("insert", {
      id: crypto.randomUUID(), title: field.value.trim(), lane: "todo", position: Date.now(),
    });
    field.value = "";
    field.focus();
  });
});

const followCards = async () => {
  const query = { table: "cards", order: ["position", "id"], limit: 1000 };
  let isReady = false;
  for await (const rows of ferry.watch("data.query", query)) {
    show(rows);
    // The page works once it shows its cards.
    if (!isReady) await ferry.ready();
    isReady = true;
  }
};

const words = {
  idle: "Saved on this device", syncing: "Syncing", upToDate: "In sync",
  offline: "Offline; changes are saved on this device", failed: "The sync failed",
};

const followStatus = async () => {
  const line = document.getElementById("status");
  for await (const status of ferry.watch("data.status")) {
    line.dataset.phase = status.phase;
    const pending = status.pending ? `, ${status.pending} to send` : "";
    line.textContent = `${words[status.phase]}${pending}`;
  }
};

attempt(followCards);
attempt(followStatus);
attempt(() => showConflicts(attempt));
attempt(() => showFilm(attempt));
