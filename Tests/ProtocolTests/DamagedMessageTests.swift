import FerryProtocol
import FerryTestSupport
import Testing

/// Messages damaged on the way are never taken for others.
@Suite(.hangLimit)
struct DamagedMessageTests {
  /// Reads a message of one kind.
  struct Kind: Sendable, CustomTestStringConvertible {
    let folder: String
    let read: @Sendable ([UInt8]) throws -> Void
    var testDescription: String { folder }
  }

  static let kinds = [
    Kind(folder: "packets") { _ = try Packet(decoding: $0, limits: .standard) },
    Kind(folder: "answers") { _ = try PacketAnswer(decoding: $0, limits: .standard) },
    Kind(folder: "pages") { bytes in
      _ = try bytes.withUnsafeBytes { try PageReader.read($0, limits: .standard) { _ in } }
    },
  ]

  @Test("a message that is cut off at any byte is malformed", arguments: kinds)
  func cut(kind: Kind) throws {
    for name in try ProjectFiles.fixtures(in: kind.folder) {
      let message = try Self.message(kind, name)
      for count in message.indices {
        #expect(throws: MalformedMessage.self, "\(name) cut after \(count)") {
          try kind.read(Array(message.prefix(count)))
        }
      }
    }
  }

  @Test("a message with an invalid UTF-8 byte at any place is malformed", arguments: kinds)
  func overwritten(kind: Kind) throws {
    for name in try ProjectFiles.fixtures(in: kind.folder) {
      let message = try Self.message(kind, name)
      for index in message.indices {
        var damaged = message
        damaged[index] = 0xFF
        #expect(throws: MalformedMessage.self, "\(name) with 0xFF at \(index)") {
          try kind.read(damaged)
        }
      }
    }
  }

  /// Reads a message without the newline at the end, as it has no meaning.
  private static func message(_ kind: Kind, _ name: String) throws -> [UInt8] {
    var bytes = try ProjectFiles.fixture("\(kind.folder)/\(name)")
    while bytes.last == 0x0A { bytes.removeLast() }
    return bytes
  }
}
