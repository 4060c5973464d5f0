// The bridge between a page and the program that shows it. The shell adds ferry.js to each page, so
// a page needs no import. Documentation/shell.md lists the services.

/** A value of JSON, as services take and return it. */
type FerryValue =
  | null | boolean | number | string | bigint | ArrayBuffer | ArrayBufferView
  | FerryValue[] | { [name: string]: FerryValue };

/**
 * A value of a table's column. An integer beyond ±(2^53 − 1) is `{int: "…"}`, and may be written as a
 * bigint. Bytes are `{blob: base64}` up to 4,096 of them, or else `{file: address, size}`.
 */
type FerryColumnValue =
  | null | number | string | { int: string } | { real: string } | { blob: string }
  | { file: string; size: number };

/** A row of a table, by the names of its columns. */
type FerryRow = { [column: string]: FerryColumnValue };

interface FerryOptions {
  /** Cancels the call or the live query. */
  signal?: AbortSignal;
}

/** The failure of a call. */
declare class FerryError extends Error {
  /** A stable name in snake_case, such as `not_granted`, `offline` or `cancelled`. */
  readonly code: string;
  constructor(code: string, message: string);
}

interface Ferry {
  /**
   * Calls a service and returns its result.
   *
   *     const rows = await ferry.call("data.query", { table: "tasks" });
   *
   * @throws FerryError
   */
  call<T = any>(service: string, argument?: FerryValue, options?: FerryOptions): Promise<T>;

  /**
   * Follows a live query: the present result, and each later one. A slow loop gets the newest.
   *
   *     for await (const rows of ferry.watch("data.query", { table: "tasks" })) show(rows);
   *
   * The query ends when the loop ends, or by the signal with a FerryError of code `cancelled`.
   */
  watch<T = any>(
    service: string, argument?: FerryValue, options?: FerryOptions): AsyncIterable<T>;

  /** Gives bytes to the program; services take `{file}` as a value. At most 16 MiB. */
  upload(
    content: Blob | ArrayBuffer | ArrayBufferView, options?: FerryOptions & { type?: string }
  ): Promise<{ file: string }>;

  /**
   * Confirms that the page works. A page that does not call it within 10 s has failed, and the last
   * good version replaces it.
   */
  ready(): Promise<void>;

  readonly FerryError: typeof FerryError;
}

declare const ferry: Ferry;
