import FerryProtocol
import FerrySQLite

/// Records waiting because another row here has their unique values: questions for the user
/// (SPEC.md §23).
struct UniqueValueQuestions {
  private let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }

  init(_ file: ReplicaFile) { self.file = file }

  /// The most records with a question from one pull.
  private static let askedPerPull = 200

  /// Asks about records waiting for unique values, and ends the questions about records no longer
  /// waiting.
  func ask() throws {
    for question in try file.conflicts.openQuestions(own: file.ownNames())
    where question.holder != nil {
      let kept = try file.kept.change(of: question.key)
      let isWaiting = kept.map { $0.isReadable && $0.isRefused } ?? false
      if !isWaiting { try file.conflicts.resolve(question, now: file.wallClock()) }
    }
    for key in try file.kept.waitingForRows(limit: Self.askedPerPull) {
      guard let kept = try file.kept.change(of: key), kept.isReadable,
        let found = try holder(ofValuesIn: kept.change)
      else { continue }
      try ask(about: found.column, of: key, found.holder)
    }
  }

  private func ask(about column: ColumnState, of key: RecordKey, _ holder: Name) throws {
    // No operation has decided, and no write has won.
    let nobody = Stamp(time: .zero, device: try file.identity().device)
    let conflict = Conflict(
      column: column.name, lost: column.value, loser: column.stamp, winner: nobody,
      isQuestion: true)
    try file.conflicts.store(
      conflict, of: OperationID(UniqueID(high: 0, low: 0)), on: key, at: nil, now: file.wallClock(),
      holder: holder)
    try file.deviceNames.expectNames(of: conflict)
  }

  /// Returns the record of the row with the unique values of a change, and one of the columns
  /// written by the change.
  private func holder(ofValuesIn change: Change) throws -> (column: ColumnState, holder: Name)? {
    let table = try file.tables.schema(of: change.key.table)
    let present = try file.rows.row(change.key, table) ?? []
    for key in try UniqueKeys.read(of: table, from: connection).keys {
      let written = change.state.columns.first { column in
        key.contains { $0.column.name == column.name }
      }
      guard let written else { continue }
      let values = key.map { part -> Value in
        change.state.columns.first { $0.name == part.column.name }?.value
          ?? present.first { $0.name == part.column.name }?.value ?? .null
      }
      if values.contains(.null) { continue }
      let conditions = key.enumerated().map { index, part in
        "t.\(quoted(part.column.local)) = \(part.column.sought("?\(index + 2)")) "
          + "COLLATE \(quoted(part.collation))"
      }
      // A waiting record with a mapped key has no number, so the comparison is NULL.
      let isOther = "(\(table.has(record: "?1", in: "t"))) IS NOT TRUE"
      let holder = try connection.first(
        "SELECT \(table.record(of: "t")) FROM \(quoted(table.local)) AS t "
          + "WHERE \((conditions + [isOther]).joined(separator: " AND "))",
        change.key.record, SQLiteList(values)
      ) { $0.name(0) }
      if let holder { return (written, holder) }
    }
    return nil
  }

  /// Gives a waiting record other values: applies it with them, and records these alone. Returns
  /// false if it does not wait any more.
  ///
  /// - Throws: ``SQLiteError`` if rows have these values, too.
  func adopt(_ columns: [Column], by key: RecordKey) throws -> Bool {
    let waiting = try file.kept.change(of: key)
    guard let waiting, waiting.isReadable,
      waiting.change.state.deleted == nil || waiting.change.state.isAlive
    else {
      return false
    }
    let table = try file.tables.schema(of: key.table)
    let plan = ApplyPlan(table: table, rules: .standard, connection: connection)
    var change = waiting.change
    let unknown = change.state.columns.filter { !plan.known.contains($0.name) }
    let names = columns.map(\.name)
    let states =
      change.state.columns.filter { plan.known.contains($0.name) && !names.contains($0.name) }
      + plan.unstamped(columns)
    file.capture.beginApplying(key, .values)
    return try file.capture.during(.applying) {
      try plan.upsert(key.record, states, isWhole: change.state.inserted != nil, kept: [])
      try file.operations.recordUpdate(of: key, columns, former: [])
      try file.kept.forget(key)
      if unknown.isEmpty { return true }
      (change.state.columns, change.state.inserted) = (unknown, nil)
      try file.kept.store(change, .schema)
      return true
    }
  }
}
