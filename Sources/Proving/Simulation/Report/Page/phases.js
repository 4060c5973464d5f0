// The phases of a run, in plain words.
// By the details of `phase` events.
const phaseFacts = {
  safety: { title: "Faults", tone: "safety",
    text: "Users write and devices sync, while the simulator loses and repeats messages, cuts "
      + "links, kills processes and lets disks fail. Oracles check each read and each answer: no "
      + "reader sees half a transaction, no confirmed write is lost, no device goes back." },
  heal: { title: "Heal", tone: "heal", text: "Faults end one after the other." },
  liveness: { title: "Drain", tone: "liveness",
    text: "All faults have ended, all devices are on, and users write nothing new. Every change "
      + "has to reach the server and every device within a bounded time. A change that is stuck "
      + "is a violation." },
  judgement: { title: "Verdict", tone: "other-phase",
    text: "Everything has arrived. Oracles compare the server's history with all devices: each "
      + "has the same rows, each write counts exactly once, and each value that lost a conflict "
      + "is accounted for." },
};
const phaseFact = (name) => phaseFacts[name] ?? { title: name, tone: "other-phase", text: "" };

/** `Faults (safety)`: words, and the name that the trace uses. */
const phaseTitle = (name) => phaseFacts[name] ? `${phaseFacts[name].title} (${name})` : name;

/** The text of an event, in words. */
function textOf(event) {
  const detail = detailOf(event);
  if (kindOf(event) === "phase") return phaseTitle(detail);
  return kindOf(event) === "conflict" ? detail.replace(/^1 values/, "1 value") : detail;
}

const phaseEnd = (index) => index + 1 < phases.length ? phases[index + 1].start : events.count - 1;

/** Lists the phases that the run had, with their times and their meaning. */
function buildPhases() {
  const items = phases.map((phase, index) => {
    const { title, tone, text } = phaseFact(detailOf(phase.start));
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "moment";
    button.dataset.phase = index;
    button.textContent = title;
    const times = document.createElement("span");
    times.className = "times";
    const [from, to] = [phase.start, phaseEnd(index)].map((event) => clockText(events.at[event]));
    times.textContent = from === to ? `at ${from}` : `${from} to ${to}`;
    item.style.borderLeftColor = `var(--${tone}-line, var(--rule))`;
    item.append(button, " ", times);
    if (text !== "") item.append(" ", text);
    return item;
  });
  const last = phases.length === 0 ? "" : detailOf(phases.at(-1).start);
  if (violations.length > 0 && ["safety", "heal", "liveness"].includes(last)) {
    const item = document.createElement("li");
    item.textContent = "The first violation ends a run, so no later phase began.";
    items.push(item);
  }
  byId("phases").replaceChildren(...items);
}

/** Shows one phase over the whole width. */
function showPhase(index) {
  const [from, to] = [places[phases[index].start], places[phaseEnd(index)]];
  const margin = Math.max(2, (to - from) * 0.02);
  showWindow(from - margin, to + margin);
}
