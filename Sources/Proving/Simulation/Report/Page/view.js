// The view: the window in time, the filter, the choice. The address contains it too.
const byId = (id) => document.getElementById(id);

const scales = { plain: plainScale(), shortened: shortenedScale() };
const view = {
  isShortened: scales.shortened.length < scales.plain.length / 2,
  // The window, in positions of the current scale.
  from: 0, to: 1,
  kinds: run.kinds.map(() => true),
  actors: run.actors.map(() => true),
  find: "",
  // For each event, whether it has the text to find; null when there is none.
  found: null,
  chosen: -1,
  page: 0,
};
let scale = null;
// The position of each event.
let places = null;
useScale();
showWholeRun();

function useScale() {
  scale = view.isShortened ? scales.shortened : scales.plain;
  places = events.at.map((time) => placeOf(scale, time));
}

/** A little room at both ends, so that the first and last marks are seen whole. */
function showWholeRun() {
  view.from = -scale.length * 0.01;
  view.to = scale.length * 1.01;
}

/** Moves the window, within the run and no closer than a few microseconds. */
function showWindow(from, to) {
  const margin = scale.length * 0.01;
  const longest = scale.length + 2 * margin;
  const length = Math.min(longest, Math.max(to - from, 4));
  const centre = (from + to) / 2;
  const latest = scale.length + margin - length;
  const start = Math.min(Math.max(centre - length / 2, -margin), latest);
  [view.from, view.to, view.page] = [start, start + length, 0];
}

function zoom(factor, around = (view.from + view.to) / 2) {
  showWindow(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

function setShortened(isShortened) {
  const [from, to] = [timeOf(scale, view.from), timeOf(scale, view.to)];
  view.isShortened = isShortened;
  useScale();
  showWindow(placeOf(scale, from), placeOf(scale, to));
}

function setFind(text) {
  view.find = text;
  view.page = 0;
  const wanted = text.trim().toLowerCase();
  if (wanted === "") {
    view.found = null;
    return;
  }
  // Made once, when somebody searches.
  searchTexts ??= Array.from({ length: events.count }, (_, event) => searchTextOf(event));
  view.found = searchTexts.map((words) => words.includes(wanted));
}
let searchTexts = null;

/** All that an event shows, and the name of its kind in the trace: `syncFailed`. */
const searchTextOf = (event) =>
  [wordsAbout(event), kindOf(event), ...(lostOf.get(event) ?? []).map(lostSentence)]
    .join(" ").toLowerCase();

const passes = (event) => view.kinds[events.kind[event]] && view.actors[events.actor[event]]
  && (view.found === null || view.found[event]);

/** A leg is shown where both its lanes are, and one of its events passes the filter. */
const legPasses = (leg) => view.actors[leg.from] && leg.to >= 0 && view.actors[leg.to]
  && (passes(leg.start) || (leg.end >= 0 && passes(leg.end))
    || (view.found === null
      && leg.flags.some((kind) => view.kinds[run.kinds.indexOf(kind)])));

/** The events of the window that pass the filter. */
function windowEvents() {
  const found = [];
  const start = firstEventAt(places, view.from);
  for (let event = start; event < events.count && places[event] <= view.to; event++) {
    if (passes(event)) found.push(event);
  }
  return found;
}

/** Chooses an event, and brings it into the window; `closely` zooms in on what is around it. */
function choose(event, closely = false) {
  view.chosen = event;
  if (event < 0) return;
  const place = places[event];
  if (closely) {
    const first = places[Math.max(0, event - 100)];
    const last = places[Math.min(events.count - 1, event + 60)];
    const reach = Math.max(place - first, last - place, 10);
    showWindow(place - reach, place + reach);
  } else if (place < view.from || place > view.to) {
    const half = (view.to - view.from) / 2;
    showWindow(place - half, place + half);
  }
}

/** The next event after the chosen one that passes, or the one before it. */
function neighbour(direction, accepts = passes) {
  const none = direction > 0
    ? firstEventAt(places, view.from) - 1 : firstEventAt(places, view.to);
  let event = view.chosen >= 0 ? view.chosen : none;
  do event += direction; while (event >= 0 && event < events.count && !accepts(event));
  return event >= 0 && event < events.count ? event : -1;
}

const listed = (flags, names) => names.filter((_, place) => flags[place]).join(",");

/** The view as the address's fragment; what is as at the start is left out. */
function fragmentOf() {
  const parts = new URLSearchParams();
  if (view.kinds.includes(false)) parts.set("kinds", listed(view.kinds, run.kinds));
  if (view.actors.includes(false)) parts.set("actors", listed(view.actors, run.actors));
  if (view.find !== "") parts.set("find", view.find);
  if (view.isShortened !== startsShortened) parts.set("shorten", view.isShortened ? "1" : "0");
  if (view.to - view.from < scale.length * 1.0199) {
    parts.set("from", String(Math.floor(timeOf(scale, view.from))));
    parts.set("to", String(Math.ceil(timeOf(scale, view.to))));
  }
  if (view.chosen >= 0) parts.set("event", String(view.chosen));
  return parts.toString().replaceAll("%2C", ",");
}
const startsShortened = view.isShortened;

/** Takes the view from a fragment such as `kinds=crashed,restarted&from=0&to=5000000`. */
function applyFragment(fragment) {
  const parts = new URLSearchParams(fragment);
  const flags = (key, names) => {
    const wanted = parts.get(key)?.split(",");
    return names.map((name) => wanted === undefined || wanted.includes(name));
  };
  view.kinds = flags("kinds", run.kinds);
  view.actors = flags("actors", run.actors);
  setFind(parts.get("find") ?? "");
  view.isShortened = parts.has("shorten") ? parts.get("shorten") === "1" : startsShortened;
  useScale();
  showWholeRun();
  const [from, to] = [parts.get("from"), parts.get("to")].map((text) => Number(text ?? NaN));
  if (from < to) showWindow(placeOf(scale, from), placeOf(scale, to));
  const event = Number(parts.get("event") ?? -1);
  if (Number.isInteger(event) && event < events.count) choose(event, !(from < to));
}
