import FerryPersistence
import FerryProtocol
import FerrySQLite

/// The rows changed by a pass, for the interceptors of pulled changes (S3.11). One action for each
/// record, however often the pass changes it.
struct PulledActions {
  /// A row with local column names.
  typealias Row = [Column]

  private var actions: [RecordKey: RecordAction] = [:]
  private var order: [RecordKey] = []
  /// The keys of deleted rows.
  private var keys: [RecordKey: Row] = [:]

  /// Adds a change of a record's row; `nil` stands for no row.
  ///
  /// - Parameter keyCount: the number of columns of the key; they come first.
  mutating func add(_ key: RecordKey, from before: Row?, to after: Row?, keyCount: Int) {
    let former = actions[key]
    switch (before, after) {
    case (nil, nil): return
    case (nil, _?): actions[key] = former == .delete ? .update : .insert
    case (let row?, nil):
      actions[key] = former == .insert ? nil : .delete
      keys[key] = Array(row.prefix(keyCount))
    case (let before?, let after?):
      if former == nil && before != after { actions[key] = .update }
    }
    if former == nil && actions[key] != nil { order.append(key) }
  }

  /// Passes each action to `body`, in the order of the first changes.
  ///
  /// - Parameter body: gets the columns of the key for a deleted row, and `nil` for the others.
  func forEach(_ body: (RecordKey, RecordAction, Row?) throws -> Void) rethrows {
    var done = Set<RecordKey>()
    for key in order {
      guard let action = actions[key], done.insert(key).inserted else { continue }
      try body(key, action, action == .delete ? keys[key] : nil)
    }
  }
}

extension PulledActions {
  /// Runs the interceptors of a file's pulled changes.
  struct Interception {
    let spaces: FileSpaces
    let tables: LocalTables
    let capture: CaptureContext
  }
}

extension PulledActions.Interception {
  /// Runs the interceptors after pulled changes, in their transaction. Their writes are recorded. An error
  /// of an interceptor is logged; it stops neither the pull nor the next action.
  func intercept(_ actions: PulledActions) throws {
    try capture.during(.recording) {
      guard let first = spaces.first else { throw ReplicaError.closed }
      let database = Database(connection: first.connection, owner: spaces)
      defer { database.end() }
      try actions.forEach { key, action, gone in
        guard let table = try? tables.schema(of: key.table),
          let columns = try gone ?? table.localRow(key.record, on: tables.connection)
        else { return }
        do {
          try database.intercept(
            pulled: action, table: table.local, columns, with: spaces.pullInterceptors)
        } catch {
          guard tables.connection.isInTransaction else { throw error }
          try tables.log(
            "interceptor",
            "an interceptor of the app failed after the pulled \(action) of \(key.table)/\(key.record), "
              + "which stays: \(error)")
        }
      }
    }
  }
}

extension TableSchema {
  /// Returns a row with local names and values, those of the key first; `nil` without a row.
  func localRow(_ record: Name, on connection: SQLiteConnection) throws -> PulledActions.Row? {
    let names = keys.map(\.local) + columns.map(\.local)
    let list = names.map { "t.\(quoted($0))" }.joined(separator: ", ")
    return try connection.first(
      "SELECT \(list) FROM \(quoted(local)) AS t WHERE \(has(record: "?1", in: "t"))",
      record
    ) { row in
      names.enumerated().map { Column($1, row.value(Int32($0))) }
    }
  }
}
