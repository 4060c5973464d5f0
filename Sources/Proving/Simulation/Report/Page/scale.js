// From virtual time to places on the axis, and to words.
// A scale maps microseconds to positions on the axis. A shortened scale gives long stretches
// in which nothing happens little room, so that a run with months offline can be read.
function plainScale() {
  const first = events.count ? Math.min(0, events.at[0]) : 0;
  const last = events.count ? events.at[events.count - 1] : 0;
  return makeScale([first, Math.max(last, first + 1)], Infinity);
}

function shortenedScale() {
  const gaps = [];
  for (let i = 1; i < events.count; i++) {
    const gap = events.at[i] - events.at[i - 1];
    if (gap > 0) gaps.push(gap);
  }
  gaps.sort((a, b) => a - b);
  const usual = gaps[Math.floor(gaps.length * 0.9)] ?? 1;
  return makeScale([Math.min(0, events.at[0] ?? 0), ...events.at], usual * 20);
}

function makeScale(times, limit) {
  const knotTimes = [times[0]];
  const knotPlaces = [0];
  const gaps = [];
  const add = (time, place) => {
    knotTimes.push(time);
    knotPlaces.push(place);
  };
  let place = 0;
  let before = times[0];
  for (let i = 1; i < times.length; i++) {
    const gap = times[i] - before;
    if (gap > limit * 2) {
      add(before, place);
      gaps.push({ from: place, to: place + limit, duration: gap });
      place += limit;
      add(times[i], place);
    } else {
      place += gap;
    }
    before = times[i];
  }
  add(before, Math.max(place, 1));
  return { knotTimes, knotPlaces, gaps, length: Math.max(place, 1) };
}

const placeOf = (scale, time) => between(scale.knotTimes, scale.knotPlaces, time);
const timeOf = (scale, place) => between(scale.knotPlaces, scale.knotTimes, place);

/** Linear between two knots, and beyond the last ones. */
function between(inputs, outputs, input) {
  let [low, high] = [0, inputs.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (inputs[middle] <= input) low = middle; else high = middle;
  }
  const width = inputs[high] - inputs[low];
  if (width === 0) return outputs[low];
  return outputs[low] + (input - inputs[low]) / width * (outputs[high] - outputs[low]);
}

/** The first event at or after a place, by halving. */
function firstEventAt(places, place) {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] < place) low = middle + 1; else high = middle;
  }
  return low;
}

/** `3 d 4:05:06.789`: as VirtualTime in the summary, with as many digits as are asked for. */
function clockText(time, digits = 3) {
  const sign = time < 0 ? "−" : "";
  const size = Math.abs(time);
  const seconds = Math.floor(size / 1e6);
  const two = (value) => String(value).padStart(2, "0");
  const fraction = String(Math.floor(size - seconds * 1e6)).padStart(6, "0").slice(0, digits);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  const tail = `${two(seconds % 60)}${digits ? "." + fraction : ""}`;
  if (days) return `${sign}${days} d ${hours % 24}:${two(minutes % 60)}:${tail}`;
  if (hours) return `${sign}${hours}:${two(minutes % 60)}:${tail}`;
  return `${sign}${minutes}:${tail}`;
}

/** A length of time in its largest units: `12 d 4 h`, `3.2 s`. */
function durationText(time) {
  const units = [[864e8, "d"], [36e8, "h"], [6e7, "min"], [1e6, "s"], [1e3, "ms"], [1, "µs"]];
  const place = Math.max(0, units.findIndex(([size]) => time >= size));
  const [size, name] = units[time < 1 ? 5 : place];
  if (place >= 3 || time < 1) return `${Number((time / size).toPrecision(3))} ${name}`;
  const [smaller, smallerName] = units[place + 1];
  const rest = Math.floor((time % size) / smaller);
  return `${Math.floor(time / size)} ${name}${rest ? ` ${rest} ${smallerName}` : ""}`;
}

const tickSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5,
  5e5, 1e6, 2e6, 5e6, 1e7, 1.5e7, 3e7, 6e7, 12e7, 3e8, 6e8, 9e8, 18e8, 36e8, 72e8, 216e8,
  432e8, 864e8, 1728e8, 6048e8, 2592e9, 7776e9, 31536e9];

/** Round times for the axis, at least `room` positions apart. */
function ticksBetween(scale, from, to, room) {
  const step = tickSteps.find((size) => size >= room) ?? 31536e9;
  const ticks = [];
  const end = Math.min(to, scale.length);
  let time = Math.ceil(timeOf(scale, Math.max(from, 0)) / step) * step;
  let place = placeOf(scale, time);
  while (place <= end && ticks.length < 200) {
    ticks.push({ time, place });
    const next = Math.ceil(timeOf(scale, place + room) / step - 1e-9) * step;
    time = Math.max(time + step, next);
    place = placeOf(scale, time);
  }
  const digits = step >= 1e6 ? 0 : step >= 1e3 ? 3 : 6;
  return ticks.map((tick) => ({ ...tick, text: clockText(tick.time, digits) }));
}
