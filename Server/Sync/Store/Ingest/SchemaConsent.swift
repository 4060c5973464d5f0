/// Effects of a new schema that its sender permits.
package struct SchemaConsent: Sendable, Equatable {
  /// True if records may go on breaking types and required columns.
  package var keepsRecords: Bool
  /// True if rules and definitions in force that the document does not have are dropped.
  package var dropsRules: Bool

  package init(keepsRecords: Bool = false, dropsRules: Bool = false) {
    (self.keepsRecords, self.dropsRules) = (keepsRecords, dropsRules)
  }
}
