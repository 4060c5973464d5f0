import FerryPlatform
import FerryProtocol

/// The path of a file in a bundle: at most 16 parts. No part is empty, begins with a point, or
/// contains a character with a special meaning in file systems or URLs.
public struct BundlePath: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The parts, joined by slashes.
  public let text: String

  static let partsMax = 16
  static let partBytesMax = BundleLimits.standard.entryNameBytes

  /// Reads a path; `nil` if it is none.
  public init?(_ text: some StringProtocol) {
    let parts = text.parts(at: "/")
    guard 1...Self.partsMax ~= parts.count, parts.allSatisfy({ Self.isPart(Array($0.utf8)) }),
      // This folder is the shell's own.
      parts[0] != "-"
    else { return nil }
    self.text = String(text)
  }

  /// Reads the percent-encoded parts of an address (RFC 3986 §2.1).
  init?(encoded parts: some Collection<Substring>) {
    var decoded: [String] = []
    for part in parts {
      guard let bytes = Self.decode(part), let text = String(validating: bytes, as: UTF8.self)
      else {
        return nil
      }
      // An encoded slash is not a part's end.
      guard !bytes.contains(UInt8(ascii: "/")) else { return nil }
      decoded.append(text)
    }
    self.init(decoded.joined(separator: "/"))
  }

  public var description: String { text }

  public static func < (left: Self, right: Self) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }

  /// The part after the last point, in lower case.
  var fileExtension: String {
    let name = text.words(at: "/").last ?? ""
    guard let point = name.last(".") else { return "" }
    return name[name.utf8.index(after: point)...].lowercasedASCII
  }

  /// True if the file is an HTML document, the start of a page load.
  var isDocument: Bool { ["html", "htm"].contains(fileExtension) }

  /// The path as a part of an address.
  var encoded: String {
    text.utf8.map { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E, 0x2F:
        String(UnicodeScalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }.joined()
  }

  private static func isPart(_ bytes: [UInt8]) -> Bool {
    1...partBytesMax ~= bytes.count && bytes[0] != UInt8(ascii: ".")
      && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F && !"/\\:*?\"<>|".utf8.contains($0) }
  }

  private static func decode(_ part: Substring) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = Array(part.utf8)[...]
    while let first = rest.popFirst() {
      guard first == UInt8(ascii: "%") else {
        bytes.append(first)
        continue
      }
      guard rest.count >= 2, let high = digit(rest.removeFirst()),
        let low = digit(rest.removeFirst())
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x37
    case 0x61...0x66: byte - 0x57
    default: nil
    }
  }
}
