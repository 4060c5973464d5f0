/// The rule for a row whose parent another device has deleted meanwhile (SPEC.md §28).
public enum ClashRule: String, Sendable, CaseIterable {
  /// The parent comes back with its former values.
  case parentReturns = "parent-returns"
  /// The row is deleted, too. The device keeps the row as a conflict.
  case childGoes = "child-goes"
  /// The parent comes back, and the device that restored it asks the user.
  case ask
}

/// The rule of one foreign key, as a space's schema declares it.
///
/// ```swift
/// schema.tables["tasks", default: .standard].clashes = [DeclaredClash(["list"], .parentReturns)]
/// ```
public struct DeclaredClash: Sendable, Equatable {
  /// The columns of the foreign key: 1 to 16.
  public var columns: [Name]
  /// The rule.
  public var rule: ClashRule

  /// Creates a declaration from the given parts.
  public init(_ columns: [Name], _ rule: ClashRule) {
    (self.columns, self.rule) = (columns, rule)
  }
}

extension DeclaredClash: JSONMessage {
  package static var blank: Self { Self([], .ask) }
  package static var strictness: MemberStrictness { .strict }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.defaulted("columns", &columns, as: JSONForm.column.list(max: 17))
    try json.required("rule", &rule, missing: "the rule is missing")
    try json.check(
      (1...16).contains(columns.count) && Set(columns).count == columns.count
        ? nil : "a foreign key has 1 to 16 different columns", at: "columns")
  }
}
