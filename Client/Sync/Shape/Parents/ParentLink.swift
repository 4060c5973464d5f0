import FerryProtocol

/// A foreign key from rows of a table to a parent. Names are those in this file.
struct ParentLink: Equatable {
  /// The action of SQLite when the parent is deleted
  /// (https://sqlite.org/foreignkeys.html#fk_actions).
  enum Action: String {
    case cascade = "CASCADE"
    case setNull = "SET NULL"
    case setDefault = "SET DEFAULT"
    case restrict = "RESTRICT"
    case none = "NO ACTION"
  }

  let child: TableSchema
  let parent: Name
  /// The child's columns, and the parent's in the same order.
  var from: [Name]
  var to: [Name]
  let action: Action
  /// The rule declared by the schema.
  var declared: ClashRule?

  /// The rule for rows after their parent is deleted elsewhere; `nil` if SQLite changes the rows,
  /// and no rule is declared.
  var rule: ClashRule? {
    if let declared { return declared }
    switch action {
    case .cascade: return .childGoes
    case .restrict, .none: return .parentReturns
    case .setNull, .setDefault: return nil
    }
  }

  /// True if the parent returns.
  var keepsParent: Bool { rule == .parentReturns || rule == .ask }
}
