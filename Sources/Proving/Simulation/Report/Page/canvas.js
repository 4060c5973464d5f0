// The canvas: sizes, lanes, bands, stretches, messages.
const chart = byId("chart");
const overview = byId("overview");
const axisHeight = 30;
let palette = {};
// The lanes shown, as numbers of actors, and the lane of each actor, or -1.
let lanes = [];
let laneOf = [];
let laneHeight = 30;
let chartWidth = 0;
let chartHeight = 0;
// The legs drawn last, with their places, for the pointer.
let drawnLegs = [];

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const names = ["paper", "panel", "ink", "quiet", "rule", "band", "lane", "focus", "blue",
    "teal", "green", "grey", "amber", "orange", "red", "pink", "violet", "brown", "safety",
    "heal", "liveness", "other-phase"];
  palette = Object.fromEntries(
    names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}

/** Sizes a canvas for the screen's pixels; answers with its pen. */
function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const size = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== size[0] || canvas.height !== size[1]) {
    [canvas.width, canvas.height] = size;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

// Actors that nothing happens to have no lane, nor has the world unless it marks something.
const hasLane = run.actors.map((_, actor) => isLane(actor));
for (let event = 0; event < events.count; event++) {
  if (lookOf(kindOf(event)).shape !== "none" && kindOf(event) !== "violation") {
    hasLane[events.actor[event]] = true;
  }
}

function layOutLanes() {
  lanes = run.actors.map((_, actor) => actor)
    .filter((actor) => hasLane[actor] && view.actors[actor]);
  laneOf = run.actors.map((_, actor) => lanes.indexOf(actor));
  laneHeight = Math.min(44, Math.max(22, Math.floor(640 / Math.max(1, lanes.length))));
  chartHeight = axisHeight + lanes.length * laneHeight + 6;
  chart.style.height = chartHeight + "px";
  byId("lanes").replaceChildren(...lanes.map((actor) => {
    const item = document.createElement("li");
    const name = document.createElement("span");
    item.style.height = laneHeight + "px";
    name.textContent = name.title = run.actors[actor];
    item.className = isServer[actor] ? "server" : "";
    item.append(name);
    return item;
  }));
  chartWidth = chart.clientWidth;
}

const xOf = (place) => (place - view.from) / (view.to - view.from) * chartWidth;
const placeAt = (x) => view.from + x / chartWidth * (view.to - view.from);
const yOf = (actor) => axisHeight + (laneOf[actor] + 0.5) * laneHeight;
const xOfEvent = (event) => xOf(places[event]);
const endOfSpan = (span) => span.end < 0 ? scale.length : places[span.end];
const isInWindow = (from, to) => from <= view.to && to >= view.from;
const clampX = (x) => Math.min(Math.max(x, -20), chartWidth + 20);

function paintPhases(pen) {
  pen.font = "600 12px system-ui, sans-serif";
  phases.forEach((phase, index) => {
    const start = places[phase.start];
    const end = index + 1 < phases.length ? places[phases[index + 1].start] : scale.length;
    if (!isInWindow(start, end)) return;
    const [x1, x2] = [clampX(xOf(start)), clampX(xOf(end))];
    const { title, tone } = phaseFact(detailOf(phase.start));
    pen.fillStyle = palette[tone];
    pen.fillRect(x1, 0, x2 - x1, chartHeight);
    pen.fillStyle = palette.quiet;
    writeWithin(pen, title, Math.max(x1, 0) + 5, 11, Math.min(x2, chartWidth));
  });
}

/** Text up to a limit on the right; none where it does not fit. */
function writeWithin(pen, text, x, y, limit) {
  if (x + pen.measureText(text).width + 4 <= limit) pen.fillText(text, x, y);
}

function paintGaps(pen) {
  pen.strokeStyle = palette.quiet;
  pen.fillStyle = palette.quiet;
  pen.font = "11px system-ui, sans-serif";
  for (const gap of scale.gaps) {
    if (!isInWindow(gap.from, gap.to)) continue;
    const [x1, x2] = [xOf(gap.from), xOf(gap.to)];
    pen.setLineDash([2, 4]);
    pen.lineWidth = 1;
    pen.strokeRect(x1 + 1, axisHeight, Math.max(1, x2 - x1 - 2), chartHeight - axisHeight);
    pen.setLineDash([]);
    writeWithin(pen, `${durationText(gap.duration)} quiet`, x1 + 4, axisHeight + 11, x2);
  }
}

function paintAxis(pen) {
  const room = (view.to - view.from) / chartWidth * 96;
  pen.font = "11px system-ui, sans-serif";
  for (const tick of ticksBetween(scale, view.from, view.to, room)) {
    const x = Math.round(xOf(tick.place)) + 0.5;
    pen.strokeStyle = palette.rule;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, 20);
    pen.lineTo(x, chartHeight);
    pen.stroke();
    pen.fillStyle = palette.quiet;
    writeWithin(pen, tick.text, x + 3, 26, chartWidth);
  }
}

