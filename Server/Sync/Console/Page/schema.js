// The editor of a space's schema, with a check that changes nothing.
import { get, pagePath, send, spacePath } from "./api.js";
import { number } from "./format.js";
import { announce, el, failure, field, hint } from "./parts.js";

export async function schema(space) {
  const current = await get(spacePath(space, "schema"));
  const text = el("textarea", { spellcheck: "false", rows: "20", name: "schema" });
  text.value = JSON.stringify({ ...current, version: current.version + 1 }, null, 2);
  const keep = el("input", { type: "checkbox", name: "keep" });
  const drop = el("input", { type: "checkbox", name: "drop", change: () => check() });
  const result = el("div");
  const apply = el("button", { type: "submit", disabled: true }, "Put in force");
  // The answer that lists rules which the text does not have.
  let losing = null;
  text.addEventListener("input", () => {
    apply.disabled = true;
    drop.checked = false;
    losing = null;
  });
  keep.addEventListener("change", () => { apply.disabled = true; });

  /** Returns the document, or shows the place at which it is no JSON. */
  function document() {
    try {
      return JSON.parse(text.value);
    } catch (error) {
      result.replaceChildren(failure(Object.assign(new Error(error.message), {
        title: "This is not JSON", next: "Correct the text, and check it again.",
      })));
      return null;
    }
  }
  const query = () => ({
    records: keep.checked ? "keep" : "check", losses: drop.checked ? "accept" : "refuse",
  });

  async function check() {
    const json = document();
    if (json === null) return;
    try {
      const path = spacePath(space, "schema");
      const answer = await (await send("POST", path, { json, query: query() })).json();
      apply.disabled = !answer.fits;
      if (answer.lossCount > 0) losing = answer;
      result.replaceChildren();
      if (losing) result.append(losses(losing, drop));
      if (answer.fits) result.append(fits(answer));
      else if (answer.lossCount === 0) result.append(misfits(space, answer));
      announce(answer.fits ? "The schema fits" : "The schema does not fit");
    } catch (error) {
      result.replaceChildren(failure(error));
    }
  }

  async function put(event) {
    event.preventDefault();
    const json = document();
    if (json === null) return;
    try {
      const path = spacePath(space, "schema");
      const stored = await (await send("PUT", path, { json, query: query() })).json();
      text.value = JSON.stringify({ ...stored, version: stored.version + 1 }, null, 2);
      apply.disabled = true;
      drop.checked = false;
      losing = null;
      result.replaceChildren(el("p", { class: "good" }, `Version ${stored.version} is in force.`));
      announce(`Version ${stored.version} is in force`);
    } catch (error) {
      result.replaceChildren(failure(error));
    }
  }

  return el("form", { class: "card", submit: put },
    el("h3", {}, current.version === 0 ? "No schema is in force"
      : `Version ${current.version} is in force`),
    hint("The schema has the rules of tables: types, unique keys, policies for conflicts. The check "
      + "decides about all records as the change does, and stores nothing. Writers wait meanwhile."),
    field("The next version", text),
    el("label", {}, keep, "Existing records may go on breaking new types and required columns"),
    el("div", { class: "actions" },
      el("button", { type: "button", class: "quiet", click: check }, "Check"), apply),
    result);
}

const fits = (answer) => el("p", { class: "good" },
  `All records fit. The schema would be version ${answer.version}.`);

const losses = (answer, drop) => el("div", { class: "card error", role: "alert" },
  el("h3", {}, answer.lossCount === 1 ? "1 rule in force is missing in the text"
    : `${number(answer.lossCount)} rules in force are missing in the text`),
  el("ul", {}, answer.losses.map((one) => el("li", {}, one))),
  answer.lossCount > answer.losses.length && el("p", { class: "soft" },
    `and ${number(answer.lossCount - answer.losses.length)} more`),
  el("label", {}, drop, answer.lossCount === 1 ? "Drop it on all devices"
    : "Drop them on all devices"));

const misfits = (space, answer) => el("div", { class: "card error", role: "alert" },
  el("h3", {}, answer.violationCount === 0 ? "The schema would be rejected"
    : answer.violationCount === 1 ? "1 record does not fit"
      : `${number(answer.violationCount)} records do not fit`),
  answer.violations.length === 0 && el("p", {}, answer.detail),
  el("ul", {}, answer.violations.map((one) => el("li", {}, el("a", {
    href: pagePath(space, "record", { table: one.table, record: one.record }),
  }, `${one.table} / ${one.record}`), `: ${one.detail}`))),
  answer.violationCount > answer.violations.length && el("p", { class: "soft" },
    `and ${number(answer.violationCount - answer.violations.length)} more`));
