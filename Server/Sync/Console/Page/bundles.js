// The bundles of a space: versions, rollout, what devices report, and the publication of a folder.
import { get, send, spacePath } from "./api.js";
import { declarationName, readDeclaration } from "./declaration.js";
import { folderForm } from "./folder.js";
import { bytes, counted, date, number, share, short } from "./format.js";
import { announce, badge, dangerous, el, failure, field, hint, listing } from "./parts.js";
import { publish } from "./upload.js";

const shownAtOnce = 10;

export async function bundles(space) {
  const area = el("div");
  const load = async () => area.replaceChildren(await list(space));
  await load();
  return el("div", {}, area,
    hint("Devices that take a version at 10 % also take it at 50 %. A smaller share stops it for "
      + "further devices. Devices leave a withdrawn version at their next sync. Each device counts "
      + "once for a version, by its last report."),
    form(space, load));
}

/** The bundles by name, some at a time: each needs a request. */
async function list(space) {
  const known = new Set();
  let after;
  do {
    const page = await get(spacePath(space, "bundles"), { after });
    for (const one of page.bundles) known.add(one.bundle);
    after = page.next ?? undefined;
  } while (after !== undefined);
  const names = [...known];
  if (names.length === 0) {
    return el("div", { class: "card" }, el("p", { class: "soft" }, "No bundle is published."));
  }
  const cards = el("div");
  const more = el("button", { type: "button", class: "quiet", click: () => next() }, "More bundles");
  async function next() {
    more.disabled = true;
    for (const name of names.splice(0, shownAtOnce)) cards.append(await card(space, name));
    more.disabled = false;
    more.hidden = names.length === 0;
  }
  await next();
  return el("div", {}, cards, more);
}

async function card(space, name) {
  const place = el("section", { class: "card", "aria-label": `Bundle ${name}` });
  const load = async () => {
    const { versions } = await get(spacePath(space, "bundles", name));
    place.replaceChildren(
      el("h3", {}, name), await table(space, versions, load),
      ...versions.filter((one) => one.latest.length > 0).map(failures));
  };
  await load();
  return place;
}

const table = (space, versions, load) => listing({
  caption: `Versions of ${versions[0].bundle}, the latest first`,
  empty: "",
  card: false,
  columns: [
    { label: "Version", cell: (one) => [one.version,
      one.title && el("span", { class: "small" }, one.title)] },
    { label: "Offered to", cell: (one) => one.withdrawnAt !== undefined
      ? [badge("withdrawn", "bad"), el("span", { class: "small" }, `${date(one.withdrawnAt)} UTC`)]
      : `${share(one.rollout)} of devices` },
    { label: "Works on", number: true, cell: (one) => devices(one.successes, "good") },
    { label: "Failed on", number: true, cell: (one) => devices(one.failures, "bad") },
    { label: "Content", cell: (one) => [`${counted(one.files, "file")}, ${bytes(one.size)}`,
      one.minShell && el("span", { class: "small" }, `shell ${one.minShell} or later`)] },
    { label: "Published (UTC)", cell: (one) => date(one.publishedAt) },
    { label: "", cell: (one) => one.withdrawnAt === undefined && actions(space, one, load) },
  ],
  load: async () => ({ rows: versions, next: null }),
});

const devices = (count, kind) => el("span", { class: count > 0 ? kind : "soft" }, number(count));

/** Another share of devices, and the end of a version. */
function actions(space, one, load) {
  const id = `${one.bundle} ${one.version}`;
  const fault = el("div");
  const change = async (json, done) => {
    try {
      await send("POST", spacePath(space, "bundles", one.bundle), {
        json: { version: one.version, ...json },
      });
    } catch (error) {
      fault.replaceChildren(failure(error));
      return;
    }
    announce(done);
    await load();
  };
  const percent = el("input", { type: "number", min: "0", max: "100", step: "0.01", required: true,
    value: one.rollout / 100, "aria-label": `Percent of devices that take ${id}` });
  const form = el("form", { class: "inline", submit: (event) => {
    event.preventDefault();
    const rollout = Math.round(Number(percent.value) * 100);
    change({ rollout }, `${id} is offered to ${share(rollout)} of devices`);
  } }, percent, el("span", { class: "soft" }, "%"),
  el("button", { type: "submit", class: "quiet", "aria-label": `Offer ${id}` }, "Offer"));
  const withdraw = dangerous("Withdraw", `Withdraw ${one.version} for good?`, () =>
    change({ withdrawn: true }, `${id} is withdrawn`));
  return [el("div", { class: "actions" }, form, withdraw), fault];
}

const failures = (one) => el("details", {},
  el("summary", {}, `Latest failures of ${one.version}`),
  el("ul", { class: "values" }, one.latest.map(({ device, reason, at }) => el("li", {},
    el("span", { class: "bad" }, reason),
    el("span", { class: "small", title: device }, `${date(at)} UTC, device ${short(device)}`)))));

function form(space, load) {
  const title = el("input", { name: "title", autocomplete: "off" });
  const percent = el("input", { name: "percent", type: "number", min: "0", max: "100",
    step: "0.01", value: "100", required: true });
  const about = [
    "The folder has a file ", el("code", {}, declarationName), " with a name and a version. A "
      + "published version keeps its files for good: publish others as another version. Files whose "
      + "names begin with a dot stay out.",
  ];
  return folderForm({
    heading: "Publish a version",
    about,
    fields: [field("Title", title), field("Percent of devices", percent)],
    look: async ({ files }) => {
      const bundle = await readDeclaration(files);
      return {
        bundle, text: `${bundle.name} ${bundle.version}`,
        files: files.filter(({ path }) => path !== declarationName),
      };
    },
    send: async ({ bundle, files }, progress) => {
      const record = await publish(space, `bundle.${bundle.name}.${bundle.version}`, {
        manifest: { title: title.value, bundle }, files,
        query: { rollout: Math.round(Number(percent.value) * 100) },
      }, progress);
      await load();
      return `${bundle.name} ${bundle.version} is published: ${counted(record.items, "file")}, `
        + `${bytes(record.size)}, for ${share(record.rollout)} of devices`;
    },
  });
}
