/// The version of the server, as `ferryd --version` and `/metrics` tell it.
package enum FerryVersion {
  /// Semantic versioning.
  package static let current = "0.1.0"
}
