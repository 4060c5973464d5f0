import Ferry
import FerryTestSupport
import Foundation
import Testing

/// A mission of many items, between real processes.
@Suite(.hangLimit)
struct MissionScaleTests {
  private static let items = 2_000
  /// The limit of memory for both the server and the device, in bytes.
  private static let memory = 64 << 20

  @Test("thousands of items need one request each, and little memory on both sides")
  func many() async throws {
    let draft = try Draft()
    for number in 0..<Self.items {
      let bytes = Draft.content(UInt64(number), 500 + number % 700)
      try draft.write("part-\(number % 40)/\(number).json", bytes)
    }
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await server.publish(draft.path, as: "many")
    let pulled = try await server.metric("ferry_http_requests_total")
    // Measured by a process in between, or the tests' own memory would count (getrusage(2)).
    let finished = try await ChildProcess.run(
      try Executables.ferryBench(),
      ["measured", "--", try Executables.ferry().path, "--replica", device.path]
        + ["mission", "download", "many", "--json"])
    try #require(finished.status == .exited(0), "\(finished.error)")
    let report = try #require(finished.error.split(separator: "\n").last)
    let peak = try #require(report.split(separator: " ").first.flatMap { Int($0) })
    #expect(peak <= Self.memory)
    #expect(try server.peakResident() <= Self.memory)
    // Each item once, and the manifest; otherwise only the pull and the request for the metrics.
    #expect(try await server.blobRequests() == Self.items + 1)
    #expect(try await server.metric("ferry_http_requests_total") - pulled <= Self.items + 5)
    expectSteady(try JSONLine.all(finished.output).compactMap { MissionRun.Progress($0) })
    try await device.expect(draft, in: "many")
  }
}
