import FerryProtocol

/// The write that repeats an operation of the quarantine: a pure rule.
extension SyncOperation {
  /// Returns the columns to write again: the user's values replace those of the operation, and an
  /// increment adds to the present value.
  ///
  /// - Parameter present: returns the value in the row; `nil` without a row.
  func repeated(
    changing changes: [Column], _ present: (Name) throws -> Value?
  ) rethrows -> [Column] {
    if kind == .delete { return columns }
    let others = columns.filter { column in !changes.contains { $0.name == column.name } }
    return try (others + changes).map { column in
      guard kind == .update, increments.contains(column.name),
        case .integer(let added) = column.value, case .integer(let sum) = try present(column.name)
      else { return column }
      return Column(column.name, .integer(sum &+ added))
    }
  }
}
