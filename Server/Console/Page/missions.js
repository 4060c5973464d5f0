// The missions of a space, and the publication of a folder.
import { get, send, spacePath } from "./api.js";
import { bytes, date, number } from "./format.js";
import { announce, dangerous, el, failure, field, hint, listing } from "./parts.js";
import { chosen, dropped, isWanted, publish } from "./upload.js";

export async function missions(space) {
  const area = el("div");
  const load = async () => area.replaceChildren(await listing({
    caption: "Missions in force",
    empty: "No mission is published.",
    columns: [
      { label: "Mission", cell: (one) => [one.mission,
        one.title && el("span", { class: "small" }, one.title)] },
      { label: "Version", number: true, cell: (one) => number(one.version) },
      { label: "Files", number: true, cell: (one) => number(one.items) },
      { label: "Size", number: true, cell: (one) => bytes(one.size) },
      { label: "Published (UTC)", cell: (one) => date(one.publishedAt) },
      { label: "", cell: (one) => dangerous("Retract", `Retract ${one.mission}?`, async () => {
        await send("DELETE", spacePath(space, "missions", one.mission));
        announce(`Mission ${one.mission} is retracted`);
        await load();
      }) },
    ],
    load: async () => ({ rows: (await get(spacePath(space, "missions"))).missions, next: null }),
  }));
  await load();
  return el("div", {}, area, form(space, load));
}

function form(space, load) {
  let folder = null;
  const name = el("input", { name: "mission", required: true, autocomplete: "off",
    pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}",
    title: "Letters, digits, . _ and -; the first is a letter or a digit" });
  const title = el("input", { name: "title", autocomplete: "off" });
  const summary = el("input", { name: "summary", autocomplete: "off" });
  const picked = el("p", { class: "soft" }, "No folder is chosen.");
  const button = el("button", { type: "submit", disabled: true }, "Publish");
  const result = el("div");

  function take(found) {
    const files = found.files.filter(isWanted);
    folder = files.length > 0 ? { ...found, files } : null;
    button.disabled = folder === null;
    const size = files.reduce((sum, { file }) => sum + file.size, 0);
    picked.textContent = folder === null ? "There is no file in it."
      : `${found.folder || "Files"}: ${number(files.length)} files, ${bytes(size)}`;
    if (folder && !name.value) {
      name.value = found.folder.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
    }
    announce(picked.textContent);
  }

  const zone = el("div", {
    class: "drop",
    dragover: (event) => {
      event.preventDefault();
      zone.classList.add("over");
    },
    dragleave: () => zone.classList.remove("over"),
    drop: async (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      take(await dropped(event.dataTransfer.items));
    },
  }, el("p", {}, "Drag a folder here, or choose one."),
  el("input", { type: "file", webkitdirectory: true, multiple: true, "aria-label": "Folder",
    change: (event) => take(chosen(event.target.files)) }), picked);

  async function submit(event) {
    event.preventDefault();
    const bar = el("progress", { max: "1", value: "0", "aria-label": "Progress" });
    const text = el("p", { class: "soft" });
    result.replaceChildren(bar, text);
    button.disabled = true;
    try {
      const wanted = { title: title.value, summary: summary.value, files: folder.files };
      const record = await publish(space, name.value, wanted, (step, part) => {
        bar.value = part;
        text.textContent = `${step}: ${Math.floor(part * 100)} %`;
      });
      result.replaceChildren(el("p", { class: "good" },
        `${record.mission} version ${record.version} is published: ${number(record.items)} files, `
          + bytes(record.size)));
      announce(`${record.mission} version ${record.version} is published`);
      await load();
    } catch (error) {
      result.replaceChildren(failure(error));
    }
    button.disabled = false;
  }

  return el("form", { class: "card", submit }, el("h3", {}, "Publish a folder"),
    hint("A folder with the name of a mission becomes its next version. Files whose names begin "
      + "with a dot stay out. An interrupted upload continues when you publish again."),
    zone, el("div", { class: "form" }, field("Mission", name), field("Title", title),
      field("Summary", summary)),
    el("div", { class: "actions" }, button), result);
}
