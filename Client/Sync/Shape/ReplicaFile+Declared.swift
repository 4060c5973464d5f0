import FerryPlatform
import FerryProtocol
import FerrySQLite

/// Definitions of tables in the space's schema (SPEC.md §11).
extension ReplicaFile {
  /// Returns the definitions of tracked tables, and the parts missing from them.
  ///
  /// - Parameter tables: names in this file; `nil` for all tracked tables.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` for a table that is not tracked.
  func declarations(of tables: [Name]?) throws -> [Name: (DeclaredTable, omitted: [String])] {
    try connection.transaction(.deferred) {
      let names = try spaceNames()
      var declared: [Name: (DeclaredTable, omitted: [String])] = [:]
      for local in try tables ?? tracked.locals() {
        guard let name = try trackedTable(local: local) else {
          throw ReplicaError.cannotTrack(
            table: local, "it is not tracked; `\(local.command("ferry track"))` first")
        }
        var reader = DeclaredTableReader(try schema(of: name), names, on: connection)
        let table = try reader.read()
        declared[name] = (table, reader.omitted)
      }
      return declared
    }
  }

  /// Creates and tracks all tables of the space missing from this replica, parents before children.
  /// A failed table stops no other one.
  ///
  /// An existing, untracked table stays so: the rows may be private, and an admin of the space
  /// chooses the names.
  ///
  /// - Parameter key: the key column of a table without a definition.
  func trackAll(creatingKey key: Name) throws -> TrackReport {
    let schema = try schemas.current()
    let defined = schema.tables.filter { $0.value.definition != nil }
    let waiting = try kept.tablesWaitedFor().filter { !NameRule.isReserved(table: $0) }
    let tracked = Set(try tracked.names())
    let wanted = Set(defined.keys).union(waiting).subtracting(tracked)
    let room = limits.tables + limits.schemaTables
    let missing = wanted.count > room ? Set(wanted.sorted().prefix(room)) : wanted
    let order = TableOrder.parentsFirst(missing) { table in
      defined[table]?.definition?.references.map(\.table) ?? []
    }
    var report = TrackReport()
    if let left = wanted.subtracting(missing).min() {
      report.faults.append(
        TableFault(table: left, reason: "the space has more tables than the \(room) it may have"))
    }
    try track(order[...], key, &report)
    if report.isInSteps { try applyRowsOfLaterTables() }
    return report
  }

  /// Applies rows with references to rows of tables created later.
  private func applyRowsOfLaterTables() throws {
    try connection.transaction {
      try kept.openAll()
      try KeptRetry(self).apply([.open])
    }
  }

  /// Tracks groups of absent tables at once, or, if one of them fails, each half by itself: a step
  /// costs about as much for one table as for all.
  private func track(_ groups: ArraySlice<[Name]>, _ key: Name, _ report: inout TrackReport) throws
  {
    let tables = groups.flatMap { $0 }
    if tables.count > 1, try tracksTogether(tables, key) {
      report.tracked += tables
      return
    }
    if tables.count > 1 { report.isInSteps = true }
    if groups.count > 1 {
      let middle = groups.startIndex + groups.count / 2
      try track(groups[..<middle], key, &report)
      return try track(groups[middle...], key, &report)
    }
    for table in tables {
      let isTracked = try report.noting(table) { try trackAbsent([table], key) }
      try connection.checkInterruption()
      if isTracked { report.tracked.append(table) }
    }
  }

  /// Returns true if all tables are tracked, in one transaction.
  private func tracksTogether(_ tables: [Name], _ key: Name) throws -> Bool {
    do {
      try trackAbsent(tables, key)
      return true
    } catch {
      // Cancelled or suspended work is over.
      try connection.checkInterruption()
      return false
    }
  }

  /// Tracks all ordinary, untracked tables of the file, parents before children. A failed table
  /// stops no other one.
  func trackAllHere() throws -> TrackReport {
    let tracked = Set(try tracked.locals().map(\.folded))
    let locals = try connection.rows(
      """
      SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
        AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'ferry\\_%' ESCAPE '\\'
      """
    ) { $0.name(0) }.filter { !tracked.contains($0.folded) }
    var report = TrackReport()
    var tables: [Name: TableSchema] = [:]
    for local in locals {
      _ = try report.noting(local) { tables[local] = try schema(local: local) }
    }
    var order = TableOrder.parentsFirst(Set(tables.keys)) { local in
      tables[local]?.references.map(\.table) ?? []
    }.flatMap { $0 }
    // A failed table is left out, and the others are tried again.
    while !order.isEmpty {
      let tried = order
      if try report.noting(nil, { try track(tried) }) {
        report.tracked = tried
        break
      }
      order.removeAll { $0.folded == report.faults.last?.table.folded }
      if order.count == tried.count { break }
    }
    report.keys = try report.tracked.compactMap { try tables[$0].map(proposal) }
    return report
  }

  private func trackAbsent(_ tables: [Name], _ key: Name) throws {
    for table in tables {
      let local = try spaceNames().local(of: table, on: connection)
      guard try !connection.hasTable(local) else {
        throw ReplicaError.cannotTrack(
          table: table,
          "\(local) is here already and not tracked; `\(local.command("ferry track"))` sends its rows"
        )
      }
    }
    try track(tables, creatingKey: key)
  }

