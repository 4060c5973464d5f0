import FerryTestSupport
import Foundation
import Testing

@testable import FerryMirror

@Suite("Stored messages of an open transaction", .hangLimit)
struct LogSpoolTests {
  private static func messages(_ spool: LogSpool) throws -> [[UInt8]] {
    var found: [[UInt8]] = []
    try spool.forEach { found.append(Array($0)) }
    return found
  }

  @Test("messages of all sizes come back in order, without those behind a cut")
  func cuts() throws {
    let folder = try TemporaryDirectory()
    let spool = try LogSpool(in: folder.url.path)
    var random = SeededGenerator(seed: 3)
    var expected: [[UInt8]] = []
    for round in 0..<12 {
      for _ in 0..<Int.random(in: 0..<700, using: &random) {
        let size = Int.random(in: 0..<10, using: &random) == 0 ? 9_000 : 40
        let message = (0..<Int.random(in: 0...size, using: &random)).map { UInt8($0 & 0xFF) }
        expected.append(message)
        try spool.append(message)
      }
      if round.isMultiple(of: 3) { #expect(try Self.messages(spool) == expected) }
      let length = Int.random(in: 0...expected.count, using: &random)
      expected.removeLast(expected.count - length)
      try spool.cut(to: length)
      #expect(spool.count == length)
    }
    #expect(try Self.messages(spool) == expected)
    try spool.cut(to: 0)
    #expect(try Self.messages(spool).isEmpty)
    try spool.append([UInt8](repeating: 1, count: 3 << 20))
    #expect(try Self.messages(spool).map(\.count) == [3 << 20])
    // Nothing is left behind by a kill.
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == [])
  }

  @Test("a folder that cannot store it is named")
  func missing() {
    let error = #expect(throws: MirrorFault.self) { try LogSpool(in: "/nowhere/at/all") }
    #expect(error?.description.contains("/nowhere/at/all") == true)
  }
}
