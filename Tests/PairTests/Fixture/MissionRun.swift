import Foundation
import TestSupport
import Testing

/// A `ferry mission …` process that tells what happens in lines of JSON.
final class MissionRun: Sendable {
  let child: ChildProcess

  /// How far a mission was when it was told.
  struct Progress {
    let bytesDone: Int
    let bytes: Int
    /// Bytes that this process had fetched.
    let bytesFetched: Int
    let itemsDone: Int
  }

  init(_ device: Device, _ arguments: [String]) throws {
    child = try ChildProcess(
      try Executables.ferry(),
      ["--replica", device.path, "mission"] + arguments + ["--json"],
      directory: device.directory.url)
  }

  /// What it has told so far.
  func events() throws -> [JSONLine] { try JSONLine.all(child.output) }

  func progress() throws -> [Progress] { try events().compactMap { Progress($0) } }

  /// Bytes that it said to have fetched.
  func fetched() throws -> Int { try progress().map(\.bytesFetched).max() ?? 0 }

  /// Waits until it tells that so many bytes are there, by whichever process.
  func reached(_ bytes: Int) async throws {
    _ = try await child.line { line in
      Self.read(line).flatMap { Progress($0) }.map { $0.bytesDone >= bytes } ?? false
    }
  }

  /// Waits until it tells that it has fetched so many bytes itself.
  func fetched(_ bytes: Int) async throws {
    _ = try await child.line { line in
      Self.read(line).flatMap { Progress($0) }.map { $0.bytesFetched >= bytes } ?? false
    }
  }

  /// Waits until it tells of a state; `reason` is a part of why.
  func changed(to state: String, _ reason: String? = nil) async throws {
    _ = try await child.line { line in
      guard let event = Self.read(line), event.text("event") == "state" else { return false }
      let why = event.object("reason").text("message")
      return event.text("state") == state && (reason.map { why?.contains($0) ?? false } ?? true)
    }
  }

  /// Waits for its end.
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

/// Checks that progress never goes back, be it over several processes, nor over the whole.
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
