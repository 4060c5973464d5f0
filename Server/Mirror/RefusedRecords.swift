import FerryProtocol

/// The rows of a refused transaction of programs, as the operations left them; pure.
///
/// A retry of the transaction is right only if the space then has the rows of the tables. A row
/// brought as a whole since may contain an amount of the transaction: a retry would add it twice.
struct RefusedRecords {
  struct Row: Equatable {
    /// True if the last operation deletes the row.
    var isDelete = false
    var values: [Name: Value] = [:]
    /// The amounts that a retry adds to the values of the space.
    var added: [Name: Int64] = [:]

    /// Returns the values after a retry; `nil` if the space has no value for an amount.
    ///
    /// - Parameter present: the values of the space.
    func values(over present: [Name: Value]) -> [Name: Value]? {
      var values = values
      for (name, amount) in added {
        guard case .integer(let number)? = present[name] else { return nil }
        let (sum, isOver) = number.addingReportingOverflow(amount)
        if isOver { return nil }
        values[name] = .integer(sum)
      }
      return values
    }

    fileprivate mutating func write(_ column: Column, isAmount: Bool) {
      guard isAmount, case .integer(let amount) = column.value else {
        (values[column.name], added[column.name]) = (column.value, nil)
        return
      }
      if case .integer(let number)? = values[column.name] {
        values[column.name] = .integer(number &+ amount)
      } else {
        added[column.name, default: 0] &+= amount
      }
    }
  }

  private(set) var rows: [RecordKey: Row] = [:]

  init(_ operations: [SyncOperation]) {
    for operation in operations {
      guard operation.kind != .delete else {
        rows[operation.key] = Row(isDelete: true)
        continue
      }
      var row = rows[operation.key] ?? Row()
      row.isDelete = false
      for column in operation.columns {
        row.write(column, isAmount: operation.increments.contains(column.name))
      }
      rows[operation.key] = row
    }
  }
}
