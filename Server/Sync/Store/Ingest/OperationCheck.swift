import FerryProtocol

/// The check of one operation alone against the limits of the server and a space's schema.
struct OperationCheck {
  /// Faults named by one refusal; the rest are counted.
  private static let faultsNamed = 5

  /// `nil` if the space has none.
  let schema: SpaceSchema?

  /// Returns the reason why the operation can never be applied, `nil` when it may be.
  ///
  /// - Parameters:
  ///   - role: the sender's, when the packet came in.
  ///   - isAuthority: whether the space's rules give way to the operation.
  func refusal(
    of operation: SyncOperation, by role: Role, isAuthority: Bool
  ) -> Refusal? {
    let table = operation.key.table
    if NameRule.isReserved(table: table) {
      return Refusal(operation, .reservedTable, "table \(table) belongs to the server")
    }
    guard !isAuthority, let rules = schema?.tables[table] else { return nil }
    if role < rules.write {
      return Refusal(
        operation, .forbiddenTable,
        "writes to table \(table) need the role \(rules.write.rawValue); the token's role is "
          + role.rawValue)
    }
    let faults = Self.faults(in: operation, rules)
    if faults.isEmpty { return nil }
    let more = faults.count - Self.faultsNamed
    return Refusal(
      operation, .schemaViolation,
      faults.prefix(Self.faultsNamed).joined(separator: "; ") + (more > 0 ? "; \(more) more" : ""))
  }

  /// Returns the faults of the columns, sorted.
  private static func faults(in operation: SyncOperation, _ rules: TableRules) -> [String] {
    if operation.kind == .delete || rules.columns.isEmpty { return [] }
    var faults: [String] = []
    for column in operation.columns {
      guard let rule = rules.columns[column.name] else { continue }
      if rule.isRequired && column.value == .null {
        faults.append("column \(column.name) is required and is NULL")
      } else if !rule.type.admits(column.value) {
        faults.append(
          "column \(column.name) has the type \(rule.type.rawValue), but the value is "
            + column.value.storageClass)
      }
    }
    if operation.kind == .insert {
      for (name, rule) in rules.columns
      where rule.isRequired && !operation.columns.contains(where: { $0.name == name }) {
        faults.append("column \(name) is required and missing")
      }
    }
    return faults.sorted()
  }
}

extension Value {
  /// The name of the storage class, as in SQLite's `typeof`.
  var storageClass: String {
    switch self {
    case .null: "null"
    case .integer: "integer"
    case .real: "real"
    case .text: "text"
    case .blob: "blob"
    }
  }
}
