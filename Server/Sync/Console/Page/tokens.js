// Tokens: made, described, limited in time and revoked.
import { get, send, session } from "./api.js";
import { ago, date } from "./format.js";
import { announce, badge, dangerous, el, failure, field, hint, listing, secret } from "./parts.js";

const roles = ["reader", "writer", "admin"];
const lifetimes = [
  ["", "never"], ["3600", "in an hour"], ["86400", "in a day"], ["604800", "in a week"],
  ["2592000", "in 30 days"], ["31536000", "in a year"],
];

const grants = (token) => el("ul", { class: "values" },
  Object.entries(token.spaces).map(([space, role]) =>
    el("li", {}, `${role} of ${space === "*" ? "all spaces" : space}`)));

function expiry(token) {
  if (token.expiresAt === null) return el("span", { class: "soft" }, "never");
  return token.expiresAt < Date.now() ? badge("expired", "bad") : `${date(token.expiresAt)} UTC`;
}

/** Returns the account that the token counts to: its owner, itself, or the maker's. */
function account(token) {
  if (token.owner) return token.owner;
  return token.account === `token:${token.id}`
    ? el("span", { class: "soft" }, "itself") : el("span", { class: "code" }, token.account);
}

export async function tokens() {
  const area = el("div");
  const load = async () => area.replaceChildren(await listing({
    caption: "Tokens that you may manage, oldest first",
    empty: "There are no tokens. The server is open to all programs of this machine until the "
      + "first one is made.",
    columns: [
      { label: "Label", cell: (token) => [token.name || el("span", { class: "soft" }, "none"),
        el("span", { class: "small code" }, token.id)] },
      { label: "Counts to", cell: account },
      { label: "Permissions", cell: grants },
      { label: "Expires", cell: expiry },
      { label: "Last used", cell: (token) => token.lastUsedAt === null
        ? el("span", { class: "soft" }, "never") : ago(token.lastUsedAt) },
      { label: "", cell: (token) => dangerous("Revoke", `Revoke ${token.name || token.id}?`,
        async () => {
          await send("DELETE", `/v1/tokens/${encodeURIComponent(token.id)}`);
          announce(`Token ${token.name || token.id} is revoked`);
          await load();
        }) },
    ],
    load: async (place) => {
      const answer = await get("/v1/tokens", { after: place });
      return { rows: answer.tokens, next: answer.next };
    },
  }));
  await load();
  return el("div", {}, el("h2", { tabindex: "-1" }, "Tokens"), area, creation(load),
    hint("A revoked token may still be admitted for up to five seconds."));
}

function creation(load) {
  const label = el("input", { name: "name", autocomplete: "off", maxlength: "200" });
  const spaces = el("input", { name: "spaces", required: true, autocomplete: "off",
    placeholder: "notes, team-*  or  *" });
  const role = el("select", { name: "role" }, roles.map((name) => el("option", {}, name)));
  const owner = el("input", { name: "owner", autocomplete: "off" });
  const life = el("select", { name: "life" }, lifetimes.map(([seconds, text]) =>
    el("option", { value: seconds }, text)));
  const result = el("div");
  async function submit(event) {
    event.preventDefault();
    const names = spaces.value.split(/[\s,]+/).filter(Boolean);
    const json = {
      name: label.value, spaces: Object.fromEntries(names.map((name) => [name, role.value])),
    };
    if (owner.value) json.owner = owner.value;
    if (life.value) json.expiresIn = Number(life.value);
    try {
      const isFirst = !session.token;
      const token = await (await send("POST", "/v1/tokens", { json })).json();
      result.replaceChildren(made(token, isFirst));
      announce("The token is made. Copy it now.");
      // An open server asks for tokens from now on, and the page has none yet.
      if (!isFirst) await load();
    } catch (error) {
      if (error.status !== 401) result.replaceChildren(failure(error));
    }
  }
  return el("form", { class: "card", submit }, el("h3", {}, "Make a token"),
    el("div", { class: "form" }, field("Label", label), field("Spaces", spaces),
      field("Role", role), field("Owner (if it is a person's)", owner), field("Expires", life)),
    el("div", { class: "actions" }, el("button", { type: "submit" }, "Make")), result);
}

const made = (token, isFirst) => el("div", { role: "alert" },
  el("p", {}, "Copy the token now. It is not shown again.",
    isFirst && " The server asks every program for a token from now on, and so does this page."),
  secret("token", token.token));
