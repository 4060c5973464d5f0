import FerryProtocol

/// The spellings of tables and columns in pulled changes, if SQLite may treat them as one name;
/// pure (SPEC.md §23).
struct SpellingsFound {
  /// The most examined tables, and the most examined columns of one.
  static let countMax = 1_000
  /// The entry for the table itself among the columns.
  static let table: Name = ""

  /// Recorded names of the space, received for the first time.
  private(set) var shared: [Name: Set<Name>] = [:]
  /// Names of the space unknown here.
  private(set) var unknown: [Name: Set<Name>] = [:]

  var isEmpty: Bool { shared.isEmpty && unknown.isEmpty }

  /// Records the names of an applied change.
  mutating func add(_ change: Change, _ plan: ApplyPlan) {
    if plan.isShared && plan.unshared.isEmpty { return }
    let columns = change.state.columns.map(\.name).filter(plan.unshared.contains)
    shared[plan.table.name, default: [Self.table]].formUnion(columns)
  }

  /// Records a table not tracked here by this name.
  mutating func addUnknown(table: Name) {
    guard unknown.count < Self.countMax else { return }
    unknown[table, default: []].insert(Self.table)
  }

  /// Records columns missing here by these names, if SQLite treats them as others.
  mutating func addUnknown(_ columns: [ColumnState], of table: TableSchema) {
    let locals = table.columns.map(\.local) + table.keys.map(\.local)
    for column in columns where locals.contains(where: { $0.folded == column.name.folded }) {
      guard unknown[table.name]?.count ?? 0 < Self.countMax else { return }
      unknown[table.name, default: []].insert(column.name)
    }
  }
}
