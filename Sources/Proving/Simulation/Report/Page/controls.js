// Buttons, keys and checkboxes.
const actions = {
  "zoom-in": () => zoom(0.5),
  "zoom-out": () => zoom(2),
  "whole-run": showWholeRun,
  "previous-event": () => chooseNeighbour(-1),
  "next-event": () => chooseNeighbour(1),
  "next-violation": showNextViolation,
  "all-kinds": () => setKinds(() => true),
  "no-kinds": () => setKinds(() => false),
  "fault-kinds": () => setKinds((kind) => lookOf(kind).fault || kind === "restarted"
    || kind === "healed" || kind === "violation" || kind === "phase"),
  "story-kinds": () => setKinds(
    (kind) => !["read", "sent", "delivered", "pulled"].includes(kind)),
  "previous-page": () => view.page--,
  "next-page": () => view.page++,
  "copy-replay": copyReplay,
  "show-violations": () => byId("violations").scrollIntoView(),
};

function setKinds(isOn) {
  view.kinds = run.kinds.map(isOn);
  view.page = 0;
}

function chooseNeighbour(direction) {
  const event = neighbour(direction);
  if (event >= 0) choose(event);
}

/** The next violation after the chosen event; behind the last one, the first again. */
function showNextViolation() {
  const next = violations.find((event) => event > view.chosen) ?? violations[0];
  if (next !== undefined) choose(next, true);
}

function copyReplay() {
  const command = byId("replay");
  const range = document.createRange();
  range.selectNodeContents(command);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  const button = document.querySelector('[data-action="copy-replay"]');
  const say = (word) => { button.textContent = word; };
  const byHand = () => say(document.execCommand("copy") ? "Copied" : "Selected");
  if (navigator.clipboard) {
    navigator.clipboard.writeText(command.textContent).then(() => say("Copied"), byHand);
  } else {
    byHand();
  }
}

const step = () => (view.to - view.from) / 8;
const keys = {
  ArrowLeft: () => showWindow(view.from - step(), view.to - step()),
  ArrowRight: () => showWindow(view.from + step(), view.to + step()),
  PageUp: () => showWindow(view.from - step() * 7, view.to - step() * 7),
  PageDown: () => showWindow(view.from + step() * 7, view.to + step() * 7),
  Home: () => showWindow(0, view.to - view.from),
  End: () => showWindow(scale.length - (view.to - view.from), scale.length),
  "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "−": () => zoom(2),
  0: showWholeRun,
  n: () => chooseNeighbour(1), p: () => chooseNeighbour(-1), v: showNextViolation,
  Escape: () => choose(-1),
};

function pressKey(event) {
  const action = keys[event.key] ?? keys[event.key.toLowerCase()];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  tip.hidden = true;
  action();
  update();
}

/** A checkbox with a word, and a mark as the chart draws it. */
function checkbox(words, count, isOn, change) {
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = isOn;
  box.addEventListener("change", () => {
    change(box.checked);
    view.page = 0;
    update();
  });
  const amount = document.createElement("span");
  amount.className = "count";
  amount.textContent = count.toLocaleString("en");
  label.append(box, words, amount);
  return { label, box };
}

const kindBoxes = new Map();
const actorBoxes = new Map();

function buildChoices() {
  const ofKind = run.kinds.map(() => 0);
  const ofActor = run.actors.map(() => 0);
  for (let event = 0; event < events.count; event++) {
    ofKind[events.kind[event]]++;
    ofActor[events.actor[event]]++;
  }
  const groups = new Map();
  run.kinds.forEach((name, kind) => {
    if (ofKind[kind] === 0) return;
    const look = lookOf(name);
    if (!groups.has(look.group)) groups.set(look.group, []);
    const { label, box } = checkbox(
      wordsOf(name), ofKind[kind], true, (isOn) => { view.kinds[kind] = isOn; });
    label.dataset.kind = name;
    box.after(icon(name));
    kindBoxes.set(kind, box);
    groups.get(look.group).push(label);
  });
  byId("kinds").replaceChildren(...[...groups].map(([group, labels]) => {
    const fieldset = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = group;
    fieldset.append(legend, ...labels);
    return fieldset;
  }));
  run.actors.forEach((name, actor) => {
    const { label, box } = checkbox(
      name, ofActor[actor], true, (isOn) => { view.actors[actor] = isOn; });
    label.dataset.actor = name;
    actorBoxes.set(actor, box);
    byId("actors").append(label);
  });
}

/** A kind's mark; for the kinds that are lines, a piece of line. */
function icon(kind) {
  const canvas = document.createElement("canvas");
  canvas.dataset.icon = kind;
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}

function drawIcons() {
  for (const canvas of document.querySelectorAll("canvas[data-icon]")) {
    const look = lookOf(canvas.dataset.icon);
    const colour = palette[look.tone];
    const pen = prepare(canvas, 16, 16);
    if (look.shape !== "none") {
      drawMark(pen, look.shape, colour, 8, 8, 5);
    } else {
      pen.strokeStyle = colour;
      pen.lineWidth = 1.8;
      pen.setLineDash(canvas.dataset.icon === "duplicated" ? [3, 2] : []);
      pen.beginPath();
      strokes(pen, 8, 8, 6, [[-1, 0.8, 1, -0.8]]);
      pen.stroke();
      if (canvas.dataset.icon === "dropped") drawMark(pen, "cross", colour, 12, 4, 3);
    }
  }
}

/** What the colours of messages mean. */
function buildLegend() {
  const entries = sorts.map((word, place) => [word, sortTones[place], "solid"]);
  const has = (test) => legs.some(test);
  if (has((leg) => leg.isAnswer)) entries.push(["thin: an answer", "quiet", "solid"]);
  if (has((leg) => leg.fate === "dropped")) entries.push(["dropped", "red", "solid"]);
  if (has((leg) => leg.isCopy)) entries.push(["a second arrival", "quiet", "dashed"]);
  if (has((leg) => leg.fate === "stalled")) entries.push(["stalled", "orange", "solid"]);
  const isCorrupted = (leg) => leg.flags.includes("corrupted");
  if (has(isCorrupted)) entries.push(["corrupted", "pink", "solid"]);
  byId("legend").replaceChildren(...entries.map(([words, tone, line]) => {
    const entry = document.createElement("span");
    const sample = document.createElement("i");
    sample.style.borderTopColor = `var(--${tone})`;
    sample.style.borderTopStyle = line;
    entry.append(sample, words);
    return entry;
  }));
}
