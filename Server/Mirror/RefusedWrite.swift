import FerryPersistence
import FerryProtocol
import FerrySQLite

/// An operation in the quarantine on a row of a table with columns whose writes add up or merge.
struct RefusedWrite {
  var place: Int64
  var entry: Int64
  /// The table and the key.
  var row: [String?] = []
  var isInsert: Bool
  /// True while the replica still has the program's values, until the space's record is fetched.
  var isAwaited: Bool
  /// True if a later write has brought the row with the operation's amounts, or has deleted it.
  var isReplaced: Bool
  /// The contents for each such column.
  var contents: [UnsentChange]

  /// Reads a row of ``query``.
  ///
  /// - Parameter names: the names in the space of columns that have another name in the table.
  init(_ row: SQLiteStatement, to table: MirrorTable, _ names: [Name: Name]) throws {
    (place, entry) = (row.int64(0), row.int64(1))
    isInsert = row.text(4) == "insert"
    (isAwaited, isReplaced) = (row.int64(8) != 0, row.int64(9) != 0)
    let isUpdate = row.text(4) == "update"
    let (new, old) = isUpdate ? (try Self.columns(row, 5), try Self.columns(row, 6)) : ([:], [:])
    let marks = try Self.marks(row, 7)
    contents = table.merging.map { [place] column in
      let name = names[column.name] ?? column.name
      var content = UnsentChange.Content.whole
      switch (isUpdate, new[name], old[name]) {
      case (true, nil, _): content = .none
      case (true, let value?, _) where marks.contains(Name("+\(name)")):
        content = .change(from: .integer(0), to: value)
      case (true, let value?, let former?) where marks.contains(Name("~\(name)")):
        content = .change(from: former, to: value)
      default: break
      }
      return UnsentChange(place: place, column: column.name, content: content)
    }
  }

  /// A condition of an operation `q`: a later write has brought the whole row, or has deleted it. A row
  /// inserted after a delete is another one.
  static let isReplaced = """
    (q.seq IN (SELECT seq FROM "mirror.replaced") OR EXISTS (
      SELECT 1 FROM ferry_operations AS d WHERE d.record = q.record AND d.tbl = q.tbl
        AND d.kind = 'delete' AND d.seq > q.seq AND d.state <> 3))
    """

  /// The statement that reads operations: place, entry, table, record, kind, values, former values,
  /// marks, and both states. Ordered by the place itself, SQLite would read all operations of the file.
  static let query = """
    SELECT seq, entry, q.tbl, q.record, kind, data, was, marks, EXISTS (
        SELECT 1 FROM ferry_refresh AS r WHERE r.tbl = q.tbl AND r.record = q.record),
      \(isReplaced)
    FROM ferry_quarantine AS q WHERE code IS NOT 'overruled' ORDER BY +q.seq
    """

  /// Returns what the space lacks, and the replica.
  ///
  /// - Parameter withAwaited: true if the replica has lost the values in any case.
  func changes(withAwaited: Bool) -> [UnsentChange] {
    let isThere = isReplaced || isAwaited && !withAwaited
    return contents.map { change in
      var change = change
      if isThere, isReplaced || change.content != .whole { change.content = .none }
      return change
    }
  }

  private static func columns(_ row: SQLiteStatement, _ index: Int32) throws -> [Name: Value] {
    if row.isNull(index) { return [:] }
    var reader = JSONReader(row.textBytes(index), depth: Limits.standard.depth)
    let columns = try reader.columns(limits: .standard)
    return Dictionary(columns.map { ($0.name, $0.value) }) { $1 }
  }

  private static func marks(_ row: SQLiteStatement, _ index: Int32) throws -> Set<Name> {
    if row.isNull(index) { return [] }
    var (marks, reader) = (
      Set<Name>(), JSONReader(row.textBytes(index), depth: Limits.standard.depth)
    )
    try reader.array { (reader) throws(MalformedMessage) in marks.insert(Name(try reader.string()))
    }
    return marks
  }
}

extension MirrorFile {
  /// Records what the space lacks of refused operations before they leave the quarantine: retries of
  /// their rows make the changes again.
  func recordRefused(_ entries: some Sequence<Int64>, _ database: Database) throws {
    let entries = Set(entries)
    for write in try refusedWrites(database.connection) where entries.contains(write.entry) {
      try UnsentChanges(database: database).store(write.changes(withAwaited: true), of: write.row)
    }
  }

  /// Records that the space gets the operations of an entry, before they are sent again. Their rows
  /// may be listed as unsent.
  func recordSentAgain(_ entry: Int64, _ database: Database) throws {
    for write in try refusedWrites(database.connection) where write.entry == entry {
      let changes = write.contents.map {
        UnsentChange(place: write.place, column: $0.column, content: .none)
      }
      try UnsentChanges(database: database).store(changes, of: write.row)
    }
  }

  /// Returns the refused operations on rows of tables with columns whose writes add up or merge.
  func refusedWrites(_ connection: SQLiteConnection) throws -> [RefusedWrite] {
    // Each transaction of programs comes here.
    guard try connection.first("SELECT 1 FROM ferry_quarantine LIMIT 1", row: { _ in true }) != nil
    else { return [] }
    let records = MirrorRecords(plan, connection)
    let tables = try plan.tables.filter { !$0.merging.isEmpty }.map {
      (table: $0, names: try records.spaceNames(in: $0))
    }
    let operations = try connection.rows(RefusedWrite.query) {
      row -> (table: MirrorTable, record: String, write: RefusedWrite)? in
      let name = row.name(2)
      guard let (table, names) = tables.first(where: { $0.table.name == name }) else { return nil }
      return (table, row.text(3), try RefusedWrite(row, to: table, names))
    }
    return try operations.compactMap { operation in
      guard let (table, record, write) = operation,
        let key = try records.key(of: record, in: table)
      else { return nil }
      var found = write
      found.row = [table.name.text] + key
      return found
    }
  }
}
