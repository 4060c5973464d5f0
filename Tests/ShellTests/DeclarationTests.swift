import FerryShell
import FerryTestSupport
import Foundation
import Testing

/// `ferry.d.ts`, read by the compiler of TypeScript.
@Suite("The declarations for TypeScript", .hangLimit)
struct DeclarationTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Throws an error that explains how to install the compiler if there is none.
  private static func compiler() throws -> URL {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
    guard
      let path = folders.map({ "\($0)/tsc" }).first(where: FileManager.default.isExecutableFile)
    else {
      throw TestSupportError(
        "no compiler of TypeScript is installed: run `Scripts/install-dependencies.sh test`"
          + " (on Debian: apt-get install node-typescript)")
    }
    return URL(filePath: path)
  }

  /// Compiles a program of a page with the declarations.
  private func compile(
    _ program: String, as name: String, isStrict: Bool = true
  ) async throws -> ChildProcess.Finished {
    try Data(Shell.declarations.utf8).write(to: directory.file("ferry.d.ts"))
    try Data(program.utf8).write(to: directory.file(name))
    return try await ChildProcess.run(
      try Self.compiler(),
      [
        "--noEmit", "--strict", "\(isStrict)", "--pretty", "false", "--target", "es2020",
        "--lib", "es2020,dom", "--allowJs", "--checkJs", "ferry.d.ts", name,
      ], directory: directory.url)
  }

  private static let page = """
    interface Task { id: string; title: string; done: number }

    async function show(): Promise<void> {
      const tasks = await ferry.call<Task[]>("data.query", { table: "tasks", limit: 10 });
      const titles: string[] = tasks.map((task) => task.title);
      const stop = new AbortController();
      for await (const rows of ferry.watch<FerryRow[]>(
        "data.query", { table: "tasks" }, { signal: stop.signal })) {
        for (const value of Object.values(rows[0])) console.log(text(value), titles.length);
        stop.abort();
      }
      const { file } = await ferry.upload(new Blob(["x"]), { type: "text/plain" });
      await ferry.call("data.write", { operations: [{ photo: { file }, large: 2n, bytes: new Uint8Array(1) }] });
      await ferry.ready();
    }

    function text(value: FerryColumnValue): string {
      if (value === null) return "";
      if (typeof value !== "object") return String(value);
      if ("int" in value) return value.int;
      if ("real" in value) return value.real;
      return "blob" in value ? value.blob : `${value.file} of ${value.size} bytes`;
    }

    show().catch((error: unknown) => {
      if (error instanceof ferry.FerryError) console.log(error.code, error.message);
      if (error instanceof FerryError && error.code === "offline") return;
      throw error;
    });
    """

  @Test("a strict compiler accepts the declarations and a page that uses all of them")
  func accepted() async throws {
    let compiled = try await compile(Self.page, as: "page.ts")
    #expect(compiled.output == "" && compiled.error == "")
    #expect(compiled.status == .exited(0))
  }

  @Test("the example of a page in the documents is accepted")
  func documented() async throws {
    let document = try Project.text("Documentation/shell.md")
    // Pages with elements are no programs of types: a browser runs them (DocumentedPagesTests).
    let examples = document.matches(of: /```js\n(?<code>(?s:.*?))```/).map { String($0.code) }
      .filter { !$0.contains("document.") }
    #expect(!examples.isEmpty)
    for code in examples {
      // JavaScript has no types for a function of the page, or for a caught error.
      let compiled = try await compile(
        "async function example(show) {\n\(code)\n}", as: "page.js", isStrict: false)
      #expect(compiled.output == "" && compiled.error == "")
    }
  }

  @Test("each wrong use is an error of the compiler")
  func rejected() async throws {
    let wrong = [
      ("ferry.call(7);", "TS2345"), ("ferry.call();", "TS2554"),
      ("ferry.call('a', { when: new Date() });", "TS2345"),
      ("ferry.call('a', null, { signal: 5 });", "TS2322"),
      ("ferry.upload('text');", "TS2345"), ("ferry.close();", "TS2339"),
      ("const n: number = ferry.ready();", "TS2322"),
      ("new FerryError('code');", "TS2554"), ("new FerryError('a', 'b').code = 'c';", "TS2540"),
      ("const row: FerryRow = { a: true };", "TS2322"),
      ("ferry.ready = async () => 5;", "TS2322"),
    ]
    let compiled = try await compile(
      wrong.map { "{ \($0.0) }" }.joined(separator: "\n"), as: "page.ts")
    #expect(compiled.status != .exited(0))
    let found = compiled.output.matches(of: #/(?m)^page\.ts\((\d+),\d+\): error (TS\d+):/#)
    let expected = wrong.enumerated().map { "\($0.offset + 1) \($0.element.1)" }
    #expect(found.map { "\($0.1) \($0.2)" } == expected, "\(compiled.output)")
  }
}
