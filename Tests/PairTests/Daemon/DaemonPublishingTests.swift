import FerryTestSupport
import Foundation
import Testing

/// The refusals and warnings of `ferryd mission publish`.
@Suite("Publishing a mission", .hangLimit)
struct DaemonPublishingTests {
  private let daemon: EmbeddedDaemon
  private let folder: TemporaryDirectory

  init() async throws {
    daemon = try EmbeddedDaemon()
    folder = try TemporaryDirectory(prefix: "ferryd-publishing")
    try #require(try await daemon.run("space", "create", "notes").status == .exited(0))
  }

  /// Makes a folder with these files, and returns the path.
  private func draft(_ name: String, _ files: String...) throws -> String {
    for file in files {
      let path = folder.file("\(name)/\(file)")
      try FileManager.default.createDirectory(
        at: path.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data("content of \(file)".utf8).write(to: path)
    }
    return folder.file(name).path
  }

  private func publish(_ path: String, _ more: String...) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(
      try Executables.ferryd(),
      ["mission", "publish", path, "--space", "notes", "--data", daemon.data] + more)
  }

  @Test("a missing key is reported with the next step, and replaced on request")
  func key() async throws {
    let tour = try draft("tour", "a")
    #expect(try await publish(tour).status == .exited(0))
    let old = try await daemon.run("mission", "key").output
    let key = daemon.data + "/blobs/mission-key.pem"
    try FileManager.default.removeItem(atPath: key)
    let next = try draft("next", "b")
    for refused in [try await publish(next), try await daemon.run("mission", "key")] {
      #expect(refused.status == .exited(1), "\(refused.error)")
      #expect(refused.error.contains(old.dropLast()) && refused.error.contains("--mission-key"))
      #expect(refused.error.contains("--new-key") && refused.error.contains("mission trust"))
    }
    #expect(!FileManager.default.fileExists(atPath: key))
    #expect(try await publish(next, "--new-key").output.hasPrefix("published next version 1"))
    #expect(try await daemon.run("mission", "key").output != old)
    #expect(try await publish(tour).output.hasPrefix("published tour version 2"))
  }

  @Test("names that differ only in case, reserved names and circles are refused")
  func neighbours() async throws {
    let tour = try draft("tour", "a")
    #expect(try await publish(tour, "--after", "city").status == .exited(0))
    for (arguments, reason) in [
      (["--id", "TOUR"], "only in case from mission tour"), (["--id", "con"], "name of a device"),
      (["--id", "a."], "ends in a dot"), (["--id", "city", "--after", "tour"], "tour → city"),
    ] {
      let refused = try await ChildProcess.run(
        try Executables.ferryd(),
        ["mission", "publish", tour, "--space", "notes", "--data", daemon.data] + arguments)
      #expect(refused.status == .exited(1), "\(arguments)")
      #expect(refused.error.contains(reason), "\(refused.error)")
    }
  }

  @Test("an absent predecessor and ignored files are reported")
  func warnings() async throws {
    let tour = try draft("tour", "a", ".b", ".git/c", ".git/d", "e/.f")
    let first = try await publish(tour, "--after", "nowhere")
    #expect(first.output.hasPrefix("published tour version 1: 1 item"))
    #expect(first.error.contains("its predecessor, mission nowhere, is not published"))
    #expect(first.error.contains("3 names that begin with a dot"), "\(first.error)")
    let plain = try draft("plain", "a")
    #expect(try await publish(plain, "--after", "tour").error.isEmpty)
  }

  @Test("with --json a failure is one object on standard output")
  func json() async throws {
    let refused = try await publish(folder.file("none").path, "--json")
    #expect(refused.status == .exited(1) && refused.error.isEmpty, "\(refused.error)")
    #expect(refused.output.hasPrefix(#"{"error":{"code":"no_such_file","message":"#))
    let usage = try await daemon.run("mission", "show", "--json")
    #expect(usage.output.hasPrefix(#"{"error":{"code":"missing_"#) && usage.error.isEmpty)
  }
}
