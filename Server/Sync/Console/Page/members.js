// The members of a space, and the invitations to it.
import { get, send, spacePath } from "./api.js";
import { date, principal } from "./format.js";
import { announce, dangerous, el, failure, field, hint, listing, secret } from "./parts.js";

const roles = ["reader", "writer", "admin"];
const lifetimes = [
  ["3600", "an hour"], ["86400", "a day"], ["604800", "7 days"], ["2592000", "30 days"],
  ["31536000", "a year"],
];
const shownAtOnce = 100;

export async function members(space) {
  const area = el("div");
  const load = async () => {
    const present = await get(spacePath(space, "members"));
    const open = await get(spacePath(space, "invitations"));
    area.replaceChildren(
      await list(space, present.members, load), await invitations(space, open.invitations, load));
  };
  await load();
  return el("div", {}, area, creation(space, load),
    hint("A user is a member by creating the space, or by an invitation. Tokens that grant a role "
      + "by themselves are under Tokens. If a member is removed or gets a weaker role, all "
      + "invitations end. A removed user's devices keep their rows, and get and send nothing more."));
}

/** Shows rows some at a time: a space may have thousands of members. */
const pages = (all) => async (place) => {
  const start = place ?? 0;
  const end = start + shownAtOnce;
  return { rows: all.slice(start, end), next: end < all.length ? end : null };
};

const list = (space, all, load) => listing({
  caption: "Members, by user",
  empty: "The space has no members.",
  columns: [
    { label: "User", cell: (member) => principal(member.user) },
    { label: "Role", cell: (member) => roleForm(space, member, load) },
    { label: "Since (UTC)", cell: (member) => date(member.since) },
    { label: "By", cell: (member) => principal(member.by) },
    { label: "", cell: (member) => dangerous(
      "Remove", `Remove ${principal(member.user)}?`, async () => {
        await change(space, member, null);
        await load();
        announce(`${principal(member.user)} is no member any more`);
      }) },
  ],
  load: pages(all),
});

const change = (space, { user }, role) =>
  send("PUT", spacePath(space, "members"), { json: { user, role } });

function roleForm(space, member, load) {
  const name = principal(member.user);
  const fault = el("div");
  const role = roleField({ "aria-label": `Role of ${name}` }, member.role);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await change(space, member, role.value);
    } catch (error) {
      fault.replaceChildren(failure(error));
      return;
    }
    await load();
    announce(`${name} is ${role.value}`);
  };
  return [el("form", { class: "inline", submit }, role,
    el("button", { type: "submit", class: "quiet", "aria-label": `Set the role of ${name}` },
      "Set")), fault];
}

const roleField = (attributes, chosen) => el("select", attributes, roles.map((role) =>
  el("option", { selected: role === chosen }, role)));

const users = (invitation) => invitation.once ? "one user" : "any number of users";

const invitations = (space, all, load) => listing({
  caption: "Invitations in force, oldest first",
  empty: "No invitation is in force.",
  columns: [
    { label: "Invitation", cell: (one) => el("span", { class: "code" }, one.id) },
    { label: "Role", cell: (one) => one.role },
    { label: "For", cell: users },
    { label: "Until (UTC)", cell: (one) => date(one.expiresAt) },
    { label: "By", cell: (one) => principal(one.by) },
    { label: "", cell: (one) => dangerous("Revoke", `Revoke ${one.id}?`, async () => {
      await send("DELETE", spacePath(space, "invitations", one.id));
      await load();
      announce(`Invitation ${one.id} is revoked`);
    }) },
  ],
  load: pages(all),
});

/** The form that invites users. */
function creation(space, load) {
  const role = roleField({ name: "role" }, "writer");
  const life = el("select", { name: "life" }, lifetimes.map(([seconds, text]) =>
    el("option", { value: seconds, selected: seconds === "604800" }, text)));
  const once = el("input", { type: "checkbox", name: "once" });
  const result = el("div");
  async function submit(event) {
    event.preventDefault();
    try {
      const answer = await send("POST", spacePath(space, "invitations"), {
        json: { role: role.value, expiresIn: Number(life.value), once: once.checked },
      });
      result.replaceChildren(invited(await answer.json()));
    } catch (error) {
      result.replaceChildren(failure(error));
      return;
    }
    await load();
    announce("The invitation is made. Copy it now.");
  }
  return el("form", { class: "card", submit }, el("h3", {}, "Invite users"),
    el("div", { class: "form" }, field("Role", role), field("Valid for", life)),
    el("label", {}, once, "One user alone may accept it"),
    el("div", { class: "actions" }, el("button", { type: "submit" }, "Invite")), result);
}

/** The link and the code. No server sees the part of a link behind #. */
const invited = (one) => el("div", { role: "alert" },
  el("p", {}, "Send the link or the code. They are not shown again."),
  secret("link", `${location.origin}/join#${one.code}`), secret("code", one.code),
  el("p", { class: "soft" }, `For ${users(one)}, as ${one.role}, until ${date(one.expiresAt)} UTC`));
