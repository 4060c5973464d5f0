// The page: one view at a time, by the part of the address after #.
import { session } from "./api.js";
import { announce, el, failure, field } from "./parts.js";
import { audit, server } from "./server.js";
import { spaces, space } from "./spaces.js";
import { devices } from "./devices.js";
import { members } from "./members.js";
import { record, records } from "./records.js";
import { conflicts, rejections } from "./conflicts.js";
import { schema } from "./schema.js";
import { missions } from "./missions.js";
import { bundles } from "./bundles.js";
import { tokens } from "./tokens.js";

const main = document.getElementById("main");
const signOut = document.getElementById("sign-out");
const views = {
  "": space, devices, members, records, record, conflicts, rejections, schema, missions, bundles,
};
const tabs = [
  ["", "Overview"], ["devices", "Devices"], ["members", "Members"], ["records", "Records"],
  ["conflicts", "Conflicts"], ["rejections", "Rejected"], ["schema", "Schema"],
  ["missions", "Missions"], ["bundles", "Bundles"],
];
let shown = 0;
let stop = () => {};

function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { parts, query: new URLSearchParams(query) };
}

function header(name, view) {
  return [
    el("p", { class: "trail" }, el("a", { href: "#/" }, "Spaces"), " / ", name),
    el("h2", { tabindex: "-1" }, name),
    el("nav", { class: "tabs", "aria-label": "Space" }, tabs.map(([path, label]) => el("a", {
      href: `#/space/${encodeURIComponent(name)}${path && `/${path}`}`,
      "aria-current": (path === view || (path === "records" && view === "record")) && "page",
    }, label))),
  ];
}

async function content({ parts, query }, life) {
  if (parts[0] === "space" && parts[1]) {
    const view = views[parts[2] ?? ""];
    if (!view) return [el("h2", { tabindex: "-1" }, "There is no such view")];
    return [...header(parts[1], parts[2] ?? ""), await view(parts[1], query, life)];
  }
  const pages = { "": spaces, server, tokens, audit };
  const page = pages[parts[0]];
  if (!page) return [el("h2", { tabindex: "-1" }, "There is no such view")];
  return [await page(query, life)];
}

/** Shows the view of the address. */
async function show() {
  const order = ++shown;
  stop();
  const life = new AbortController();
  stop = () => life.abort();
  const where = place();
  mark(where);
  main.setAttribute("aria-busy", "true");
  let parts;
  try {
    parts = await content(where, life.signal);
  } catch (error) {
    if (error.status === 401) return;
    parts = [el("h2", { tabindex: "-1" }, "Ferry console"), failure(error)];
  }
  if (order !== shown) return;
  main.replaceChildren(...parts.flat(Infinity));
  main.removeAttribute("aria-busy");
  signOut.hidden = !session.token;
  const title = main.querySelector("h2");
  document.title = `${title?.textContent ?? "Console"} · Ferry console`;
  title?.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  document.documentElement.dataset.view = location.hash || "#/";
}

function mark({ parts }) {
  const own = parts[0] === "space" ? "" : parts[0];
  for (const link of document.querySelectorAll("#nav a")) {
    const isOwn = link.getAttribute("href") === `#/${own}`;
    if (isOwn) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Asks for a token. */
function signIn(reason) {
  shown += 1;
  stop();
  const input = el("input", {
    type: "password", name: "token", autocomplete: "off", required: true, spellcheck: "false",
  });
  const form = el("form", { class: "card narrow", submit: (event) => {
    event.preventDefault();
    session.token = input.value.trim();
    show();
  } },
  el("h2", { tabindex: "-1" }, "Sign in"),
  el("p", { class: "hint" }, "Use a token with the role admin. ",
    el("code", {}, "ferryd token create --all-spaces --role admin"), " makes one for all spaces. ",
    "The token stays in this tab."),
  session.token && el("p", { class: "bad", role: "alert" }, reason ?? "The token is not valid."),
  field("Admin token", input),
  el("div", { class: "actions" }, el("button", { type: "submit" }, "Sign in")));
  session.token = null;
  signOut.hidden = true;
  main.replaceChildren(form);
  main.removeAttribute("aria-busy");
  document.documentElement.dataset.view = "sign-in";
  announce("Sign in with a token");
  input.focus();
}

session.whenRefused(signIn);
signOut.addEventListener("click", () => {
  session.token = null;
  show();
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", show);
show();
