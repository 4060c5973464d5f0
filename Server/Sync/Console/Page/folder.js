// A form that publishes a folder: chosen or dragged, looked at, then sent with progress.
import { bytes, counted } from "./format.js";
import { announce, el, failure, hint } from "./parts.js";
import { chosen, dropped, isWanted } from "./upload.js";

/**
 * @param fields The controls below the folder.
 * @param look Called with {folder, files}; returns what is to be published, with its `files` and
 *   perhaps a `text` that describes it. It may fail.
 * @param send Called with that and with a function for the progress; returns the text of success.
 */
export function folderForm({ heading, about, fields, look, send }) {
  let choices = 0;
  let wanted = null;
  const picked = el("p", { class: "soft" }, "No folder is chosen.");
  const button = el("button", { type: "submit", disabled: true }, "Publish");
  const result = el("div");

  async function take(found) {
    const choice = ++choices;
    const files = found.files.filter(isWanted);
    wanted = null;
    button.disabled = true;
    result.replaceChildren();
    picked.textContent = "There is no file in it.";
    try {
      const seen = files.length > 0 ? await look({ ...found, files }) : null;
      // Another folder may have been chosen meanwhile.
      if (choice !== choices) return;
      wanted = seen;
      if (seen) picked.textContent = description(found.folder, seen);
    } catch (error) {
      if (choice !== choices) return;
      picked.textContent = found.folder || "Files";
      result.replaceChildren(failure(error));
    }
    button.disabled = wanted === null;
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
      const done = await send(wanted, (step, part) => {
        bar.value = part;
        text.textContent = `${step}: ${Math.floor(part * 100)} %`;
      });
      result.replaceChildren(el("p", { class: "good" }, done));
      announce(done);
    } catch (error) {
      result.replaceChildren(failure(error));
    }
    button.disabled = wanted === null;
  }

  return el("form", { class: "card", submit }, el("h3", {}, heading), hint(about), zone,
    el("div", { class: "form" }, fields), el("div", { class: "actions" }, button), result);
}

function description(folder, { files, text }) {
  const size = files.reduce((sum, { file }) => sum + file.size, 0);
  return `${folder || "Files"}: ${text ? `${text}, ` : ""}${counted(files.length, "file")}, `
    + bytes(size);
}
