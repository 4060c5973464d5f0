// The mouse and the finger on the chart: the event below it, dragging, the wheel.
/** What is near a place on the chart: events, the rare ones first, else a message. */
function eventsNear(x, y) {
  const reach = 8;
  const near = [];
  const start = firstEventAt(places, placeAt(x - reach));
  const limit = placeAt(x + reach);
  for (let event = start; event < events.count && places[event] <= limit; event++) {
    const isLine = kindOf(event) === "violation";
    if (!passes(event) || (!isLine && laneOf[events.actor[event]] < 0)) continue;
    const down = isLine ? 0 : Math.abs(yOf(events.actor[event]) - y);
    const distance = Math.hypot(xOfEvent(event) - x, down);
    if (distance <= (isLine ? 4 : reach)) {
      near.push({ event, distance, rank: rankOf(events.kind[event]) });
    }
  }
  near.sort((a, b) => b.rank - a.rank || a.distance - b.distance || a.event - b.event);
  const found = near.map(({ event }) => event);
  if (found.length === 0) {
    const leg = legNear(x, y);
    if (leg) found.push(leg.start, ...(leg.end >= 0 && leg.end !== leg.start ? [leg.end] : []));
  }
  return found;
}

function legNear(x, y) {
  let best = null;
  let bestDistance = 5;
  for (const { leg, x1, y1, x2, y2 } of drawnLegs) {
    if (x < Math.min(x1, x2) - 5 || x > Math.max(x1, x2) + 5) continue;
    const length = (x2 - x1) ** 2 + (y2 - y1) ** 2;
    const along = length ? ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length : 0;
    const share = Math.min(1, Math.max(0, along));
    const distance = Math.hypot(x - x1 - share * (x2 - x1), y - y1 - share * (y2 - y1));
    if (distance < bestDistance) [best, bestDistance] = [leg, distance];
  }
  return best;
}

/** An event in one sentence. */
const sentenceOf = (event) => `${clockText(events.at[event])} ${wordsAbout(event)}`;

/** The same without its time. */
function wordsAbout(event) {
  const peer = events.peer[event];
  const message = events.message[event];
  const arrow = kindOf(event) === "delivered" ? "←" : "→";
  const parts = [
    run.actors[events.actor[event]], wordsOf(kindOf(event)),
    peer >= 0 ? `${arrow} ${run.actors[peer]}` : "",
    message >= 0 ? `#${run.messages[message]}` : "",
  ].filter((part) => part !== "");
  const detail = textOf(event);
  return parts.join(" ") + (detail === "" ? "" : `: ${detail}`);
}

const tip = byId("tip");

function showTip(x, y) {
  const near = eventsNear(x, y);
  tip.hidden = near.length === 0;
  if (tip.hidden) return;
  const lines = near.slice(0, 6).map(sentenceOf);
  if (near.length === 1) lines.push(...(lostOf.get(near[0]) ?? []).slice(0, 3).map(lostSentence));
  if (near.length > 6) lines.push(`and ${near.length - 6} more`);
  tip.replaceChildren(...lines.map((line) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = line;
    return paragraph;
  }));
  const left = chart.offsetLeft + x;
  const isRight = x > chartWidth / 2;
  tip.style.left = isRight ? "" : `${left + 14}px`;
  tip.style.right = isRight ? `${byId("stage").clientWidth - left + 14}px` : "";
  tip.style.top = `${chart.offsetTop + y + 14}px`;
}

// A drag in progress: { x, from, to, isZoom, hasMoved }, or null.
let drag = null;

function startDrag(event) {
  if (event.button !== 0) return;
  drag = { x: event.offsetX, from: view.from, to: view.to, isZoom: event.shiftKey,
    hasMoved: false };
  chart.setPointerCapture(event.pointerId);
}

function moveDrag(event) {
  if (!drag) {
    showTip(event.offsetX, event.offsetY);
    return;
  }
  const moved = event.offsetX - drag.x;
  if (Math.abs(moved) > 4) drag.hasMoved = true;
  if (!drag.hasMoved) return;
  tip.hidden = true;
  if (drag.isZoom) {
    drawStretch(drag.x, event.offsetX);
  } else {
    chart.classList.add("moving");
    const distance = moved / chartWidth * (drag.to - drag.from);
    showWindow(drag.from - distance, drag.to - distance);
    update();
  }
}

function endDrag(event) {
  if (!drag) return;
  const { x, isZoom, hasMoved } = drag;
  drag = null;
  chart.classList.remove("moving");
  if (!hasMoved) {
    choose(eventsNear(event.offsetX, event.offsetY)[0] ?? -1);
  } else if (isZoom) {
    const ends = [placeAt(x), placeAt(event.offsetX)].sort((a, b) => a - b);
    showWindow(...ends);
  }
  update();
}

function cancelDrag() {
  drag = null;
  chart.classList.remove("moving");
  update();
}

/** The stretch that a Shift-drag would zoom into. */
function drawStretch(x1, x2) {
  drawChart(windowEvents());
  const pen = chart.getContext("2d");
  pen.globalAlpha = 0.2;
  pen.fillStyle = palette.focus;
  pen.fillRect(Math.min(x1, x2), 0, Math.abs(x2 - x1), chartHeight);
  pen.globalAlpha = 1;
}

/** The page scrolls as ever unless the timeline has the focus or Ctrl is held. */
function turnWheel(event) {
  const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  const isMine = event.ctrlKey || event.metaKey || document.activeElement === chart;
  if (!isMine && !isSideways) return;
  event.preventDefault();
  tip.hidden = true;
  if (isSideways) {
    const distance = (event.deltaX || event.deltaY) / chartWidth * (view.to - view.from);
    showWindow(view.from + distance, view.to + distance);
  } else {
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), placeAt(event.offsetX));
  }
  update();
}

function moveByOverview(event) {
  if (!(event.buttons & 1)) return;
  const share = event.offsetX / overview.clientWidth;
  const centre = share * scale.length * 1.02 - scale.length * 0.01;
  const half = (view.to - view.from) / 2;
  showWindow(centre - half, centre + half);
  update();
}
