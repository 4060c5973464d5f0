// Puts it all on the page, and keeps it in step with the view.
let isScheduled = false;

/** Shows the view as it is now, once for all changes before the next frame. */
function update() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    render();
  });
}

function render() {
  const actorsNow = listed(view.actors, run.actors);
  if (actorsNow !== laidOutActors || chart.clientWidth !== chartWidth) layOutLanes();
  laidOutActors = actorsNow;
  const shown = windowEvents();
  const messages = drawChart(shown);
  drawOverview();
  showTable(shown, messages);
  showLost(shown);
  showStory();
  for (const [kind, box] of kindBoxes) box.checked = view.kinds[kind];
  for (const [actor, box] of actorBoxes) box.checked = view.actors[actor];
  byId("squeeze").checked = view.isShortened;
  chart.setAttribute("aria-label",
    `Timeline of ${lanes.length} lanes: ${byId("window-status").textContent}`);
  rememberView();
}
let laidOutActors = null;

// The address follows at some distance: browsers slow down pages that change it all the time.
let rememberTimer = 0;
let remembered = location.hash.slice(1);
function rememberView() {
  clearTimeout(rememberTimer);
  rememberTimer = setTimeout(() => {
    const fragment = fragmentOf();
    if (fragment === remembered) return;
    remembered = fragment;
    history.replaceState(null, "", fragment === "" ? location.pathname : "#" + fragment);
  }, 250);
}

function takeFragment() {
  const fragment = location.hash.slice(1);
  if (fragment === remembered) return;
  remembered = fragment;
  applyFragment(fragment);
  byId("find").value = view.find;
  update();
}

function listen() {
  document.addEventListener("click", (event) => {
    const target = event.target.closest(
      "[data-action], [data-choose], [data-phase], a[data-event]");
    if (!target) return;
    const { action, choose: listed, event: linked, phase } = target.dataset;
    if (action) actions[action]();
    else if (phase) showPhase(Number(phase));
    else if (listed) choose(Number(listed));
    else choose(Number(linked), true);
    if (target.matches("a")) event.preventDefault();
    if (linked) {
      chart.scrollIntoView({ block: "center" });
      chart.focus({ preventScroll: true });
    }
    update();
  });
  chart.addEventListener("pointerdown", startDrag);
  chart.addEventListener("pointermove", moveDrag);
  chart.addEventListener("pointerup", endDrag);
  chart.addEventListener("pointercancel", cancelDrag);
  chart.addEventListener("pointerleave", () => { tip.hidden = true; });
  chart.addEventListener("wheel", turnWheel, { passive: false });
  chart.addEventListener("keydown", pressKey);
  chart.addEventListener("dblclick", (event) => {
    zoom(0.4, placeAt(event.offsetX));
    update();
  });
  overview.addEventListener("pointerdown", moveByOverview);
  overview.addEventListener("pointermove", moveByOverview);
  byId("find").addEventListener("input", (event) => {
    setFind(event.target.value);
    update();
  });
  byId("squeeze").addEventListener("change", (event) => {
    setShortened(event.target.checked);
    update();
  });
  window.addEventListener("hashchange", takeFragment);
  new ResizeObserver(update).observe(byId("stage"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readPalette();
    drawIcons();
    update();
  });
}

readPalette();
buildChoices();
drawIcons();
buildLegend();
buildPhases();
byId("next-violation").hidden = violations.length === 0;
byId("squeeze").parentElement.hidden = scales.shortened.gaps.length === 0;
applyFragment(remembered);
byId("find").value = view.find;
byId("filters").open = view.kinds.includes(false) || view.actors.includes(false);
listen();
render();
document.documentElement.dataset.state = "ready";
