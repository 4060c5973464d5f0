// The canvas: messages, marks, the choice, the whole run in small.
const sortTones = ["blue", "teal", "violet", "brown", "green"];
const toneOfLeg = (leg) => leg.fate === "dropped" ? "red"
  : leg.flags.includes("corrupted") ? "pink"
  : leg.fate === "stalled" ? "orange"
  : leg.sort >= 0 ? sortTones[leg.sort] : "blue";

/** Where a leg is drawn. One that never arrived ends on its way. */
function placeLeg(leg) {
  const [x1, y1] = [xOfEvent(leg.start), yOf(leg.from)];
  const share = leg.fate === "delivered" ? 1 : leg.fate === "dropped" ? 0.55 : 0.75;
  const x2 = leg.end >= 0 ? xOfEvent(leg.end) : x1 + 12;
  return { leg, x1, y1, x2, y2: y1 + (yOf(leg.to) - y1) * share };
}

function paintMessages(pen) {
  const isShown = (leg) => {
    const end = leg.end >= 0 ? places[leg.end] : places[leg.start];
    return laneOf[leg.from] >= 0 && laneOf[leg.to] >= 0
      && isInWindow(places[leg.start], end) && legPasses(leg);
  };
  drawnLegs = legs.filter(isShown).map(placeLeg);
  const chosenMessage = view.chosen >= 0 ? events.message[view.chosen] : -1;
  const isChosen = ({ leg }) => chosenMessage >= 0 && leg.message === chosenMessage;
  // Where thousands would hide everything else, each is faint, and one a pixel is enough.
  const usual = Math.min(0.85, Math.max(0.05, chartWidth * 0.22 / drawnLegs.length));
  const styles = new Map();
  const seen = new Set();
  for (const drawn of drawnLegs) {
    if (isChosen(drawn)) continue;
    const { leg } = drawn;
    const style = [toneOfLeg(leg), leg.isCopy, leg.isAnswer, leg.fate === "dropped"].join(" ");
    const key = `${style} ${drawn.x1 | 0} ${drawn.y1} ${drawn.x2 | 0} ${drawn.y2}`;
    if (seen.has(key)) continue;
    seen.add(key);
    if (!styles.has(style)) styles.set(style, []);
    styles.get(style).push(drawn);
  }
  for (const group of styles.values()) {
    const strength = group[0].leg.fate === "dropped" ? Math.max(usual, 0.35) : usual;
    pen.globalAlpha = strength * (chosenMessage >= 0 ? 0.35 : 1);
    strokeLegs(pen, group, usual < 0.5 ? 1 : 1.4);
  }
  pen.globalAlpha = 1;
  for (const drawn of drawnLegs.filter(isChosen)) strokeLegs(pen, [drawn], 3);
  return drawnLegs.length;
}

/** Lines of one look; a cross where a message was dropped. */
function strokeLegs(pen, group, width) {
  const leg = group[0].leg;
  pen.strokeStyle = palette[toneOfLeg(leg)];
  pen.lineWidth = leg.isAnswer ? width * 0.75 : width;
  pen.setLineDash(leg.isCopy ? [5, 4] : []);
  pen.beginPath();
  for (const { x1, y1, x2, y2 } of group) {
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
  }
  pen.stroke();
  pen.setLineDash([]);
  const r = width + 2.2;
  pen.beginPath();
  for (const drawn of group) {
    if (drawn.leg.fate === "dropped") shapes.cross(pen, drawn.x2, drawn.y2, r);
  }
  pen.lineWidth = 1.6;
  pen.stroke();
  if (drawnLegs.length < chartWidth / 6 || width > 2) paintArrows(pen, group);
}

/** Small heads, where there is room for them. */
function paintArrows(pen, group) {
  pen.fillStyle = palette[toneOfLeg(group[0].leg)];
  pen.beginPath();
  for (const { leg, x1, y1, x2, y2 } of group) {
    const length = Math.hypot(x2 - x1, y2 - y1);
    if (leg.fate !== "delivered" || length < 16) continue;
    const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
    pen.moveTo(x2, y2);
    pen.lineTo(x2 - 7 * dx - 3 * dy, y2 - 7 * dy + 3 * dx);
    pen.lineTo(x2 - 7 * dx + 3 * dy, y2 - 7 * dy - 3 * dx);
  }
  pen.fill();
}

