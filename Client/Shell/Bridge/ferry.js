// The bridge between a page and the program that shows it. The shell adds this script to the page
// before all others; it defines `ferry`. ferry.d.ts describes it.
"use strict";

(() => {
  const script = document.currentScript;
  const meta = document.querySelector('meta[name="ferry-page"]');
  const secret = meta.content;
  const base = new URL("./", script.src).href;
  meta.remove();
  script.remove();
  // A script of the page that replaces these must not get the secret by accident.
  const send = window.fetch.bind(window);

  class FerryError extends Error {
    constructor(code, message) {
      super(message);
      this.name = "FerryError";
      this.code = code;
    }
  }

  const over = () => new FerryError("page_over", "the program that shows the page has ended");
  const cancelled = () => new FerryError("cancelled", "the call was cancelled");

  // Integers beyond 2^53 and short bytes have forms of their own; see ferry.d.ts.
  const encoded = (_, value) => {
    if (typeof value === "bigint") return { int: String(value) };
    if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return { blob: base64(value) };
    return value;
  };

  const base64 = (value) => {
    const bytes = value instanceof ArrayBuffer
      ? new Uint8Array(value) : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (bytes.length > 4096) {
      throw new FerryError("too_large", "more than 4096 bytes travel by ferry.upload()");
    }
    return btoa(String.fromCharCode(...bytes));
  };

  // A value that JSON does not have, such as one that contains itself, is the caller's mistake.
  const message = (body) => {
    try {
      return JSON.stringify(body, encoded);
    } catch (error) {
      if (error instanceof FerryError) throw error;
      throw new FerryError("invalid_argument", `the argument is no value of JSON: ${error.message}`);
    }
  };

  const post = async (name, body, options) => {
    const text = message(body);
    let response;
    try {
      response = await send(base + name, {
        method: "POST", cache: "no-store", credentials: "same-origin", redirect: "error",
        headers: { "Ferry-Page": secret, "Content-Type": "application/json" },
        body: text, ...options,
      });
    } catch {
      throw options?.signal?.aborted ? cancelled() : over();
    }
    if (!response.ok) {
      throw new FerryError("refused", `the program refused the call (HTTP ${response.status})`);
    }
    return response;
  };

  const answer = async (response, signal) => {
    let message;
    try {
      message = await response.json();
    } catch {
      throw signal?.aborted ? cancelled() : over();
    }
    if (message.error) throw new FerryError(message.error.code, message.error.message);
    return message;
  };

  // MARK: The stream

  const feeds = new Map();
  let lastFeed = 0;
  let isOver = false;

  const handle = (message) => {
    if (message.reload) location.reload();
    const feed = feeds.get(message.watch);
    if (!feed) return;
    if (message.error) {
      feed.end(new FerryError(message.error.code, message.error.message));
    } else if (message.end) {
      feed.end();
    } else {
      feed.push(message.value);
    }
  };

  const finish = () => {
    isOver = true;
    for (const feed of [...feeds.values()]) feed.end(over());
  };

  const read = async (response) => {
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        rest += decoder.decode(value, { stream: true });
        const lines = rest.split("\n");
        rest = lines.pop();
        for (const line of lines) if (line) handle(JSON.parse(line));
      }
    } catch {
      // The program has ended, or the page is being left.
    }
    finish();
  };

  const opened = post("events", {}).then((response) => { read(response); });
  opened.catch(finish);

  // MARK: Calls

  const call = async (service, argument = null, { signal } = {}) => {
    if (signal?.aborted) throw cancelled();
    const response = await post("call", { service, argument }, { signal });
    return (await answer(response, signal)).value;
  };

  // A consumer that is slow gets the newest result.
  class Feed {
    constructor(service, argument, signal) {
      this.number = ++lastFeed;
      this.waiting = [];
      this.isOver = false;
      feeds.set(this.number, this);
      this.signal = signal;
      this.abort = () => this.leave(cancelled());
      signal?.addEventListener("abort", this.abort);
      if (signal?.aborted) this.abort();
      else this.start(service, argument);
    }

    async start(service, argument) {
      try {
        await opened;
        if (isOver) throw over();
        if (this.isOver) return;
        await answer(await post("watch", { watch: this.number, service, argument }));
        // Left meanwhile: the program has to know it after it has begun.
        if (this.isOver) this.cancel();
      } catch (error) {
        this.end(error);
      }
    }

    push(value) {
      if (this.isOver) return;
      const next = this.waiting.shift();
      if (next) next.resolve({ value, done: false });
      else this.kept = { value };
    }

    end(error) {
      if (this.isOver) return;
      this.isOver = true;
      this.error = error;
      feeds.delete(this.number);
      this.signal?.removeEventListener("abort", this.abort);
      for (const next of this.waiting.splice(0)) this.settle(next);
    }

    settle(next) {
      if (!this.error) return next.resolve({ value: undefined, done: true });
      next.reject(this.error);
      this.error = undefined;
    }

    leave(error) {
      if (this.isOver) return;
      this.end(error);
      this.kept = undefined;
      this.cancel();
    }

    cancel() { post("cancel", { watch: this.number }).catch(() => {}); }

    next() {
      return new Promise((resolve, reject) => {
        if (this.kept) {
          const { value } = this.kept;
          this.kept = undefined;
          return resolve({ value, done: false });
        }
        if (this.isOver) return this.settle({ resolve, reject });
        this.waiting.push({ resolve, reject });
      });
    }

    async return(value) {
      this.leave();
      return { value, done: true };
    }

    [Symbol.asyncIterator]() { return this; }
  }

  const watch = (service, argument = null, { signal } = {}) => ({
    [Symbol.asyncIterator]: () => new Feed(service, argument, signal),
  });

  const upload = async (content, { type, signal } = {}) => {
    const kind = type ?? (content.type || "application/octet-stream");
    const response = await post("upload", null, {
      body: content, signal, headers: { "Ferry-Page": secret, "Content-Type": kind },
    });
    return answer(response, signal);
  };

  // MARK: The state of the page

  let isReady = false;
  let hasFailed = false;

  const ready = async () => {
    if (isReady) return;
    isReady = true;
    await answer(await post("ready", {}));
  };

  const fail = (kind, detail) => {
    if (hasFailed) return;
    hasFailed = true;
    post("failed", { kind, detail: String(detail).slice(0, 500) }, { keepalive: true })
      .catch(() => {});
  };

  window.addEventListener("error", (event) => {
    if (isReady) return;
    if (event.target instanceof HTMLScriptElement) {
      fail("crashed", `${new URL(event.target.src).pathname.split("/").pop()} was not loaded`);
    } else if (event instanceof ErrorEvent) {
      fail("crashed", event.message);
    }
  }, true);

  window.addEventListener("unhandledrejection", (event) => {
    if (!isReady) fail("crashed", event.reason);
  });

  document.addEventListener("securitypolicyviolation", (event) => {
    // Extensions of the browser are no part of the page.
    const isOfExtension = [event.sourceFile, event.blockedURI].some((address) =>
      /^[a-z-]*extension(:|$)/.test(address ?? ""));
    if (isOfExtension || event.disposition === "report") return;
    fail("violated", `${event.effectiveDirective} ${event.blockedURI}`);
  });

  window.addEventListener("pagehide", () => {
    post("closed", {}, { keepalive: true }).catch(() => {});
  });

  // A page from the browser's memory has lost its stream.
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  const ferry = Object.freeze({ call, watch, upload, ready, FerryError });
  Object.defineProperty(window, "ferry", { value: ferry, enumerable: true });
  Object.defineProperty(window, "FerryError", { value: FerryError });
})();
