// Requests to the server that has sent this page. Each is described in openapi.yaml.

const key = "ferry-token";
let onRefused = () => {};

/** The token stays in this tab, and never in an address. */
export const session = {
  get token() { return sessionStorage.getItem(key); },
  set token(value) {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  },
  /** Calls `act` when the server wants another token. */
  whenRefused(act) { onRefused = act; },
};

/** A failure with its reason and the next step. */
export class Failure extends Error {
  constructor(title, message, next, problem = null, status = 0) {
    super(message);
    Object.assign(this, { title, next, problem, status });
  }
}

/** Sends a request; throws a `Failure` unless it succeeds. */
export async function send(method, path, { query, json, body, headers } = {}) {
  const answer = await exchange(method, path, { query, json, body, headers });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => null);
  if (answer.status === 401) onRefused(problem?.detail);
  throw new Failure(
    problem?.title ?? `The server answered ${answer.status}`,
    problem?.detail ?? "It gave no reason.",
    problem?.action === "retry" ? "Try again in a moment." : null, problem, answer.status);
}

/** Sends a request; returns any answer. */
export async function exchange(method, path, { query, json, body, headers = {} } = {}) {
  const address = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined) address.searchParams.set(name, value);
  }
  const all = { ...headers };
  if (session.token) all.Authorization = `Bearer ${session.token}`;
  if (json !== undefined) all["Content-Type"] = "application/json";
  try {
    return await fetch(address, {
      method, headers: all, body: json === undefined ? body : JSON.stringify(json),
      cache: "no-store", redirect: "error", credentials: "omit",
    });
  } catch {
    throw new Failure(
      "The server cannot be reached", "The request got no answer.",
      "Check that ferryd runs, and try again.");
  }
}

export const get = async (path, query) => (await send("GET", path, { query })).json();

const part = encodeURIComponent;

/** The addresses of a space. */
export const spacePath = (space, ...rest) => ["/v1/spaces", part(space), ...rest.map(part)].join("/");

/** The addresses of this page. */
export const pagePath = (space, view = "", query = {}) => {
  const text = new URLSearchParams(query).toString();
  return `#/space/${part(space)}${view && `/${view}`}${text && `?${text}`}`;
};
