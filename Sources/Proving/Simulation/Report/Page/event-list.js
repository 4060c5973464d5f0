// The table below the chart, and the story of the chosen event.
const rowsPerPage = 100;

function showTable(shown, messages) {
  const chosenPlace = view.chosen >= 0 ? shown.indexOf(view.chosen) : -1;
  if (chosenPlace >= 0 && view.chosen !== listedChoice) {
    view.page = Math.floor(chosenPlace / rowsPerPage);
  }
  listedChoice = view.chosen;
  const lastPage = Math.max(0, Math.ceil(shown.length / rowsPerPage) - 1);
  view.page = Math.min(Math.max(view.page, 0), lastPage);
  const first = view.page * rowsPerPage;
  const rows = shown.slice(first, first + rowsPerPage);
  byId("rows").replaceChildren(...rows.map(rowOf));
  const [from, to] = [Math.max(view.from, 0), Math.min(view.to, scale.length)].map(
    (place) => clockText(timeOf(scale, place)));
  const text = (count) => count.toLocaleString("en");
  const part = rows.length < shown.length
    ? `, rows ${text(first + 1)} to ${text(first + rows.length)}` : "";
  byId("window-status").textContent = `${text(shown.length)} of ${text(events.count)} events, `
    + `${text(messages)} messages from ${from} to ${to}${part}`;
  setDisabled("previous-page", view.page === 0);
  setDisabled("next-page", view.page === lastPage);
}
// The choice that the table has turned its page for already.
let listedChoice = -1;

const setDisabled = (action, isDisabled) => {
  document.querySelector(`[data-action="${action}"]`).disabled = isDisabled;
};

function rowOf(event) {
  const row = document.createElement("tr");
  row.dataset.event = event;
  row.dataset.kind = kindOf(event);
  if (event === view.chosen) row.setAttribute("aria-current", "true");
  const [peer, message] = [events.peer[event], events.message[event]];
  const cells = [
    momentButton(event), run.actors[events.actor[event]], wordsOf(kindOf(event)),
    peer >= 0 ? run.actors[peer] : "", message >= 0 ? `#${run.messages[message]}` : "",
    textOf(event),
  ].map((content) => {
    const cell = document.createElement("td");
    cell.append(content);
    return cell;
  });
  cells[2].className = "tone";
  cells[2].style.setProperty("--tone", `var(--${lookOf(kindOf(event)).tone})`);
  cells[5].append(lostList(event, lostPerCell) ?? "");
  row.append(...cells);
  return row;
}

/** A time that chooses its event. */
function momentButton(event) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "moment";
  button.dataset.choose = event;
  button.textContent = clockText(events.at[event], hasFineTimes ? 6 : 3);
  return button;
}
const hasFineTimes = events.at.some((time) => time % 1000 !== 0);

/** The chosen event, and all that happened to its message. */
function showStory() {
  const story = byId("story");
  if (view.chosen === toldChoice) return;
  toldChoice = view.chosen;
  if (view.chosen < 0) {
    story.replaceChildren();
    return;
  }
  const heading = document.createElement("h3");
  heading.textContent = sentenceOf(view.chosen);
  story.replaceChildren(heading, lostList(view.chosen, 100) ?? "");
  const message = events.message[view.chosen];
  if (message < 0) return;
  const list = document.createElement("ol");
  for (let event = 0; event < events.count; event++) {
    if (events.message[event] !== message || list.childElementCount >= 100) continue;
    const item = document.createElement("li");
    const words = sentenceOf(event).split(" ").slice(1).join(" ");
    item.append(momentButton(event), " ", words);
    list.append(item);
  }
  story.append(list);
}
let toldChoice = -1;
