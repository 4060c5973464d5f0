import FerryPlatform

/// An element of a document in XML, as S3-compatible stores answer: elements and text. Attributes
/// are ignored. Documents with types of their own (DTD) are rejected.
struct ObjectStoreXML: Sendable, Equatable {
  /// Without a prefix.
  var name: String
  /// The text of the element itself.
  var text = ""
  var children: [ObjectStoreXML] = []

  private static let depthMax = 16

  /// Reads a document; `nil` if it is malformed.
  init?(_ bytes: [UInt8]) {
    var reader = Reader(bytes: bytes)
    guard reader.skipProlog(), let root = reader.element(depth: 0) else { return nil }
    self = root
  }

  fileprivate init(name: String) { self.name = name }

  /// Returns the first child of a name.
  func first(_ name: String) -> ObjectStoreXML? { children.first { $0.name == name } }

  /// Returns the text of the first child of a name.
  func text(of name: String) -> String? { first(name)?.text }

  private struct Reader {
    let bytes: [UInt8]
    var place = 0

    mutating func skipProlog() -> Bool {
      while true {
        skipBlanks()
        if skip("<?") {
          guard find("?>") != nil else { return false }
        } else if skip("<!--") {
          guard find("-->") != nil else { return false }
        } else {
          return place < bytes.count
        }
      }
    }

    mutating func element(depth: Int) -> ObjectStoreXML? {
      guard depth < ObjectStoreXML.depthMax, skip("<"), let tag = find(">") else { return nil }
      let isEmpty = tag.last == UInt8(ascii: "/")
      let name = tag.prefix { $0 > 0x20 && $0 != UInt8(ascii: "/") }
      guard let first = name.first, first != UInt8(ascii: "!") else { return nil }
      let local = name.split(separator: UInt8(ascii: ":")).last ?? name
      var element = ObjectStoreXML(name: String(decoding: local, as: UTF8.self))
      if isEmpty { return element }
      var text: [UInt8] = []
      while place < bytes.count {
        if skip("</") {
          guard let end = find(">"), end.prefix(while: { $0 > 0x20 }).elementsEqual(name) else {
            return nil
          }
          guard let decoded = Self.decoded(text) else { return nil }
          element.text = decoded
          return element
        } else if skip("<!--") {
          guard find("-->") != nil else { return nil }
        } else if bytes[place] == UInt8(ascii: "<") {
          guard let child = self.element(depth: depth + 1) else { return nil }
          element.children.append(child)
        } else {
          text.append(bytes[place])
          place += 1
        }
      }
      return nil
    }

    private mutating func skipBlanks() {
      while place < bytes.count, bytes[place] <= 0x20 || bytes[place] >= 0xEF { place += 1 }
    }

    private mutating func skip(_ text: StaticString) -> Bool {
      let wanted = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
      guard bytes[place...].starts(with: wanted) else { return false }
      place += wanted.count
      return true
    }

    /// Returns the bytes up to `text`, and moves behind it.
    private mutating func find(_ text: StaticString) -> ArraySlice<UInt8>? {
      let wanted = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
      var end = place
      while end + wanted.count <= bytes.count {
        if bytes[end...].starts(with: wanted) {
          defer { place = end + wanted.count }
          return bytes[place..<end]
        }
        end += 1
      }
      return nil
    }

    /// Replaces the references to characters; `nil` if one is unknown.
    private static func decoded(_ bytes: [UInt8]) -> String? {
      let text = String(decoding: bytes, as: UTF8.self)
      guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
      var result = ""
      var rest = text[...]
      while let sign = rest.first("&") {
        result += rest[..<sign]
        rest = rest[rest.utf8.index(after: sign)...]
        guard let end = rest.first(";"), let scalar = scalar(rest[..<end]) else {
          return nil
        }
        result.unicodeScalars.append(scalar)
        rest = rest[rest.utf8.index(after: end)...]
      }
      return result + rest
    }

    private static func scalar(_ name: Substring) -> Unicode.Scalar? {
      switch name {
      case "lt": "<"
      case "gt": ">"
      case "amp": "&"
      case "quot": "\""
      case "apos": "'"
      default:
        if let digits = name.rest(after: "#x") {
          UInt32(digits, radix: 16).flatMap(Unicode.Scalar.init)
        } else {
          name.rest(after: "#").flatMap { UInt32($0) }.flatMap(Unicode.Scalar.init)
        }
      }
    }
  }
}
