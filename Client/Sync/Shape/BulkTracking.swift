import FerryProtocol
import FerrySQLite

/// The tracking of many tables: those of the space, or those of the file.
struct BulkTracking {
  let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }
  private var tables: LocalTables { file.tables }

  /// Creates and tracks all tables of the space missing from this replica, parents before children.
  /// A failed table stops no other one.
  ///
  /// An existing, untracked table stays so: the rows may be private, and an admin of the space
  /// chooses the names.
  ///
  /// - Parameter key: the key column of a table without a definition.
  func trackSpace(creatingKey key: Name) throws -> TrackReport {
    let schema = try tables.schemas.current()
    let defined = schema.tables.filter { $0.value.definition != nil }
    let waiting = try file.kept.tables(refused: false).filter { !NameRule.isReserved(table: $0) }
    let tracked = Set(try tables.tracked.names())
    let wanted = Set(defined.keys).union(waiting).subtracting(tracked)
    let room = file.limits.tables + file.limits.schemaTables
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
      try file.kept.openAll()
      try file.keptRetry.apply([.open])
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
  func trackFile() throws -> TrackReport {
    let tracked = Set(try tables.tracked.locals().map(\.folded))
    let locals = try connection.rows(
      """
      SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
        AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'ferry\\_%' ESCAPE '\\'
      """
    ) { $0.name(0) }.filter { !tracked.contains($0.folded) }
    var report = TrackReport()
    var schemas: [Name: TableSchema] = [:]
    for local in locals {
      _ = try report.noting(local) { schemas[local] = try tables.schema(local: local) }
    }
    var order = TableOrder.parentsFirst(Set(schemas.keys)) { local in
      schemas[local]?.references.map(\.table) ?? []
    }.flatMap { $0 }
    // A failed table is left out, and the others are tried again.
    while !order.isEmpty {
      let tried = order
      if try report.noting(nil, { try file.tracking.track(tried) }) {
        report.tracked = tried
        break
      }
      order.removeAll { $0.folded == report.faults.last?.table.folded }
      if order.count == tried.count { break }
    }
    report.keys = try report.tracked.compactMap { try schemas[$0].map(file.tracking.proposal) }
    return report
  }

  private func trackAbsent(_ names: [Name], _ key: Name) throws {
    for table in names {
      let local = try tables.spaceNames().local(of: table, on: connection)
      guard try !connection.hasTable(local) else {
        throw ReplicaError.cannotTrack(
          table: table,
          "\(local) is here already and not tracked; `\(local.command("ferry track"))` sends its rows"
        )
      }
    }
    try file.tracking.track(names, creatingKey: key)
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
