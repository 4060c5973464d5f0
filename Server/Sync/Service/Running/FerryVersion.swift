/// The version of the server, as in `ferryd --version` and `/metrics`.
package enum FerryVersion {
  /// Semantic versioning.
  package static let current = "0.1.0"
}