/** A line for each actor, interrupted while its process is down. */
function paintLanes(pen) {
  const shownDowns = downs.filter((span) => laneOf[span.from] >= 0);
  for (const actor of lanes) {
    const y = yOf(actor);
    const [start, end] = [clampX(xOf(0)), clampX(xOf(scale.length))];
    pen.strokeStyle = palette.lane;
    pen.lineWidth = isServer[actor] ? 3 : 1.5;
    pen.beginPath();
    let x = start;
    for (const span of shownDowns) {
      if (span.from !== actor) continue;
      pen.moveTo(x, y);
      pen.lineTo(Math.max(x, clampX(xOfEvent(span.start))), y);
      x = Math.max(x, clampX(xOf(endOfSpan(span))));
    }
    pen.moveTo(x, y);
    pen.lineTo(Math.max(x, end), y);
    pen.stroke();
  }
  for (const span of shownDowns) paintSpan(pen, span, "red", "down", 0.38);
}

/** A shaded stretch of one lane, hatched, with words where they fit. */
function paintSpan(pen, span, tone, words, share, actor = span.from) {
  const [from, to] = [places[span.start], endOfSpan(span)];
  if (laneOf[actor] < 0 || !isInWindow(from, to)) return;
  const [x1, x2] = [clampX(xOf(from)), clampX(xOf(to))];
  const height = laneHeight * share;
  const top = yOf(actor) - height / 2;
  pen.save();
  pen.beginPath();
  pen.rect(x1, top, Math.max(1.5, x2 - x1), height);
  pen.clip();
  pen.globalAlpha = 0.16;
  pen.fillStyle = palette[tone];
  pen.fillRect(x1, top, Math.max(1.5, x2 - x1), height);
  pen.globalAlpha = 0.4;
  pen.strokeStyle = palette[tone];
  pen.lineWidth = 1;
  pen.beginPath();
  const offset = ((x1 % 7) + 7) % 7;
  for (let x = x1 - offset - height; x < x2; x += 7) {
    pen.moveTo(x, top + height);
    pen.lineTo(x + height, top);
  }
  pen.stroke();
  pen.restore();
  pen.fillStyle = palette.ink;
  pen.font = "11px system-ui, sans-serif";
  // Behind the mark of the beginning.
  const visible = Math.max(x1 + 9, 3);
  writeWithin(pen, words, visible, top + Math.min(height - 3, 11), Math.min(x2, chartWidth));
}

/** A partition shades the devices that it cuts off; all lanes where the world names none. */
function paintPartitions(pen) {
  for (const span of partitions) {
    if (!passes(span.start) && !(span.end >= 0 && passes(span.end))) continue;
    const sides = [span.from, span.to].filter((actor) => actor >= 0 && isLane(actor));
    const devices = sides.filter((actor) => !isServer[actor]);
    const cut = devices.length ? devices : sides.length ? sides : lanes;
    const words = detailOf(span.start) || "partition";
    for (const actor of cut) paintSpan(pen, span, "orange", words, 0.86, actor);
  }
}

/** A thin bar in the server's lane for each buffered packet. */
function paintBuffered(pen) {
  for (const span of buffers) {
    const [from, to] = [places[span.start], endOfSpan(span)];
    if (laneOf[span.from] < 0 || !isInWindow(from, to)) continue;
    if (!passes(span.start) && !(span.end >= 0 && passes(span.end))) continue;
    const [x1, x2] = [clampX(xOf(from)), clampX(xOf(to))];
    const y = yOf(span.from) + laneHeight / 2 - 3 - (span.depth % 4) * 3;
    pen.fillStyle = palette.amber;
    pen.fillRect(x1, y, Math.max(2, x2 - x1), 2);
  }
}