  // MARK: Creating

  /// Creates an absent table, from the definition or from the pulled records.
  func create(_ name: Name, key: Name) throws {
    let local = try spaceNames().local(of: name, on: connection)
    guard try !connection.hasTable(local), !NameRule.isReserved(table: name) else { return }
    guard let declared = try schemas.current().rules(for: name).definition else {
      return try createFromKept(name, key: key)
    }
    let statements = declared.statements(name: name) { table, columns in
      guard let parent = try? schema(of: table) else { return (table, columns) }
      return (
        parent.local,
        columns.map { name in
          parent.columns.first { $0.name == name }?.local ?? name
        }
      )
    }
    for statement in statements { try connection.execute(single: statement) }
  }

  /// Creates a table that is not here with a text key and untyped columns, which keep every value
  /// unchanged. It has the columns of the changes kept for it and those that it had before. If
  /// SQLite treats column names as equal, the table gets the first in the order of bytes (SPEC.md
  /// §23).
  ///
  /// A space may have more columns than a table can record: an insert is one operation with all of
  /// them. The user chooses the columns of such a table.
  private func createFromKept(_ name: Name, key: Name) throws {
    if let fault = NameRule.fault(in: key, limits: .standard) {
      throw ReplicaError.cannotTrack(table: name, "its key cannot be called \(key): \(fault)")
    }
    var columns = Set<Name>()
    var found = false
    try connection.forEach("SELECT state FROM ferry_kept WHERE tbl = ?", name) { row in
      found = true
      let state = try? RecordState(decoding: row.textBytes(0), limits: limits)
      columns.formUnion(state?.columns.map(\.name) ?? [])
      try checkCount(of: columns, of: name, key: key)
    }
    // A tracked, dropped table: the next sync fetches the rows.
    let known = try unrecordedWrites.knownColumns(of: name)
    columns.formUnion(known)
    try checkCount(of: columns, of: name, key: key)
    guard found || !known.isEmpty else {
      throw ReplicaError.cannotTrack(
        table: name, "it does not exist here, and nothing for it has been pulled yet")
    }
    if let column = columns.sorted().first(where: { $0.folded == key.folded }) {
      throw ReplicaError.cannotTrack(
        table: name, "it has another column \(column); choose another name for the key column")
    }
    var spellings = Set<Name>()
    let list = columns.sorted().filter { spellings.insert($0.folded).inserted }
      .map { ", " + quoted($0) }.joined()
    try connection.execute(
      single: "CREATE TABLE \(quoted(name))(\(quoted(key)) TEXT PRIMARY KEY NOT NULL\(list))")
  }

  private func checkCount(of columns: Set<Name>, of table: Name, key: Name) throws {
    let most = min(limits.columns, limits.recordColumns - 1)
    guard columns.count > most else { return }
    throw ReplicaError.cannotTrack(
      table: table,
      "its records have more than \(most.grouped) different columns, and a table that Ferry creates "
        + "has at most so many beside its key. Choose columns yourself: run "
        + "CREATE TABLE \(quoted(table))(\(quoted(key)) TEXT PRIMARY KEY NOT NULL, …) in this file, "
        + "and then `\(table.command("ferry track"))`; the values of other columns stay in the space. "
        + "An admin of the space can choose for all devices, by a definition of the table")
  }
}

/// The result of tracking all tables of a space.
public struct TrackReport: Sendable, Equatable {
  /// Newly tracked tables, parents before children.
  public var tracked: [Name] = []
  /// The tables that cannot be tracked, with the reasons.
  public var faults: [TableFault] = []
  /// How the keys of tables of this file become identifiers, and why.
  public var keys: [KeyProposal] = []
  /// True if the tables were created in several transactions, because one of them has a fault.
  var isInSteps = false
}

extension TrackReport {
  /// Runs `body`, and records the fault of a failed table. Returns true if there was none.
  fileprivate mutating func noting(_ table: Name?, _ body: () throws -> Void) throws -> Bool {
    do {
      try body()
      return true
    } catch ReplicaError.cannotTrack(let table, let reason) {
      faults.append(TableFault(table: table, reason: reason))
    } catch let error as SQLiteError where table != nil && !error.concernsDisk {
      faults.append(TableFault(table: table ?? "", reason: error.message))
    }
    return false
  }
}

/// The order for creating tables; pure.
enum TableOrder {
  /// Returns the tables, each after those it refers to. Tables that refer to each other are one
  /// group, with those that refer to them, in the order of their names.
  static func parentsFirst(_ tables: Set<Name>, _ parents: (Name) -> [Name]) -> [[Name]] {
    var order: [[Name]] = []
    var rest = tables.sorted()
    while !rest.isEmpty {
      let left = Set(rest)
      let free = rest.filter { table in
        parents(table).allSatisfy { $0 == table || !left.contains($0) }
      }
      let next = free.isEmpty ? rest : free
      order += free.isEmpty ? [rest] : free.map { [$0] }
      rest.removeAll { next.contains($0) }
    }
    return order
  }
}
