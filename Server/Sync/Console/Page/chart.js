// Drawings of numbers over time. Each has a sentence for people who do not see it.
import { el, svg } from "./parts.js";

const height = 150;
const area = { left: 44, right: 550, top: 8, bottom: 126 };

/** A narrow screen gets a narrow drawing, so that its text stays readable. */
function fit() {
  area.right = document.getElementById("main").clientWidth < 692 ? 310 : 550;
}

/** The round number at the top of the scale. */
function ceiling(most) {
  const step = 10 ** Math.floor(Math.log10(most || 1));
  return [1, 2, 4, 10].map((factor) => factor * step).find((limit) => limit >= most) ?? 1;
}

const scale = (most) => (value) =>
  area.bottom - (area.bottom - area.top) * Math.min(1, value / ceiling(most));

const brief = (value) => value >= 10_000 ? `${Math.round(value / 1_000)}k`
  : value >= 10 || Number.isInteger(value) ? String(Math.round(value)) : value.toPrecision(2);

function frame(label, most, unit, ends) {
  fit();
  const y = scale(most);
  const top = ceiling(most);
  const lines = [0, top / 2, top].map((value) => [
    svg("line", { class: "grid", x1: area.left, x2: area.right, y1: y(value), y2: y(value) }),
    svg("text", { x: area.left - 6, y: y(value) + 4, "text-anchor": "end" }, brief(value) + unit),
  ]);
  const times = [
    svg("text", { x: area.left, y: height - 6 }, ends[0]),
    svg("text", { x: area.right, y: height - 6, "text-anchor": "end" }, ends[1]),
  ];
  return svg("svg", {
    class: "chart", role: "img", "aria-label": label,
    viewBox: `0 0 ${area.right + 10} ${height}`,
  }, lines, times);
}

function legend(series) {
  if (series.length < 2) return null;
  return el("p", { class: "legend" }, series.map(({ name, kind }) =>
    el("span", {}, el("span", { class: kind ?? "key", "aria-hidden": "true" }, "■ "), name)));
}

/** Bars of counts; series: {name, kind, values}. All have as many values as there are intervals. */
export function bars(label, series, ends) {
  const count = series[0].values.length;
  const most = Math.max(2, ...series.flatMap((one) => one.values));
  const drawing = frame(label, most, "", ends);
  const y = scale(most);
  const slot = (area.right - area.left) / Math.max(1, count);
  const wide = Math.max(1, (slot * .8) / series.length);
  series.forEach((one, order) => one.values.forEach((value, index) => {
    if (value === 0) return;
    const top = Math.min(y(value), area.bottom - 1);
    drawing.append(svg("rect", {
      class: `bar ${one.kind ?? ""}`, x: area.left + index * slot + order * wide, y: top,
      width: wide, height: area.bottom - top,
    }));
  }));
  return el("div", {}, drawing, legend(series));
}

/** Lines of values; a missing value interrupts its line. */
export function lines(label, series, ends, unit = "") {
  const count = Math.max(2, ...series.map((one) => one.values.length));
  const known = series.flatMap((one) => one.values).filter((value) => value !== null);
  const most = Math.max(...known, 0) || 1;
  const drawing = frame(label, most, unit, ends);
  const y = scale(most);
  for (const { values, kind } of series) {
    let path = "";
    let isOpen = false;
    values.forEach((value, index) => {
      if (value === null) {
        isOpen = false;
        return;
      }
      const x = area.left + (area.right - area.left) * (index / (count - 1));
      path += `${isOpen ? "L" : "M"}${x.toFixed(1)} ${y(value).toFixed(1)}`;
      if (!isOpen) path += `h.1`;
      isOpen = true;
    });
    drawing.append(svg("path", { class: `line ${kind ?? ""}`, d: path }));
  }
  return el("div", {}, drawing, legend(series));
}
