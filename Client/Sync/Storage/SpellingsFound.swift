import FerryProtocol

/// The spellings of tables and columns in pulled changes, which SQLite may take for one name; pure
/// (SPEC.md §23).
struct SpellingsFound {
  /// The most tables, and the most columns of one, that are looked at.
  static let countMax = 1_000
  /// Stands for the table itself among its columns.
  static let table: Name = ""

  /// Names of the space that the triggers record, and that the space has sent for the first time.
  private(set) var shared: [Name: Set<Name>] = [:]
  /// Names of the space that nothing here has.
  private(set) var unknown: [Name: Set<Name>] = [:]

  var isEmpty: Bool { shared.isEmpty && unknown.isEmpty }

  /// Notes the names of an applied change.
  mutating func add(_ change: Change, _ plan: ApplyPlan) {
    if plan.isShared && plan.unshared.isEmpty { return }
    let columns = change.state.columns.map(\.name).filter(plan.unshared.contains)
    shared[plan.table.name, default: [Self.table]].formUnion(columns)
  }

  /// Notes a table that is not tracked here by this name.
  mutating func addUnknown(table: Name) {
    guard unknown.count < Self.countMax else { return }
    unknown[table, default: []].insert(Self.table)
  }

  /// Notes columns that are not here by these names, if SQLite takes them for others.
  mutating func addUnknown(_ columns: [ColumnState], of table: TableSchema) {
    let locals = table.columns.map(\.local) + table.keys.map(\.local)
    for column in columns where locals.contains(where: { $0.folded == column.name.folded }) {
      guard unknown[table.name]?.count ?? 0 < Self.countMax else { return }
      unknown[table.name, default: []].insert(column.name)
    }
  }
}
