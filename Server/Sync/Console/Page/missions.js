// The missions of a space, and the publication of a folder.
import { get, send, spacePath } from "./api.js";
import { folderForm } from "./folder.js";
import { bytes, counted, date, number } from "./format.js";
import { announce, badge, dangerous, el, field, listing } from "./parts.js";
import { publish } from "./upload.js";

export async function missions(space) {
  const area = el("div");
  const load = async () => area.replaceChildren(await listing({
    caption: "Missions in force",
    empty: "No mission is published.",
    columns: [
      { label: "Mission", cell: (one) => [one.mission, one.kind === "bundle" && [" ", badge("bundle", "soft")],
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
    load: async (after) => {
      const page = await get(spacePath(space, "missions"), { after, limit: 100 });
      return { rows: page.missions, next: page.next };
    },
  }));
  await load();
  return el("div", {}, area, form(space, load));
}

function form(space, load) {
  const name = el("input", { name: "mission", required: true, autocomplete: "off",
    pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}",
    title: "Letters, digits, . _ and -; the first is a letter or a digit" });
  const title = el("input", { name: "title", autocomplete: "off" });
  const summary = el("input", { name: "summary", autocomplete: "off" });
  return folderForm({
    heading: "Publish a folder",
    about: "A folder with the name of a mission becomes its next version. Files whose names begin "
      + "with a dot stay out. An interrupted upload continues when you publish again.",
    fields: [field("Mission", name), field("Title", title), field("Summary", summary)],
    look: (found) => {
      name.value ||= found.folder.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
      return found;
    },
    send: async ({ files }, progress) => {
      const manifest = { title: title.value, summary: summary.value };
      const record = await publish(space, name.value, { manifest, files }, progress);
      await load();
      return `${record.mission} version ${record.version} is published: `
        + `${counted(record.items, "file")}, ${bytes(record.size)}`;
    },
  });
}
