// How each kind of event looks, and the shapes of the marks.
// How kinds of events look. `common` ones are drawn small, and below all others.
const looks = {
  wrote: { group: "Device", tone: "blue", shape: "dot", common: true },
  read: { group: "Device", tone: "grey", shape: "ring", common: true },
  synced: { group: "Device", tone: "green", shape: "dot", common: true },
  syncFailed: { group: "Device", tone: "orange", shape: "ring" },
  conflict: { group: "Device", tone: "amber", shape: "diamond" },
  crashed: { group: "Device", tone: "red", shape: "cross", fault: true },
  lostPower: { group: "Device", tone: "red", shape: "bolt", fault: true },
  restarted: { group: "Device", tone: "green", shape: "play" },
  copied: { group: "Device", tone: "violet", shape: "pair", fault: true },
  clockMoved: { group: "Device", tone: "brown", shape: "clock", fault: true },
  upgraded: { group: "Device", tone: "violet", shape: "up" },
  migrated: { group: "Device", tone: "brown", shape: "torn", fault: true },
  attached: { group: "Device", tone: "brown", shape: "torn", fault: true },
  mission: { group: "Device", tone: "violet", shape: "up" },
  bundle: { group: "Device", tone: "violet", shape: "up" },
  filled: { group: "Device", tone: "teal", shape: "ring", common: true },
  exchanged: { group: "Device", tone: "teal", shape: "up" },
  mirrored: { group: "Device", tone: "teal", shape: "ring", common: true },
  sent: { group: "Network", tone: "blue", shape: "none", common: true },
  delivered: { group: "Network", tone: "blue", shape: "none", common: true },
  dropped: { group: "Network", tone: "red", shape: "none", fault: true },
  duplicated: { group: "Network", tone: "violet", shape: "none", fault: true },
  delayed: { group: "Network", tone: "orange", shape: "none", fault: true },
  corrupted: { group: "Network", tone: "pink", shape: "bolt", fault: true },
  stalled: { group: "Network", tone: "orange", shape: "hourglass", fault: true },
  partitioned: { group: "Network", tone: "orange", shape: "wall", fault: true },
  healed: { group: "Network", tone: "green", shape: "wall" },
  applied: { group: "Server", tone: "teal", shape: "square", common: true },
  buffered: { group: "Server", tone: "amber", shape: "pause" },
  released: { group: "Server", tone: "green", shape: "play" },
  refused: { group: "Server", tone: "red", shape: "barred" },
  pulled: { group: "Server", tone: "grey", shape: "square", common: true },
  pruned: { group: "Server", tone: "brown", shape: "torn" },
  diskFull: { group: "Storage", tone: "pink", shape: "disk", fault: true },
  syncFailure: { group: "Storage", tone: "pink", shape: "barred", fault: true },
  diskFailed: { group: "Storage", tone: "pink", shape: "cross", fault: true },
  tornWrite: { group: "Storage", tone: "pink", shape: "torn", fault: true },
  phase: { group: "Run", tone: "grey", shape: "none" },
  violation: { group: "Run", tone: "red", shape: "star" },
};
const unknownLook = { group: "Other", tone: "grey", shape: "square" };
const lookOf = (kind) => looks[kind] ?? unknownLook;

/** `syncFailed` as words. */
const wordsOf = (kind) => kind.replace(/[A-Z]/g, (letter) => " " + letter.toLowerCase());

