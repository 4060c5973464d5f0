import FerryTestSupport
import Foundation
import Testing

/// A `ferry mission …` process with events in lines of JSON.
final class MissionRun: Sendable {
  let child: ChildProcess

  /// The progress of a mission at one report.
  struct Progress {
    let bytesDone: Int
    let bytes: Int
    /// Bytes fetched by this process.
    let bytesFetched: Int
    let itemsDone: Int
  }

  init(_ device: Device, _ arguments: [String]) throws {
    child = try ChildProcess(
      try Executables.ferry(),
      ["--replica", device.path, "mission"] + arguments + ["--json"],
      directory: device.directory.url)
  }

  /// Returns all reports so far.
  func events() throws -> [JSONLine] { try JSONLine.all(child.output) }

  func progress() throws -> [Progress] { try events().compactMap { Progress($0) } }

  /// Returns the bytes reported as fetched.
  func fetched() throws -> Int { try progress().map(\.bytesFetched).max() ?? 0 }

  /// Waits for a report of so many bytes present, from whichever process.
  func reached(_ bytes: Int) async throws {
    _ = try await child.line { line in
      Self.read(line).flatMap { Progress($0) }.map { $0.bytesDone >= bytes } ?? false
    }
  }

  /// Waits for a report of so many bytes fetched by this process.
  func fetched(_ bytes: Int) async throws {
    _ = try await child.line { line in
      Self.read(line).flatMap { Progress($0) }.map { $0.bytesFetched >= bytes } ?? false
    }
  }

  /// Waits until it reports a state; `reason` is a part of the reason.
  func changed(to state: String, _ reason: String? = nil) async throws {
    _ = try await child.line { line in
      guard let event = Self.read(line), event.text("event") == "state" else { return false }
      let why = event.object("reason").text("message")
      return event.text("state") == state && (reason.map { why?.contains($0) ?? false } ?? true)
    }
  }

  /// Waits for the end of the process.
  func ends(
    with code: Int32 = 0, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let status = try await child.exitStatus()
    #expect(
      status == .exited(code), "\(child.error)\(child.output.suffix(2_000))",
      sourceLocation: sourceLocation)
  }

  private static func read(_ line: String) -> JSONLine? {
    guard line.hasPrefix("{") else { return nil }
    return try? JSONLine.all(line).first
  }
}

extension MissionRun.Progress {
  init?(_ event: JSONLine) {
    guard event.text("event") == "progress", let bytesDone = event.number("bytesDone"),
      let bytes = event.number("bytes"), let bytesFetched = event.number("bytesFetched"),
      let itemsDone = event.number("itemsDone")
    else { return nil }
    self.init(
      bytesDone: bytesDone, bytes: bytes, bytesFetched: bytesFetched, itemsDone: itemsDone)
  }
}

/// Checks the progress: it never goes back, even over several processes, and never exceeds the
/// whole.
func expectSteady(
  _ progress: [MissionRun.Progress], sourceLocation: SourceLocation = #_sourceLocation
) {
  var (bytes, items) = (0, 0)
  for step in progress {
    #expect(step.bytesDone >= bytes, "bytes go back", sourceLocation: sourceLocation)
    #expect(step.itemsDone >= items, "items go back", sourceLocation: sourceLocation)
    #expect(step.bytesDone <= step.bytes, "over the whole", sourceLocation: sourceLocation)
    (bytes, items) = (max(bytes, step.bytesDone), max(items, step.itemsDone))
  }
}
