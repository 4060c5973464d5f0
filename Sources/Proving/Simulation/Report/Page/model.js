// The meaning of the events: messages on their way, stretches of being down, cut off or
// buffered.
/** The events as columns, in order of time. Microseconds; -1 is "none". */
function readEvents(data) {
  const at = Float64Array.from(data.at);
  for (let i = 1; i < at.length; i++) at[i] += at[i - 1];
  return {
    count: at.length, at, actor: Int32Array.from(data.actor), kind: Int32Array.from(data.kind),
    peer: Int32Array.from(data.peer), message: Int32Array.from(data.message),
    detail: Int32Array.from(data.detail),
  };
}

const run = JSON.parse(document.getElementById("run-data").textContent);
const events = readEvents(run);
const kindOf = (event) => run.kinds[events.kind[event]];
const detailOf = (event) => run.details[events.detail[event]];
const isServer = run.actors.map((name) => /^server/.test(name));

// A leg is a message's way from one actor to another: { message, from, to, start, end, fate,
// flags, isAnswer, isCopy }; start and end are events. A request and its answer carry one
// message number. Fates: open (no end was seen), delivered, dropped, stalled.
const onTheWay = new Set(["sent", "delivered", "dropped", "duplicated", "delayed", "corrupted",
  "stalled"]);

function findLegs() {
  const legs = [];
  const ofMessage = new Map();
  for (let event = 0; event < events.count; event++) {
    const message = events.message[event];
    if (message < 0 || !onTheWay.has(kindOf(event))) continue;
    if (!ofMessage.has(message)) ofMessage.set(message, []);
    const known = ofMessage.get(message);
    const leg = followMessage(event, kindOf(event), known);
    if (!leg) continue;
    known.push(leg);
    legs.push(leg);
  }
  return legs;
}

/** Notes the event at its leg; answers with a new leg where it begins one. */
function followMessage(event, kind, known) {
  const [actor, peer] = [events.actor[event], events.peer[event]];
  if (kind === "sent") {
    const isAnswer = known.some((leg) => leg.from === peer && leg.to === actor);
    return newLeg(event, actor, peer, isAnswer || isServer[actor]);
  }
  const leg = legFor(kind, actor, known);
  const ends = kind === "delivered" || kind === "dropped" || kind === "stalled";
  if (!leg) {
    if (peer < 0 || !ends) return null;
    const [from, to] = kind === "delivered" ? [peer, actor] : [actor, peer];
    return { ...newLeg(event, from, to, false), end: event, fate: kind };
  }
  if (!ends) {
    leg.flags.push(kind);
    return null;
  }
  if (leg.fate === "open" || leg.fate === "stalled") {
    Object.assign(leg, { end: event, fate: kind });
    return null;
  }
  return { ...leg, flags: [...leg.flags], end: event, fate: kind, isCopy: true };
}

const newLeg = (event, from, to, isAnswer) => ({
  message: events.message[event], from, to, start: event, end: -1, fate: "open", flags: [],
  isAnswer, isCopy: false,
});

/** The leg that an event speaks of. An arrival names the receiver, all else the sender. */
function legFor(kind, actor, known) {
  let best = null;
  let bestScore = -1;
  for (const leg of known.slice(-32)) {
    const isOpen = leg.fate === "open" || leg.fate === "stalled";
    const score = kind === "delivered"
      ? (leg.to === actor ? 8 : 0) + (isOpen ? 4 : 0) + (leg.isCopy ? 0 : 1)
      : (isOpen ? 8 : 0) + (leg.from === actor ? 4 : 0) + (leg.to === actor ? 2 : 0);
    if (score > bestScore || (score === bestScore && kind !== "delivered")) {
      [best, bestScore] = [leg, score];
    }
  }
  return best;
}

/**
 * The words that messages begin with, the most frequent first: `push` of "push 3 operations",
 * `packets` of "POST packets 12B" and of the answer "200 to POST packets 12B".
 */
function findSorts(legs) {
  const counts = new Map();
  const opening = /^(?:\d+ to )?(?:(?:GET|POST|PUT|PATCH|DELETE) )?(\p{L}[\p{L}\p{N}_-]*)/u;
  const firstWord = (leg) => opening.exec(detailOf(leg.start))?.[1] ?? "";
  const sortOfMessage = new Map();
  for (const leg of legs) {
    if (!sortOfMessage.has(leg.message)) sortOfMessage.set(leg.message, firstWord(leg));
    const sort = sortOfMessage.get(leg.message);
    counts.set(sort, (counts.get(sort) ?? 0) + 1);
  }
  const sorts = [...counts.keys()].filter((word) => word !== "")
    .sort((a, b) => counts.get(b) - counts.get(a)).slice(0, 5);
  for (const leg of legs) leg.sort = sorts.indexOf(sortOfMessage.get(leg.message));
  return sorts;
}

/**
 * Stretches between a beginning and an end: { from, to, start, end, depth }, start and end
 * events, end -1 where there is none.
 */
function findSpans(begins, ends, belongs) {
  const spans = [];
  let open = [];
  for (let event = 0; event < events.count; event++) {
    const kind = kindOf(event);
    if (ends.includes(kind)) {
      const closed = belongs(open, event);
      for (const span of closed) span.end = event;
      open = open.filter((span) => !closed.includes(span));
    } else if (begins.includes(kind)) {
      const taken = new Set(open.map((span) => span.depth));
      let depth = 0;
      while (taken.has(depth)) depth++;
      const span = { from: events.actor[event], to: events.peer[event], start: event, end: -1,
        depth };
      open.push(span);
      spans.push(span);
    }
  }
  return spans;
}

const sameActor = (open, event) => open.filter((span) => span.from === events.actor[event]);
/**
 * Of the same two, and if there is one with the same words, only that: one way may heal before
 * the other. Without a peer all of the actor's; the world's end closes all.
 */
const samePair = (open, event) => {
  const [actor, peer] = [events.actor[event], events.peer[event]];
  if (peer < 0) return isLane(actor) ? sameActor(open, event) : open;
  const pair = open.filter((span) => span.from === actor && span.to === peer);
  const same = pair.find((span) => events.detail[span.start] === events.detail[event]);
  return same ? [same] : pair;
};
/** The buffer of the same message; without one, all of the device: its chain has closed. */
const sameBuffering = (open, event) => {
  const message = events.message[event];
  const mine = open.filter((span) => message >= 0 && events.message[span.start] === message);
  return mine.length ? mine : samePair(open, event);
};
/** `world` and the like stand for no process. */
const isLane = (actor) => run.actors[actor] !== "world";

const legs = findLegs();
const sorts = findSorts(legs);
const downs = findSpans(["crashed", "lostPower"], ["restarted"], sameActor);
const partitions = findSpans(["partitioned"], ["healed"], samePair);
const buffers = findSpans(["buffered"], ["released"], sameBuffering);
const phases = findSpans(["phase"], [], () => []);
const violations = [];
for (let event = 0; event < events.count; event++) {
  if (kindOf(event) === "violation") violations.push(event);
}
