// Parts of the page. Text from outside becomes a text node, so that it is never read as HTML.

const svgSpace = "http://www.w3.org/2000/svg";

// A narrow screen shows a table as blocks, which would take its meaning away without these.
const roles = {
  TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TH: "columnheader", TD: "cell",
};

/** Makes an element. Functions in `attributes` listen to the event of their name. */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Makes an element of a drawing. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(svgSpace, tag), attributes, children);
}

function fill(element, attributes, children) {
  const role = roles[element.tagName];
  if (role) element.setAttribute("role", role);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Tells people who listen to the page what has changed. */
export function announce(text) {
  document.getElementById("announcement").textContent = text;
}

/** Shows a failure with its reason. */
export function failure(error) {
  return el("div", { class: "card error", role: "alert" },
    el("h3", {}, error.title ?? "This did not work"),
    el("p", {}, error.message),
    error.next && el("p", { class: "soft" }, error.next));
}

export const badge = (text, kind) => el("span", { class: `badge ${kind}` }, text);

export const hint = (...text) => el("p", { class: "hint" }, ...text);

/** Figures with their names, as [name, value, detail]. */
export function facts(list) {
  return el("dl", { class: "facts" }, list.map(([name, value, detail]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value,
      detail && el("span", { class: "small" }, detail)))));
}

/**
 * A table whose rows come page by page.
 *
 * @param columns {label, cell: (row) => content, number?: boolean}
 * @param load (place) => {rows, next}; the list ends when there is no place, or no row.
 */
export async function listing({ caption, columns, load, empty, card = true }) {
  const body = el("tbody");
  const rows = el("table", {}, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map((column) =>
      el("th", { scope: "col", class: column.number && "number" }, column.label)))), body);
  const nothing = el("p", { class: "soft" }, empty);
  const more = el("button", { type: "button", class: "quiet more", click: () => next() }, "More");
  const area = el("div", { class: card ? "card" : "" }, rows, nothing, more);
  let place = null;
  let count = 0;
  async function next() {
    more.disabled = true;
    try {
      const page = await load(place);
      for (const row of page.rows) body.append(line(row));
      count += page.rows.length;
      place = page.next;
      more.hidden = !place || page.rows.length === 0;
      rows.hidden = count === 0;
      nothing.hidden = count > 0;
      announce(`${caption}: ${count} shown`);
    } catch (error) {
      area.append(failure(error));
    }
    more.disabled = false;
  }
  const line = (row) => el("tr", {}, columns.map((column) =>
    el("td", { "data-label": column.label, class: column.number && "number" },
      el("span", {}, column.cell(row)))));
  await next();
  return area;
}

/** A field with its label. */
export function field(label, input) { return el("label", {}, label, input); }

/** A text that is shown once, with a button that copies it. */
export function secret(name, text) {
  const shown = el("code", { class: "secret code" }, text);
  const button = el("button", { type: "button", class: "quiet" }, `Copy ${name}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Browsers copy for pages of https:// and of this machine only.
      getSelection().selectAllChildren(shown);
      button.textContent = "Selected: copy it by keyboard";
    }
    announce(button.textContent);
  });
  return el("div", { class: "actions" }, shown, button);
}

/** Asks before something that cannot be undone; the button is pressed twice. */
export function dangerous(label, question, act) {
  const button = el("button", { type: "button", class: "danger" }, label);
  let isArmed = false;
  button.addEventListener("click", async () => {
    if (!isArmed) {
      isArmed = true;
      button.textContent = question;
      announce(question);
      return;
    }
    button.disabled = true;
    try {
      await act();
    } catch (error) {
      button.after(failure(error));
    }
    button.disabled = false;
  });
  button.addEventListener("blur", () => {
    isArmed = false;
    button.textContent = label;
  });
  return button;
}