// Each shape adds to the current path; those in `outlined` are stroked, the others filled.
const outlined = new Set(["ring", "cross", "clock", "barred", "wall", "torn"]);
const polygon = (pen, x, y, r, points) => {
  points.forEach(([dx, dy], place) =>
    place ? pen.lineTo(x + dx * r, y + dy * r) : pen.moveTo(x + dx * r, y + dy * r));
  pen.closePath();
};
const circle = (pen, x, y, r) => {
  pen.moveTo(x + r, y);
  pen.arc(x, y, r, 0, 2 * Math.PI);
};
const strokes = (pen, x, y, r, lines) => {
  for (const [fromX, fromY, toX, toY] of lines) {
    pen.moveTo(x + fromX * r, y + fromY * r);
    pen.lineTo(x + toX * r, y + toY * r);
  }
};
const shapes = {
  none() {},
  dot: (pen, x, y, r) => circle(pen, x, y, r * 0.75),
  ring: (pen, x, y, r) => circle(pen, x, y, r * 0.75),
  square: (pen, x, y, r) => pen.rect(x - r * 0.7, y - r * 0.7, r * 1.4, r * 1.4),
  diamond: (pen, x, y, r) => polygon(pen, x, y, r, [[0, -1.2], [1, 0], [0, 1.2], [-1, 0]]),
  cross: (pen, x, y, r) => strokes(pen, x, y, r, [[-1, -1, 1, 1], [-1, 1, 1, -1]]),
  bolt: (pen, x, y, r) => polygon(pen, x, y, r,
    [[0.3, -1.3], [-0.8, 0.25], [-0.1, 0.25], [-0.3, 1.3], [0.8, -0.25], [0.1, -0.25]]),
  play: (pen, x, y, r) => polygon(pen, x, y, r, [[-0.7, -1], [1.1, 0], [-0.7, 1]]),
  up: (pen, x, y, r) => polygon(pen, x, y, r,
    [[0, -1.2], [1, 0], [0.4, 0], [0.4, 1.1], [-0.4, 1.1], [-0.4, 0], [-1, 0]]),
  pair: (pen, x, y, r) => {
    pen.rect(x - r, y - r, r * 1.2, r * 1.2);
    pen.rect(x - r * 0.1, y - r * 0.1, r * 1.2, r * 1.2);
  },
  clock: (pen, x, y, r) => {
    circle(pen, x, y, r);
    strokes(pen, x, y, r, [[0, 0, 0, -0.7], [0, 0, 0.5, 0.2]]);
  },
  hourglass: (pen, x, y, r) => polygon(pen, x, y, r,
    [[-0.8, -1], [0.8, -1], [-0.8, 1], [0.8, 1]]),
  wall: (pen, x, y, r) => strokes(pen, x, y, r,
    [[-0.4, -1.3, -0.4, 1.3], [0.4, -1.3, 0.4, 1.3]]),
  pause: (pen, x, y, r) => {
    pen.rect(x - r * 0.8, y - r, r * 0.6, r * 2);
    pen.rect(x + r * 0.2, y - r, r * 0.6, r * 2);
  },
  barred: (pen, x, y, r) => {
    circle(pen, x, y, r);
    strokes(pen, x, y, r, [[-0.7, 0.7, 0.7, -0.7]]);
  },
  disk: (pen, x, y, r) => polygon(pen, x, y, r,
    [[-1, -1], [0.5, -1], [1, -0.5], [1, 1], [-1, 1]]),
  torn: (pen, x, y, r) => strokes(pen, x, y, r,
    [[-1, -0.8, 1, -0.8], [-1, 0.1, 0.3, 0.1], [-1, 1, -0.2, 1]]),
  star: (pen, x, y, r) => polygon(pen, x, y, r, Array.from({ length: 10 }, (_, corner) => {
    const length = corner % 2 ? 0.6 : 1.5;
    const angle = corner * Math.PI / 5;
    return [Math.sin(angle) * length, -Math.cos(angle) * length];
  })),
};

/** Draws one mark. */
function drawMark(pen, shape, colour, x, y, r) {
  pen.beginPath();
  shapes[shape](pen, x, y, r);
  if (outlined.has(shape)) {
    pen.strokeStyle = colour;
    pen.lineWidth = Math.max(1.4, r * 0.42);
    pen.stroke();
  } else {
    pen.fillStyle = colour;
    pen.fill();
  }
}
