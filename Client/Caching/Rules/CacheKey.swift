import FerryCryptography
import FerryNetworking

/// A partition of a storage: keeps the answers of different users separate.
public enum CachePartition: Sendable, Hashable {
  /// A partition by the requests' credentials (`Authorization`, `Cookie`). Other credentials do not
  /// find the answers, so a renewed token begins with an empty cache.
  case credentials
  /// A partition by a name of the application's, such as a space and a user's id.
  case named(String)

  /// Returns the text for the partition of a request with these fields, and with credentials added
  /// by interceptors for `user`.
  func name(for headers: TransportHeaders, user: String? = nil) -> String {
    switch self {
    case .named(let name): return "named:" + name
    case .credentials:
      let values =
        ["Authorization", "Cookie"].map { headers[$0] ?? "" } + (user.map { [$0] } ?? [])
      guard values.contains(where: { !$0.isEmpty }) else { return "" }
      var text = DelimitedText()
      for value in values { text.add(value) }
      return "credentials:" + Hexadecimal.text(text.digest.prefix(16))
    }
  }
}

/// The key of an answer: partition, endpoint and identifying parameters.
package struct CacheKey: Sendable, Hashable {
  /// SHA-256 of all identifying parts.
  package let digest: [UInt8]
  /// The endpoint's canonical address, without separate parameters.
  package let endpoint: String
  /// The partition's text.
  package let partition: String

  /// Creates the key of a request. A parameter identifies unless it is declared not to. The order
  /// of parameters matters only among those of one name.
  package init(_ request: CacheableRequest, partition: CachePartition) {
    endpoint = ContentAddress.canonical(request.endpoint)
    self.partition = partition.name(for: request.headers, user: request.user)
    var text = DelimitedText()
    text.add(self.partition)
    if let key = request.options.key {
      // No address is empty, so no other key is equal.
      text.add("")
      text.add(key)
      digest = text.digest
      return
    }
    text.add(endpoint)
    let identifying = request.query.filter(\.identifies).enumerated()
      .sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }
    for (_, item) in identifying {
      text.add(item.name)
      text.add(item.value)
    }
    digest = text.digest
  }
}
