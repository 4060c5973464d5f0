import FerryTestSupport
import Foundation
import Testing

/// Inputs by chance for every reader of bytes from outside: a short run of `ferry-sim fuzz`.
@Suite(.hangLimit)
struct FuzzTests {
  private func fuzz(_ arguments: [String], corpus: URL? = nil) async throws -> ChildProcess.Finished
  {
    let kept = corpus ?? Project.file("Tests/Fuzz")
    let fixtures = Project.file("Protocol/fixtures")
    return try await ChildProcess.run(
      try Executables.ferrySim(),
      ["fuzz", "--corpus", kept.path, "--fixtures", fixtures.path] + arguments)
  }

  @Test("50,000 inputs break no property of any reader")
  func holds() async throws {
    // A finding is kept beside the test, not in the sources.
    let directory = try TemporaryDirectory()
    let corpus = directory.file("corpus")
    try FileManager.default.copyItem(at: Project.file("Tests/Fuzz"), to: corpus)
    let finished = try await fuzz(["--cases", "50000"], corpus: corpus)
    #expect(finished.status == .exited(0), "\(finished.output)")
    #expect(finished.output.contains("Every property held."), "\(finished.output)")
  }

  @Test("the same seed makes the same inputs with the same results")
  func repeats() async throws {
    func run() async throws -> Substring {
      let output = try await fuzz(["--cases", "3000", "--seed", "5", "--json"]).output
      return try #require(output.split(separator: "\"readers\":").last)
    }
    let first = try await run()
    let second = try await run()
    #expect(first == second)
  }

  @Test(
    "an input that crashes its reader, or breaks a property, is reported and kept",
    arguments: ["crash", "mistake"])
  func findings(_ kind: String) async throws {
    let directory = try TemporaryDirectory()
    let finished = try await fuzz(
      ["--only", "planted-\(kind)", "--cases", "20000"], corpus: directory.url)
    #expect(finished.status == .exited(1))
    #expect(finished.output.contains("FAILED planted-\(kind): "), "\(finished.output)")
    #expect(finished.output.contains("a planted \(kind)"), "\(finished.output)")
    let kept = directory.file("planted-\(kind).txt")
    #expect(try String(contentsOf: kept, encoding: .utf8).contains("\\x00"))
  }
}
