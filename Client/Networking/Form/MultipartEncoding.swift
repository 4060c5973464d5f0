/// The bytes of a form between the contents: a pure rule.
struct MultipartEncoding: Sendable {
  /// The characters of boundaries: a set without a need for quotes (RFC 2046 §5.1.1).
  private static let letters = Array(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
  /// 32 letters of 62 have 190 bits: nobody guesses them, and no file has them by chance.
  private static let letterCount = 32

  private let form: MultipartForm
  /// The text between parts.
  let boundary: String

  /// Draws a boundary that is in none of the form's bytes in memory.
  init(_ form: MultipartForm, random: () -> UInt64) {
    self.form = form
    var boundary = Self.boundary(random)
    while Self.contains(boundary, form) { boundary = Self.boundary(random) }
    self.boundary = boundary
  }

  /// The value of `Content-Type`.
  var contentType: String { "multipart/form-data; boundary=\(boundary)" }

  /// Returns the body: the contents, and the bytes between them.
  ///
  /// - Throws: kind `other` for a media type impossible in a field.
  func parts() throws(NetworkError) -> [BodyPart] {
    var parts: [BodyPart] = []
    for part in form.parts {
      parts.append(.bytes(Array((try head(of: part)).utf8)))
      parts.append(part.content)
      parts.append(.bytes(Array("\r\n".utf8)))
    }
    parts.append(.bytes(Array("--\(boundary)--\r\n".utf8)))
    return parts
  }

  private func head(of part: MultipartForm.Part) throws(NetworkError) -> String {
    var head = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.escape(part.name))\""
    if let file = part.fileName { head += "; filename=\"\(Self.escape(file))\"" }
    if let type = part.contentType {
      guard type.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
        throw NetworkError(
          .other,
          "the media type of the part “\(part.name)” cannot be sent: it has other "
            + "characters than ASCII's")
      }
      head += "\r\nContent-Type: \(type)"
    }
    return head + "\r\n\r\n"
  }

  /// Escapes a name as browsers do (HTML, “multipart form data”): a quotation mark and the ends of
  /// lines, and nothing else. RFC 7578 §5.1 leaves other characters as UTF-8.
  static func escape(_ name: String) -> String {
    var escaped: [UInt8] = []
    for byte in name.utf8 {
      switch byte {
      case 0x22: escaped += Array("%22".utf8)
      case 0x0D: escaped += Array("%0D".utf8)
      case 0x0A: escaped += Array("%0A".utf8)
      default: escaped.append(byte)
      }
    }
    return String(decoding: escaped, as: UTF8.self)
  }

  // MARK: The boundary

  private static func boundary(_ random: () -> UInt64) -> String {
    var text: [UInt8] = Array("ferry-".utf8)
    for _ in 0..<letterCount {
      text.append(letters[Int(random().multipliedFullWidth(by: UInt64(letters.count)).high)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func contains(_ boundary: String, _ form: MultipartForm) -> Bool {
    let text = Array(boundary.utf8)
    return form.parts.contains { part in
      guard case .bytes(let bytes) = part.content else { return false }
      return bytes.firstRange(of: text) != nil
    }
  }
}
