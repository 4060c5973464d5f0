import FerryProtocol
import FerryTestSupport
import Testing

/// Every number of every message, replaced by the ends of 64 bits and beyond. A reader rejects it
/// or accepts it, and never fails in arithmetic.
@Suite("Extreme numbers", .hangLimit)
struct ExtremeNumberTests {
  static let extremes = [
    "-9223372036854775808", "9223372036854775807", "-9223372036854775807", "-1", "0",
    "9223372036854775808", "18446744073709551615", "4611686018427387904", "4611686018427387905",
    "281474976710655", "281474976710656", "2147483647", "2147483648", "1e400", "-1e400",
  ]

  /// Returns the message with the numbers replaced one by one, those within strings as well.
  static func variants(of message: [UInt8]) -> [[UInt8]] {
    let text = String(decoding: message, as: UTF8.self)
    var found: [[UInt8]] = []
    for match in text.matches(of: /[:\[,."](-?\d+)(?=[,}\]."])/) {
      for number in extremes {
        found.append(
          Array(
            (text[..<match.output.1.startIndex] + number + text[match.output.1.endIndex...]).utf8))
      }
    }
    return found
  }

  private func read(_ folder: String, _ body: ([UInt8]) throws -> Void) throws {
    var (taken, refused) = (0, 0)
    for name in try ProjectFiles.fixtures(in: folder) {
      for message in Self.variants(of: try ProjectFiles.fixture("\(folder)/\(name)")) {
        do {
          try body(message)
          taken += 1
        } catch is MalformedMessage {
          refused += 1
        }
      }
    }
    #expect(taken > 0 && refused > 0)
  }

  @Test("pages are read or refused")
  func pages() throws {
    try read("pages") { message in
      let head = try PageReader.head(of: message)
      #expect(0...Limits.wallTimeMax ~= head.serverTime && 0...Limits.sequenceMax ~= head.head)
      // As a client computes with them.
      _ = head.head - head.cursor.applied + SequenceNumber(head.count)
      _ = Cursor("\(head.cursor)")
      _ = try message.withUnsafeBytes { bytes in
        try PageReader.read(bytes, limits: .standard) { change throws(MalformedMessage) in
          _ = change.state.wholeBelow + 1
          _ = change.state.since(change.sequence)
          _ = change.state.encoded()
        }
      }
    }
  }

  @Test("answers to packets are read or refused")
  func answers() throws {
    try read("answers") { message in
      let answer = try PacketAnswer(decoding: message, limits: .standard)
      _ = (answer.receipt.sequences?.upperBound ?? 0) + 1
      _ = answer.receipt.outcomes.reduce(0) { $0 + ($1.records ?? 0) }
      _ = answer.encoded()
    }
  }

  @Test("packets, digests and problem documents are read or refused")
  func others() throws {
    try read("packets") { _ = try Packet(decoding: $0, limits: .standard).encoded() }
    for name in try ProjectFiles.fixtures(in: "digests") {
      for message in Self.variants(of: try ProjectFiles.fixture("digests/\(name)")) {
        _ = try? DigestQuery(decoding: message, limits: .standard)
        guard let answer = try? DigestAnswer(decoding: message, limits: .standard) else { continue }
        if case .tables(let tables) = answer.content {
          #expect(tables.reduce(0) { $0 + $1.records } >= 0)
        }
      }
    }
    for name in try ProjectFiles.fixtures(in: "problems") {
      for message in Self.variants(of: try ProjectFiles.fixture("problems/\(name)")) {
        #expect(Problem(decoding: message)?.violationCount ?? 0 >= 0)
      }
    }
    for message in Self.variants(of: try ProjectFiles.fixture("space")) {
      guard let info = try? SpaceInfo(decoding: message) else { continue }
      #expect(0...Limits.wallTimeMax ~= info.serverTime && info.head <= Limits.sequenceMax)
    }
  }

  @Test("a manifest and a mission's record are read or refused")
  func missions() throws {
    let manifest = """
      {"format":1,"space":"s","mission":"m","version":1,"priority":0,"chunkSize":65536,"items":[\
      {"path":"a","size":10,"sha256":"\(String(repeating: "a", count: 64))"},\
      {"path":"b","size":20,"sha256":"\(String(repeating: "b", count: 64))"}]}
      """
    for message in Self.variants(of: Array(manifest.utf8)) {
      guard let read = try? MissionManifest(decoding: message, limits: .standard) else { continue }
      #expect(read.size >= 0)
      _ = read.fault()
    }
    let record = """
      {"mission":"m","version":1,"items":1,"size":1,"priority":0,"manifestSize":1,"publishedAt":1,\
      "title":"","summary":"","after":[],"manifest":"\(String(repeating: "a", count: 64))",\
      "signature":"AA==","signer":"AA=="}
      """
    #expect(try MissionRecord(decoding: Array(record.utf8)).size == 1)
    for message in Self.variants(of: Array(record.utf8)) {
      guard let read = try? MissionRecord(decoding: message) else { continue }
      #expect(read.size >= 0 && read.manifestSize >= 0 && read.items >= 0 && read.version >= 0)
      _ = read.version + 1
    }
  }
}
