import FerryProtocol

// Values of columns on their way to a page and from it; Documentation/shell.md has the table.
extension ServiceValue {
  /// Bytes up to this number travel within a message.
  static let inlineBytesMax = 4_096

  /// Creates the value of a column for a page.
  ///
  /// - Parameter files: holds bytes too large for a message.
  init(_ value: FerryProtocol.Value, files: PageFiles) {
    switch value {
    case .null: self = .null
    case .integer(let integer):
      self = exactIntegers.contains(integer) ? .integer(integer) : ["int": .text("\(integer)")]
    case .real(let real):
      self = real.isFinite ? .number(real) : ["real": .text(real > 0 ? "inf" : "-inf")]
    case .text(let text): self = .text(text)
    case .blob(let bytes) where bytes.count <= Self.inlineBytesMax:
      self = ["blob": .text(Self.base64(bytes))]
    case .blob(let bytes):
      let address = files.add(bytes, mediaType: "application/octet-stream")
      self = ["file": .text(address), "size": ServiceValue(bytes.count)]
    }
  }

  private static func base64(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    bytes.withUnsafeBytes { Base64.append($0, to: &text) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the value as one of a column.
  ///
  /// - Throws: `invalid_argument` if it is none, or a file is unknown or too large for a column.
  func columnValue(_ files: PageFiles, limits: Limits = .standard) async throws
    -> FerryProtocol.Value
  {
    switch self {
    case .null: return .null
    case .bool(let bool): return .integer(bool ? 1 : 0)
    case .integer(let integer): return .integer(integer)
    case .number(let number): return .real(number)
    case .text(let text):
      guard text.utf8.count <= limits.valueBytes else { throw Self.tooLarge(limits) }
      return .text(text)
    case .list: throw ServiceError("invalid_argument", "a list is no value of a column")
    case .object(let members):
      if let address = self["file"]?.text {
        guard let content = files.content(at: address) else {
          throw ServiceError("invalid_argument", "the page has no file of this address")
        }
        guard content.size <= limits.valueBytes else { throw Self.tooLarge(limits) }
        return .blob(try await content.readAll())
      }
      guard members.count == 1 else {
        throw ServiceError("invalid_argument", "an object is int, real, blob or file of a column")
      }
      return try tagged(limits)
    }
  }

  /// Reads one of the protocol's tagged values (SPEC.md §3).
  private func tagged(_ limits: Limits) throws(ServiceError) -> FerryProtocol.Value {
    do throws(MalformedMessage) {
      return try Self.read(json) { (reader) throws(MalformedMessage) in
        try reader.value(limits: limits)
      }
    } catch {
      throw ServiceError("invalid_argument", error.reason)
    }
  }

  private static func tooLarge(_ limits: Limits) -> ServiceError {
    ServiceError("too_large", "a value of a column has at most \(limits.valueBytes) bytes")
  }
}
