import FerryCryptography
import FerryTestSupport
import Foundation
import Testing

@testable import FerryPatches

/// `ferryd patch …` as processes.
@Suite("The patches' commands", .hangLimit)
struct DaemonPatchTests {
  private static let app = "org.example.shop"
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory(prefix: "ferryd-patch") }

  private func run(_ arguments: [String]) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(try Executables.ferryd(), ["patch"] + arguments)
  }

  private func path(_ name: String) -> String { folder.file(name).path }

  private func sign(_ more: String...) async throws -> ChildProcess.Finished {
    try await run(
      [
        "sign", path("double.js"), "--key", path("key.pem"), "--app", Self.app,
        "--app-version", "2.3.0", "--app-version", "2.3.1", "--behaviour", "double",
      ] + more)
  }

  private func writeScript(_ text: String = "function patch(n) { return n * 3 }") throws {
    try Data(text.utf8).write(to: folder.file("double.js"))
  }

  @Test("a key is made once, a script is signed, and an app that trusts the key runs it")
  func signs() async throws {
    let key = try await run(["key", "--key", path("key.pem")])
    #expect(key.status == .exited(0), "\(key.error)")
    #expect(try await run(["key", "--key", path("key.pem")]).output == key.output)
    let mode = try FileManager.default.attributesOfItem(atPath: path("key.pem"))
    #expect(mode[.posixPermissions] as? Int == 0o600)
    try writeScript()
    let signed = try await sign("--service", "clock", "--sequence", "7")
    #expect(signed.status == .exited(0), "\(signed.error)")
    let patch = path("double.ferrypatch")
    let start = "signed \(patch): double of org.example.shop 2.3.0, 2.3.1, sequence 7, until 2"
    #expect(signed.output.hasPrefix(start), "\(signed.output)")
    let public64 = key.output.trimmingCharacters(in: .newlines)
    let decision = PatchDecision(
      app: Self.app, version: "2.3.1", keys: [try #require(PatchKey(public64)).key],
      grants: ["double": ["clock"]], now: 0)
    let bytes = Array(try Data(contentsOf: folder.file("double.ferrypatch")))
    let outcome = decision.decide([bytes], PatchLedger())
    let accepted = try #require(outcome.accepted[0], "\(outcome.refused)")
    #expect(accepted.document.script == "function patch(n) { return n * 3 }")
    let days = (accepted.document.expires / 1_000 - Int64(time(nil))) / 86_400
    #expect(29...30 ~= days)
  }

  @Test("a patch that would have ended already is not signed")
  func ended() async throws {
    _ = try await run(["key", "--key", path("key.pem")])
    try writeScript()
    let refused = try await sign("--expires", "0s")
    #expect(refused.status == .exited(2), "\(refused.output)")
    #expect(refused.error.contains("would have ended already"), "\(refused.error)")
  }

  @Test("a patch is shown with its signer, and fails without a trusted one")
  func shows() async throws {
    let key = try await run(["key", "--key", path("key.pem"), "--json"])
    let answer = try JSONDecoder().decode([String: String].self, from: Data(key.output.utf8))
    let own = try #require(answer["publicKey"])
    let other = try Ed25519.SecretKey([UInt8](repeating: 8, count: 32)).publicKey.bytes
    try writeScript("function patch() { return '\u{1B}[2J' }")
    #expect(try await sign("--sequence", "7", "--json").output.contains(#""sequence":7"#))
    let patch = path("double.ferrypatch")
    let unchecked = try await run(["show", patch])
    #expect(unchecked.status == .exited(0))
    #expect(unchecked.output.contains("signature  not checked; --trust KEY checks it"))
    let trusted = try await run(["show", patch, "--trust", own, "--script"])
    #expect(trusted.output.contains("signature  by \(own)"), "\(trusted.error)")
    #expect(trusted.output.contains("function patch()") && !trusted.output.contains("\u{1B}"))
    let stranger = Data(other).base64EncodedString()
    let untrusted = try await run(["show", patch, "--trust", stranger, "--json"])
    #expect(untrusted.status == .exited(1))
    #expect(untrusted.output.contains(#""trusted":false"#))
    let both = try await run(["show", patch, "--trust", stranger, "--trust", own, "--json"])
    #expect(both.status == .exited(0) && both.output.contains(#""signer":"\#(own)""#))
    var text = try String(contentsOfFile: patch, encoding: .utf8)
    text = text.replacing("Z", with: "Y", maxReplacements: 1)
    try Data(text.utf8).write(to: folder.file("changed.ferrypatch"))
    let changed = try await run(["show", path("changed.ferrypatch"), "--trust", own])
    #expect(changed.status == .exited(1))
  }

  @Test("without --sequence, a later signature counts as newer")
  func sequence() async throws {
    _ = try await run(["key", "--key", path("key.pem")])
    try writeScript()
    let before = Int(time(nil))
    let output = try await sign("--json", "--out", path("a.ferrypatch")).output
    struct Answer: Decodable {
      let sequence: Int
      let file: String
    }
    let answer = try JSONDecoder().decode(Answer.self, from: Data(output.utf8))
    #expect(before...Int(time(nil)) ~= answer.sequence)
    #expect(answer.file == path("a.ferrypatch"))
  }

  @Test("mistakes are explained with the next step, and write nothing")
  func mistakes() async throws {
    try writeScript()
    func expect(
      _ finished: ChildProcess.Finished, _ status: Int32, _ texts: String...,
      sourceLocation: SourceLocation = #_sourceLocation
    ) {
      #expect(finished.status == .exited(status), sourceLocation: sourceLocation)
      for text in texts + ["next: "] {
        #expect(
          finished.error.contains(text), "\(finished.error)", sourceLocation: sourceLocation)
      }
    }
    expect(try await sign(), 1, "there is no key at", "ferryd patch key")
    _ = try await run(["key", "--key", path("key.pem")])
    expect(try await sign("--app-version", "a b"), 2, "appVersions: a name has")
    expect(try await sign("--service", ""), 2, "services: a name has")
    expect(try await sign("--out", path("no/such/folder")), 1, "was not written", "--out")
    try writeScript(String(repeating: "x", count: 200_000))
    expect(try await sign(), 1, "double.js is too large")
    try Data([0xFF, 0xFE]).write(to: folder.file("double.js"))
    expect(try await sign(), 1, "it is not UTF-8")
    try writeScript("")
    expect(try await sign(), 2, "the script is empty")
    expect(try await run(["show", path("double.js")]), 1, "is no patch", "ferryd patch sign")
    expect(try await run(["show", path("absent")]), 1, "cannot be read")
    expect(
      try await run(["show", path("double.js"), "--trust", "x"]), 1, "is no patch")
    #expect(chmod(path("key.pem"), 0o644) == 0)
    try writeScript()
    expect(try await sign(), 1, "all users of this machine may read", "chmod 600")
    #expect(!FileManager.default.fileExists(atPath: path("double.ferrypatch")))
  }
}