/** One mark a pixel, lane and kind; common kinds first, so that the rare ones are on top. */
function paintMarks(pen, shown) {
  const byKind = run.kinds.map(() => []);
  const seen = new Set();
  for (const event of shown) {
    if (laneOf[events.actor[event]] < 0) continue;
    const x = xOfEvent(event);
    const key = ((events.kind[event] * 512) + laneOf[events.actor[event]]) * 8192 + (x | 0);
    if (seen.has(key)) continue;
    seen.add(key);
    byKind[events.kind[event]].push([x, yOf(events.actor[event])]);
  }
  const order = run.kinds.map((_, kind) => kind)
    .sort((a, b) => rankOf(a) - rankOf(b) || a - b);
  for (const kind of order) paintKind(pen, lookOf(run.kinds[kind]), byKind[kind]);
}
const rankOf = (kind) => {
  const look = lookOf(run.kinds[kind]);
  return look.common ? 0 : look.fault ? 2 : look.shape === "star" ? 3 : 1;
};

function paintKind(pen, look, marks) {
  const colour = palette[look.tone];
  if (look.common && marks.length > chartWidth * lanes.length / 24) {
    // So many that they touch: thin strokes show where there are more and where fewer.
    pen.fillStyle = colour;
    pen.globalAlpha = 0.55;
    const reach = laneHeight * 0.2;
    for (const [x, y] of marks) pen.fillRect(x - 0.5, y - reach, 1, reach * 2);
    pen.globalAlpha = 1;
    return;
  }
  const r = look.common ? 4 : marks.length > 400 ? 4.5 : 5.5;
  for (const [x, y] of marks) drawMark(pen, look.shape, colour, x, y, r);
}

/** A red line through all lanes: where an oracle saw something wrong. */
function paintViolations(pen) {
  for (const event of violations) {
    if (!passes(event) || !isInWindow(places[event], places[event])) continue;
    const x = xOfEvent(event);
    pen.fillStyle = palette.red;
    pen.fillRect(x - 1, 12, 2, chartHeight);
    drawMark(pen, "star", palette.red, x, 10, 6);
  }
}

function paintChosen(pen) {
  const event = view.chosen;
  if (event < 0 || places[event] < view.from || places[event] > view.to) return;
  const x = xOfEvent(event);
  pen.strokeStyle = palette.focus;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x, axisHeight - 4);
  pen.lineTo(x, chartHeight);
  pen.stroke();
  if (laneOf[events.actor[event]] < 0) return;
  pen.lineWidth = 2.5;
  pen.beginPath();
  circle(pen, x, yOf(events.actor[event]), 10);
  pen.stroke();
}

function drawChart(shown) {
  const pen = prepare(chart, chartWidth, chartHeight);
  pen.fillStyle = palette.panel;
  pen.fillRect(0, 0, chartWidth, chartHeight);
  paintPhases(pen);
  paintAxis(pen);
  paintGaps(pen);
  paintPartitions(pen);
  paintLanes(pen);
  const messages = paintMessages(pen);
  paintBuffered(pen);
  paintMarks(pen, shown);
  paintViolations(pen);
  paintChosen(pen);
  return messages;
}

/** How much happens when, over the whole run, and where the window is. */
function drawOverview() {
  const [width, height] = [overview.clientWidth, overview.clientHeight];
  const pen = prepare(overview, width, height);
  const longest = scale.length * 1.02;
  const xAt = (place) => (place + scale.length * 0.01) / longest * width;
  const heights = { common: new Float64Array(width + 1), fault: new Float64Array(width + 1) };
  for (let event = 0; event < events.count; event++) {
    if (!passes(event)) continue;
    const look = lookOf(kindOf(event));
    heights[look.fault ? "fault" : "common"][xAt(places[event]) | 0]++;
  }
  const most = heights.common.reduce((a, b, x) => Math.max(a, b + heights.fault[x]), 1);
  for (let x = 0; x < width; x++) {
    const [fault, common] = [heights.fault[x], heights.common[x]].map(
      (count) => count && Math.max(2, Math.sqrt(count / most) * (height - 6)));
    pen.fillStyle = palette.lane;
    pen.fillRect(x, height - common, 1, common);
    pen.fillStyle = palette.orange;
    pen.fillRect(x, height - fault, 1, fault);
  }
  pen.fillStyle = palette.red;
  for (const event of violations) pen.fillRect(xAt(places[event]) - 1, 0, 2, height);
  const [x1, x2] = [xAt(view.from), xAt(view.to)];
  pen.fillStyle = palette.focus;
  pen.globalAlpha = 0.14;
  pen.fillRect(x1, 0, Math.max(3, x2 - x1), height);
  pen.globalAlpha = 1;
  pen.strokeStyle = palette.focus;
  pen.lineWidth = 2;
  pen.strokeRect(x1 + 1, 1, Math.max(3, x2 - x1 - 2), height - 2);
}
