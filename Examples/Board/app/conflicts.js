const text = (value) => (value === null ? "nothing" : `“${typeof value === "object" ? "…" : value}”`);

const button = (label, name, action) => {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = label;
  element.className = name;
  element.addEventListener("click", action);
  return element;
};

/** Describes the values of a conflict, and offers both. */
const choice = (conflict, attempt, answered) => {
  const item = document.createElement("li");
  item.className = "choice";
  const line = document.createElement("p");
  const other = conflict.loser.isOwn ? conflict.winner : conflict.loser;
  const name = other.name ?? "another device";
  const mine = conflict.loser.isOwn ? conflict.lost : conflict.present;
  const theirs = conflict.loser.isOwn ? conflict.present : conflict.lost;
  line.textContent = `The ${conflict.column}: you wrote ${text(mine)}, ${name} wrote ${text(theirs)}.`;
  const answer = (keep) => () => attempt(async () => {
    await ferry.call("data.resolve", { conflict: conflict.conflict, keep });
    answered(conflict.conflict);
  });
  item.append(
    line, button("Keep mine", "primary", answer("local")), button("Keep theirs", "", answer("remote")));
  return item;
};

/** Follows the conflicts about cards in which this device took part. */
export const showConflicts = async (attempt) => {
  const section = document.getElementById("conflicts");
  const done = new Set();
  let last = [];
  const show = (conflicts) => {
    last = conflicts;
    const open = conflicts.filter((conflict) =>
      conflict.table === "cards" && conflict.column !== null && conflict.resolvedAt === null
      && (conflict.loser.isOwn || conflict.winner.isOwn) && !done.has(conflict.conflict));
    section.hidden = open.length === 0;
    section.querySelector("ul").replaceChildren(...open.map((conflict) =>
      choice(conflict, attempt, (number) => { done.add(number); show(last); })));
  };
  for await (const conflicts of ferry.watch("data.conflicts", { limit: 20 })) show(conflicts);
};
