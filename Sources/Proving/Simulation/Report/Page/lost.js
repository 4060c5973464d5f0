// The values that lost conflicts: { event, place, lost, loser, won, winner, isAsked }.
const lostValues = run.lostEvent.map((event, row) => {
  const [place, lost, loser, won, winner] = [0, 1, 2, 3, 4].map(
    (column) => run.details[run.lostText[row * 5 + column]]);
  return { event, place, lost, loser, won, winner, isAsked: run.lostAsked[row] === 1 };
});
const lostOf = Map.groupBy
  ? Map.groupBy(lostValues, (value) => value.event)
  : lostValues.reduce((found, value) =>
    found.set(value.event, [...(found.get(value.event) ?? []), value]), new Map());
const lostRowsMax = 200;
const lostPerCell = 3;

/** A value as it is shown; long texts are cut. */
function valueText(value) {
  if (value === "") return "a write that the server does not have";
  const letters = [...value.slice(0, 400)];
  return letters.length <= 160 ? value
    : `${letters.slice(0, 150).join("")}… (${value.length.toLocaleString("en")} characters)`;
}

const lostSentence = ({ place, lost, loser, won, winner, isAsked }) =>
  `${place}: ${valueText(lost)} by ${loser} lost to ${valueText(won)} by ${winner}`
  + (isAsked ? "; its user is asked" : "");

/** A list of the values that one event reports, or null. */
function lostList(event, most) {
  const values = lostOf.get(event);
  if (!values) return null;
  const list = document.createElement("ul");
  list.className = "lost-list";
  const lines = values.slice(0, most).map(lostSentence);
  if (values.length > most) lines.push(`and ${values.length - most} more`);
  list.append(...lines.map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
  return list;
}

/** The table of the values that lost in the window. */
function showLost(shown) {
  byId("lost").hidden = lostValues.length === 0;
  if (lostValues.length === 0) return;
  const rows = shown.flatMap((event) => lostOf.get(event) ?? []);
  const text = (count) => count.toLocaleString("en");
  byId("lost-status").textContent = rows.length > lostRowsMax
    ? `The first ${text(lostRowsMax)} of ${text(rows.length)} in the shown stretch.`
    : `${text(rows.length)} of ${text(lostValues.length)} in the shown stretch.`;
  byId("lost-rows").replaceChildren(...rows.slice(0, lostRowsMax).map(lostRow));
}

function lostRow({ event, place, lost, loser, won, winner, isAsked }) {
  const row = document.createElement("tr");
  row.dataset.place = place;
  const cells = [
    [momentButton(event)], [run.actors[events.actor[event]]], [place],
    [side(lost, loser)], [side(won, winner), isAsked ? note("its user is asked") : ""],
  ];
  row.append(...cells.map((content) => {
    const cell = document.createElement("td");
    cell.append(...content);
    return cell;
  }));
  return row;
}

/** A value, and the device that wrote it. */
function side(value, author) {
  const found = document.createElement("span");
  const shown = document.createElement("code");
  shown.textContent = valueText(value);
  found.append(shown, note(author));
  return found;
}

function note(words) {
  const found = document.createElement("small");
  found.textContent = words;
  return found;
}
