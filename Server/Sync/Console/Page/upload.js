// Publishing a folder: its files are hashed and sent in parts, then the manifest (SPEC.md §19).
import { exchange, Failure, send, spacePath } from "./api.js";
import { SHA256, digest } from "./sha256.js";

const chunkSize = 4 << 20;
const partSize = 4 << 20;

const types = {
  mp4: "video/mp4", m4v: "video/mp4", mov: "video/quicktime", webm: "video/webm",
  mp3: "audio/mpeg", m4a: "audio/mp4", wav: "audio/vnd.wave", flac: "audio/flac", ogg: "audio/ogg",
  png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp",
  avif: "image/avif", svg: "image/svg+xml", zip: "application/zip", gz: "application/gzip",
  json: "application/json", html: "text/html", htm: "text/html", css: "text/css",
  js: "text/javascript", mjs: "text/javascript", wasm: "application/wasm", txt: "text/plain",
  md: "text/markdown", csv: "text/csv", xml: "application/xml", pdf: "application/pdf",
  vtt: "text/vtt", woff2: "font/woff2", ttf: "font/ttf",
};

/** Returns the media type and the kind of a file, by the end of its name. */
export function typeOf(path) {
  const type = types[path.split(".").pop().toLowerCase()] ?? "application/octet-stream";
  const group = type.split("/")[0];
  if (["video", "audio", "image"].includes(group)) return { mediaType: type, kind: group };
  if (type === "application/json") return { mediaType: type, kind: "json" };
  const isArchive = ["application/zip", "application/gzip"].includes(type);
  return { mediaType: type, kind: isArchive ? "archive" : "file" };
}

/** Returns the files that were dropped, with their paths below the dropped folder. */
export async function dropped(items) {
  // All entries are taken before the first wait: the list is empty afterwards.
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const files = [];
  for (const entry of entries) await collect(entry, "", files);
  const folder = entries.length === 1 && entries[0].isDirectory ? entries[0].name : "";
  return { folder, files: files.map(({ path, file }) => ({
    path: folder ? path.slice(folder.length + 1) : path, file,
  })) };
}

async function collect(entry, parent, files) {
  const path = parent + entry.name;
  if (entry.isFile) {
    files.push({ path, file: await new Promise((done, fail) => entry.file(done, fail)) });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // A reader returns some of the entries each time, and none at the end.
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (some.length === 0) return;
    for (const child of some) await collect(child, `${path}/`, files);
  }
}

/** Returns the files of an input for folders, with their paths below the chosen folder. */
export function chosen(list) {
  const files = [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  const folder = files[0]?.path.includes("/") ? files[0].path.split("/")[0] : "";
  return { folder, files: files.map(({ path, file }) => ({
    path: folder ? path.slice(folder.length + 1) : path, file,
  })) };
}

/** Leaves out files that systems put into folders, as `ferryd mission publish` does. */
export const isWanted = ({ path }) => !path.split("/").some((name) => name.startsWith("."));

async function describe({ path, file }, step) {
  const whole = new SHA256();
  const chunks = [];
  for (let offset = 0; offset < file.size; offset += chunkSize) {
    const bytes = new Uint8Array(await file.slice(offset, offset + chunkSize).arrayBuffer());
    whole.update(bytes);
    if (file.size > chunkSize) chunks.push(digest(bytes));
    step(bytes.length);
  }
  const item = { path, ...typeOf(path), size: file.size, sha256: whole.finish() };
  return chunks.length > 0 ? { ...item, chunks } : item;
}

/** Sends the missing part of one content. */
async function upload(space, hash, content, step) {
  const path = spacePath(space, "blobs", hash);
  let { offset, isComplete } = state(await send("HEAD", path), content.size);
  step(isComplete ? content.size : offset);
  for (let round = 0; !isComplete; round += 1) {
    const end = Math.min(content.size, offset + partSize);
    const headers = { "Content-Type": "application/octet-stream" };
    if (content.size > 0) headers["Content-Range"] = `bytes ${offset}-${end - 1}/${content.size}`;
    const answer = await exchange("PUT", path, { body: content.slice(offset, end), headers });
    if (answer.status === 409 && round < content.size / partSize + 20) {
      // Another client sends the same content.
      ({ offset, isComplete } = state(answer, content.size));
      continue;
    }
    if (!answer.ok) {
      const problem = await answer.json().catch(() => null);
      throw new Failure("The server refused a file", problem?.detail ?? `Status ${answer.status}`,
        "Publish the folder again: the server keeps the parts that it has.", problem);
    }
    const before = offset;
    ({ offset, isComplete } = state(answer, content.size));
    step((isComplete ? content.size : offset) - before);
    if (!isComplete && offset <= before && content.size > 0) {
      throw new Failure("The upload makes no progress", `The server still has ${offset} bytes.`);
    }
  }
}

/** If all is there and not complete, the last byte is sent again: it makes the server check. */
function state(answer, size) {
  const received = Number(answer.headers.get("Upload-Offset") ?? 0);
  return {
    isComplete: answer.headers.get("Upload-Complete") === "?1",
    offset: Math.min(received, Math.max(0, size - 1)),
  };
}

/**
 * Publishes files as a mission, and returns its record.
 *
 * @param manifest The members of the manifest apart from the files.
 * @param query The parameters of the request.
 * @param progress Called with a text and a part from 0 to 1.
 */
export async function publish(space, mission, { manifest, files, query }, progress) {
  const total = files.reduce((sum, { file }) => sum + file.size, 0) || 1;
  const meter = (text) => {
    let done = 0;
    return (count) => {
      done += count;
      progress(text, Math.min(1, done / total));
    };
  };
  const reading = meter("Reading the files");
  const items = [];
  for (const file of files) items.push(await describe(file, reading));
  const sending = meter("Sending the files");
  for (const [index, { file }] of files.entries()) {
    await upload(space, items[index].sha256, file, sending);
  }
  items.sort((one, other) => one.path < other.path ? -1 : 1);
  const whole = { ...manifest, chunkSize, items };
  const path = spacePath(space, "missions", mission);
  const bytes = new TextEncoder().encode(JSON.stringify(whole));
  if (bytes.length <= partSize) {
    return (await send("PUT", path, { query, json: whole })).json();
  }
  const hash = digest(bytes);
  await upload(space, hash, new Blob([bytes]), () => {});
  return (await send("PUT", path, { query: { ...query, document: hash }, body: "", headers: {
    "Content-Type": "application/json",
  } })).json();
}
