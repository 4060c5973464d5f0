import Cryptography
import Networking

/// For which requests, of those with the same key, an answer was given: `Vary` (RFC 9111 §4.1).
///
/// Only a digest of the request's fields is kept, since they may be credentials.
package struct Variant: Sendable, Equatable {
  /// The names in `Vary`: lower case, sorted, each once.
  package let names: [String]
  /// SHA-256 of the values that the request had in these fields; empty without names.
  package let digest: [UInt8]

  /// An answer for every request.
  package static let any = Variant(names: [], digest: [])

  /// A variant as it was kept.
  package init(names: [String], digest: [UInt8]) {
    self.names = names
    self.digest = digest
  }

  /// What an answer's fields say of a request; nil for `Vary: *`, which no request matches.
  package init?(of response: TransportHeaders, for request: TransportHeaders) {
    let named = response.values(of: "Vary").flatMap(FieldList.members).map { $0.lowercased() }
    guard !named.contains("*") else { return nil }
    names = Set(named).sorted()
    digest = Self.digest(of: names, in: request)
  }

  /// Whether the answer suits a request with these fields.
  package func matches(_ request: TransportHeaders) -> Bool {
    Self.digest(of: names, in: request) == digest
  }

  /// Several lines of a field are one list, and blanks around its commas mean nothing (§4.1).
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

/// Texts one after the other, each with its length before it, so that no two lists are alike.
struct DelimitedText {
  private var bytes: [UInt8] = []

  mutating func add(_ text: String) {
    withUnsafeBytes(of: UInt64(text.utf8.count).littleEndian) { bytes += $0 }
    bytes += text.utf8
  }

  /// SHA-256 of all of it.
  var digest: [UInt8] { SHA256.digest(of: bytes) }
}
