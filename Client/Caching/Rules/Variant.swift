import FerryCryptography
import FerryNetworking
import FerryPlatform

/// The requests with the same key that an answer applies to: `Vary` (RFC 9111 §4.1).
///
/// It keeps only a digest of the request's fields, since they may be credentials.
package struct Variant: Sendable, Equatable {
  /// The names in `Vary`: lower case, sorted, without duplicates.
  package let names: [String]
  /// SHA-256 of the request's values in these fields; empty without names.
  package let digest: [UInt8]

  /// The variant for every request.
  package static let any = Variant(names: [], digest: [])

  /// Creates a variant from stored parts.
  package init(names: [String], digest: [UInt8]) {
    self.names = names
    self.digest = digest
  }

  /// Creates the variant of an answer to a request; `nil` for `Vary: *`: no request matches it.
  package init?(of response: TransportHeaders, for request: TransportHeaders) {
    let named = response.values(of: "Vary").flatMap(FieldList.members).map { $0.lowercasedASCII }
    guard !named.contains(where: { $0 == "*" }) else { return nil }
    names = Set(named).sorted()
    digest = Self.digest(of: names, in: request)
  }

  /// Returns true if the answer applies to a request with these fields.
  package func matches(_ request: TransportHeaders) -> Bool {
    Self.digest(of: names, in: request) == digest
  }

  /// Returns a digest of the fields. Several lines of a field are one list, and blanks around the
  /// commas do not count (§4.1).
  private static func digest(of names: [String], in request: TransportHeaders) -> [UInt8] {
    guard !names.isEmpty else { return [] }
    var text = DelimitedText()
    for name in names {
      text.add(name)
      let values = request.values(of: name)
      text.add(values.isEmpty ? "absent" : "present")
      text.add(values.flatMap(FieldList.members).joined(separator: ","))
    }
    return text.digest
  }
}

/// Texts in a row, each with the length before it, so different lists have different bytes.
struct DelimitedText {
  private var bytes: [UInt8] = []

  mutating func add(_ text: String) {
    withUnsafeBytes(of: UInt64(text.utf8.count).littleEndian) { bytes += $0 }
    bytes += text.utf8
  }

  /// SHA-256 of all texts.
  var digest: [UInt8] { SHA256.digest(of: bytes) }
}
