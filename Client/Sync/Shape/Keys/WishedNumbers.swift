import FerryProtocol

/// The largest integers that the identifiers of a pull list's records contain, by table (SPEC.md §27); pure.
///
/// A record whose integer is taken here gets one after them. Any other may be the integer that a later record
/// of the list contains.
struct WishedNumbers: Equatable {
  private var largest: [Name: Int64] = [:]

  /// - Parameter tables: the tables whose keys are integers of this device.
  init(of tables: [Name] = []) {
    for table in tables { largest[table] = 0 }
  }

  /// Whether no table has integers of this device.
  var isEmpty: Bool { largest.isEmpty }

  /// Adds a record of the list.
  mutating func add(_ record: Name, in table: Name) {
    guard let known = largest[table], let number = UniqueID(record.text)?.number, number > known
    else { return }
    largest[table] = number
  }

  /// Returns the integer for a record whose own one is taken; `nil` if none is left.
  ///
  /// - Parameter newest: the largest integer that the table has or had; negative ones count as 0.
  func number(after newest: Int64, in table: Name) -> Int64? {
    let newest = max(newest, largest[table] ?? 0, 0)
    return newest < .max ? newest + 1 : nil
  }
}

/// The integers of a pull list, which are read when the first record needs another one than its own.
final class WishedNumbersSource {
  /// Passes the tables and records of a list.
  typealias Visit = ((Name, Name) -> Void) throws -> Void

  private var read: (() throws -> WishedNumbers)?
  private var known = WishedNumbers()
  private var visit: Visit?
  private var records: [Name: [Name]] = [:]

  /// No integers.
  init() {}

  /// - Parameter read: reads the integers; called until it succeeds.
  /// - Parameter visit: passes each record of the list.
  init(_ read: @escaping () throws -> WishedNumbers, visit: Visit? = nil) {
    (self.read, self.visit) = (read, visit)
  }

  /// Returns the integers, read for the first caller.
  func numbers() throws -> WishedNumbers {
    guard let read else { return known }
    known = try read()
    self.read = nil
    return known
  }

  /// Returns the records of the list in a table, once.
  func removeRecords(of table: Name) throws -> [Name] {
    if let visit {
      self.visit = nil
      try visit { table, record in records[table, default: []].append(record) }
    }
    return records.removeValue(forKey: table) ?? []
  }
}

extension WishedNumbersSource {
  /// Returns the integers that deferred records contain, and those of a pull list. Most lists need none, and
  /// their pages are decoded once.
  ///
  /// - Parameters:
  ///   - pages: the other pages of the list.
  ///   - body: the last page of the list; `nil` if its pages are not applied.
  ///   - left: changes that are applied instead of the pages.
  static func list(
    _ pages: StagedPages, last body: [UInt8]? = nil, _ left: [Change] = []
  ) -> WishedNumbersSource {
    WishedNumbersSource {
      let tables = try mappedTables(pages)
      var wished = WishedNumbers(of: tables)
      try visit(tables, pages, last: body, left) { wished.add($1, in: $0) }
      return wished
    } visit: { add in
      try Self.visit(try mappedTables(pages), pages, last: body, left, add)
    }
  }

  private static func mappedTables(_ pages: StagedPages) throws -> [Name] {
    try pages.connection.rows(
      "SELECT name FROM ferry_tables WHERE identity = ?", KeyIdentity.mapped.rawValue
    ) { $0.name(0) }
  }

  private static func visit(
    _ tables: [Name], _ pages: StagedPages, last body: [UInt8]?, _ left: [Change],
    _ add: (Name, Name) -> Void
  ) throws {
    for table in tables {
      try pages.connection.forEach("SELECT record FROM ferry_kept WHERE tbl = ?", table) { row in
        add(table, row.name(0))
      }
    }
    let mapped = Set(tables)
    func addChange(_ change: Change) {
      guard change.state.isAlive, mapped.contains(change.key.table) else { return }
      add(change.key.table, change.key.record)
    }
    for change in left { addChange(change) }
    guard let body, !mapped.isEmpty else { return }
    // The caller may be within a loop over the pages, which has the statement of `forEach`.
    var cursor = StagedPageCursor(pages, last: body)
    while let page = try cursor.next() {
      _ = try page.open()
      while let batch = try page.next() {
        for case .success(let change) in batch { addChange(change) }
      }
    }
  }
}
