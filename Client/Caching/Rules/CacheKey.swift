import Cryptography
import Networking

/// Whose answers are kept apart from whose, in one storage.
public enum CachePartition: Sendable, Hashable {
  /// By the credentials that requests carry (`Authorization`, `Cookie`): other credentials find
  /// nothing of what these brought, so a renewed token begins with an empty cache.
  case credentials
  /// By a name that the application gives, such as a space and a user's id.
  case named(String)

  /// The text that stands for the partition of a request with these fields.
  func name(for headers: TransportHeaders) -> String {
    switch self {
    case .named(let name): return "named:" + name
    case .credentials:
      let values = ["Authorization", "Cookie"].map { headers[$0] ?? "" }
      guard values.contains(where: { !$0.isEmpty }) else { return "" }
      var text = DelimitedText()
      for value in values { text.add(value) }
      return "credentials:" + Hexadecimal.text(text.digest.prefix(16))
    }
  }
}

/// What an answer is kept under: partition, endpoint and identifying parameters (seed row S6.2).
package struct CacheKey: Sendable, Hashable {
  /// SHA-256 of all that identifies.
  package let digest: [UInt8]
  /// The endpoint's canonical address, without parameters that are listed apart.
  package let endpoint: String
  /// The partition's text.
  package let partition: String

  /// The key of a request. Any parameter identifies unless it is declared not to; their order
  /// means nothing, but for those of one name.
  package init(_ request: CacheableRequest, partition: CachePartition) {
    endpoint = ContentAddress.canonical(request.endpoint)
    self.partition = partition.name(for: request.headers)
    var text = DelimitedText()
    text.add(self.partition)
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
