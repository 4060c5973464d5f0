import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Patches from the author's script to the app, with a real server between.
@Suite(.hangLimit)
struct PatchPairTests {
  private static let host = Project.file(".build/ferry-patch").path
  private static var isBuilt: Bool { access(host, X_OK) == 0 }

  private func documented(_ language: String, _ place: Int = 0) throws -> String {
    try DocumentedCode("Documentation/patches.md").blocks(language)[place]
  }

  @Test("the documents' example of patches equals the compiled one")
  func sameLines() throws {
    let example = try DocumentedCode("Tests/PairTests/DocumentedPatches.swift").text
    let body = try #require(
      example.firstMatch(of: /func patchExample(?s:.*?)\]\) \{\n(?<code>(?s:.*?))  return \(/)
    ).code
    let shown = try documented("swift").replacing("\"patches.json\"", with: "ledger")
      .replacing(".installed", with: "host, limits: limits")
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
  }

  @Test(
    "the documents' script is signed, published as a mission, and replaces the app's code",
    .enabled(if: isBuilt, "`make patches` builds ferry-patch, which this test runs"))
  func published() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let draft = try Draft()
    try draft.write("discount.js", Array(try documented("js").utf8))
    let pem = draft.path + ".pem"
    let key = try await ferryd("patch", "key", "--key", pem)
    let public64 = key.output.trimmingCharacters(in: .newlines)
    let script = draft.path + "/discount.js"
    _ = try await ferryd(
      "patch", "sign", script, "--key", pem, "--app", "org.example.shop", "--app-version", "2.3.0",
      "--behaviour", "cart.discount", "--service", "orders.count")
    _ = try await ferryd(
      "mission", "publish", "--space", Device.space, "--id", "patches", draft.path, "--data",
      server.directory.file("data").path)
    let replica = try await device.open()
    try await replica.write { database in
      try database.execute("CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT)")
      for _ in 1...12 { try database.execute("INSERT INTO orders(customer) VALUES ('ada')") }
    }
    try await replica.sync()
    let ledger = draft.path + ".ledger"
    // An app that trusts another key uses its own code.
    let stranger = try #require(PatchKey([UInt8](repeating: 9, count: 32)))
    var limits = PatchLimits()
    limits.time = .hangLimit
    let native = try await patchExample(
      replica: replica, key: stranger, ledger: ledger, host: PatchHost(path: Self.host),
      limits: limits)
    #expect(native.0 == 0 && native.1.first?.patch == nil)
    let patched = try await patchExample(
      replica: replica, key: try #require(PatchKey(public64)), ledger: ledger,
      host: PatchHost(path: Self.host), limits: limits)
    #expect(patched.0 == 15, "\(patched.1)")
    #expect(patched.1.first?.patchedCalls == 1)
  }

  @Test(
    "the documents' trial of the script prints as documented",
    .enabled(if: isBuilt, "`make patches` builds ferry-patch, which this test runs"))
  func trial() async throws {
    // A command, a call, the typed answer and the result.
    let lines = try documented("console").split(separator: "\n").map(String.init)
    try #require(lines.count == 4 && lines[0].hasPrefix("$ ferry-patch "))
    let folder = try TemporaryDirectory()
    try Data(try documented("js").utf8).write(to: folder.file("discount.js"))
    let words = String(lines[0].dropFirst(2)).replacing("ferry-patch", with: Self.host)
    let tried = try await ChildProcess.run(
      URL(filePath: "/bin/sh"), ["-c", words], directory: folder.url, input: lines[2] + "\n")
    #expect(tried.status == .exited(0), "\(tried.error)")
    #expect(tried.output == "\(lines[1])\n\(lines[3])\n", "\(tried.error)")
  }

  private func ferryd(_ arguments: String...) async throws -> ChildProcess.Finished {
    let finished = try await ChildProcess.run(try Executables.ferryd(), arguments)
    try #require(finished.status == .exited(0), "\(finished.error)")
    return finished
  }
}
