/// A violation of the replication protocol by the server: the bytes are of no known form.
package struct ReplicationFault: Error, Equatable, CustomStringConvertible {
  package let description: String

  init(_ reason: String) {
    description = "PostgreSQL's log cannot be read: \(reason)"
  }
}
