import FerryProtocol
import FerrySQLite

/// The statements for the delete of a parent, by the rules of the foreign keys; pure.
///
/// ```swift
/// let rules = ParentRules(links)
/// let condition = rules.holding("lists", alias: "p")  // EXISTS (SELECT 1 FROM "tasks" AS …)
/// ```
struct ParentRules {
  /// The foreign keys of all tracked tables.
  let links: [ForeignKey]
  /// The foreign keys of all other tables. They keep no row, but SQLite acts on them.
  private let others: [ForeignKey]

  init(_ links: [ForeignKey], others: [ForeignKey] = []) {
    (self.links, self.others) = (links, others)
  }

  /// The rows that keep a parent.
  struct Choice: Equatable {
    /// Only those with a question to the user.
    var isAsking = false
    /// Only rows outside of the temporary table ``ParentRules/leaving``.
    var isStaying = false
  }

  /// Conditions inside each other. SQLite's parser has a stack of 100 places (YYSTACKDEPTH), and seven
  /// conditions with a tree at the end need more.
  private static let nestedMax = 3

  /// The temporary table of records to delete together.
  static let leaving = "temp.ferry_leaving"

  /// Returns the condition for references of other rows to a row; `nil` if none can refer to it.
  ///
  /// - Parameter alias: the row's name in the statement.
  func referring(_ table: Name, alias: String) -> String? {
    let conditions = children(of: table, among: links + others).map { link in
      "EXISTS (SELECT 1 FROM \(quoted(link.child.local)) AS \(alias)_1 WHERE "
        + Self.match(link, alias, "\(alias)_1") + ")"
    }
    return conditions.isEmpty ? nil : conditions.joined(separator: " OR ")
  }

  /// Returns the condition for rows with a reference to each other. A reference of a row to itself
  /// does not count.
  static func match(_ link: ForeignKey, _ parent: String, _ child: String) -> String {
    var parts = [link.match(parent: parent, child: child)]
    if link.child.local.folded == link.parent.folded, !link.child.keys.isEmpty {
      let isSame = link.child.keyList.map { "\(child).\($0) = \(parent).\($0)" }
      // SQLite permits NULL in a text key.
      parts.append("(\(isSame.joined(separator: " AND "))) IS NOT TRUE")
    }
    return parts.joined(separator: " AND ")
  }

  /// Returns the queries for the records in ``leaving`` with references to a row, with their
  /// tables.
  ///
  /// - Parameter condition: the condition of the row; the statement calls it `p`.
  func leavingChildren(of table: Name, where condition: String) -> [(table: Name, sql: String)] {
    children(of: table, among: links).map { link in
      let record = link.child.record(of: "c")
      return (
        link.child.name,
        "SELECT \(record) FROM \(quoted(table)) AS p, \(quoted(link.child.local)) AS c WHERE "
          + "\(condition) AND \(Self.match(link, "p", "c")) AND EXISTS (SELECT 1 FROM \(Self.leaving) "
          + "WHERE tbl = \(quoted(literal: link.child.name.text)) AND record = \(record))"
      )
    }
  }

  /// Returns the foreign keys of a tracked table.
  func parents(of table: Name) -> [ForeignKey] {
    links.filter { $0.child.local.folded == table.folded }
  }

  /// Returns the references of a tracked table's records, by the table's name in the space.
  func references(of table: Name) -> [ForeignKey] {
    links.filter { $0.child.name == table && $0.reference != nil }
  }

  /// Returns the foreign keys whose rows follow changed values of a table.
  func followers(of table: TableSchema) -> [ForeignKey] {
    links.filter { $0.followsValues(of: table) }
  }

  /// Returns true if SQLite deletes or changes rows of a tracked table along with a parent.
  func goesWithParents(_ table: Name) -> Bool {
    parents(of: table).contains { $0.onDelete.changesRows }
  }

  /// Returns the foreign keys by which rows keep SQLite from deleting rows of a table.
  func restricting(_ table: Name) -> [ForeignKey] {
    children(of: table, among: links + others).filter { !$0.onDelete.changesRows }
  }

  /// Returns the condition under which a row stays because rows refer to it, or to rows that would
  /// go with it; `nil` if none can.
  ///
  /// - Parameter alias: the row's name in the statement.
  func holding(_ table: Name, alias: String, _ choice: Choice = Choice()) -> String? {
    holding(table, alias, choice, path: [table])
  }

  private func holding(
    _ table: Name, _ alias: String, _ choice: Choice, path: [Name]
  ) -> String? {
    let conditions = children(of: table, among: links).compactMap { link -> String? in
      let child = "\(alias)_\(path.count)"
      var parts = [Self.match(link, alias, child)]
      switch effect(of: link, path) {
      case .keeps:
        if choice.isAsking && link.rule != .ask { return nil }
      case .takes:
        if link.onDelete == .cascade, path.count >= Self.nestedMax {
          let chain = ParentChain(link, links)
          if chain.isWhole { return chain.holding(alias, child, choice) }
        }
        let inner = holding(link.child.local, child, choice, path: path + [link.child.local])
        guard let inner else { return nil }
        parts.append("(\(inner))")
      case .chains: return ParentChain(link, links).holding(alias, child, choice)
      case .leaves: return nil
      }
      parts += Self.staying(link, child, choice)
      return "EXISTS (SELECT 1 FROM \(quoted(link.child.local)) AS \(child) WHERE "
        + parts.joined(separator: " AND ") + ")"
    }
    return conditions.isEmpty ? nil : conditions.joined(separator: " OR ")
  }

  /// Returns the condition for a child's row that does not leave; none if leaving rows count.
  static func staying(_ link: ForeignKey, _ child: String, _ choice: Choice) -> [String] {
    guard choice.isStaying else { return [] }
    return [
      "NOT EXISTS (SELECT 1 FROM \(leaving) WHERE tbl = "
        + "\(quoted(literal: link.child.name.text)) AND record = \(link.child.record(of: child)))"
    ]
  }

  /// Returns the statements to delete dependent rows that SQLite would keep, the last ones of a
  /// chain first.
  ///
  /// - Parameter condition: the condition of the parent row, with unqualified column names.
  func removals(of table: Name, where condition: String) -> [String] {
    removals(of: table, condition, path: [table])
  }

  private func removals(of table: Name, _ condition: String, path: [Name]) -> [String] {
    children(of: table, among: links).flatMap { link -> [String] in
      guard effect(of: link, path) == .takes else { return [] }
      let (parent, child) = (quoted(table), quoted(link.child.local))
      let rows =
        "EXISTS (SELECT 1 FROM \(parent) WHERE \(link.match(parent: parent, child: child)) "
        + "AND \(condition))"
      return removals(of: link.child.local, rows, path: path + [link.child.local])
        + (link.onDelete == .cascade ? [] : ["DELETE FROM \(child) WHERE \(rows)"])
    }
  }

  private enum Effect {
    /// The parent stays, or returns.
    case keeps
    /// The child goes with its parent.
    case takes
    /// SQLite deletes the child, and all rows below it at any depth.
    case chains
    /// The child stays without a parent.
    case leaves
  }

  private func effect(of link: ForeignKey, _ path: [Name]) -> Effect {
    if link.keepsParent { return .keeps }
    guard link.rule == .childGoes else { return .leaves }
    guard path.contains(where: { $0.folded == link.child.local.folded }) else { return .takes }
    // Only SQLite follows a chain of any length.
    return link.onDelete == .cascade ? .chains : .keeps
  }

  private func children(of table: Name, among links: [ForeignKey]) -> [ForeignKey] {
    links.filter { $0.parent.folded == table.folded }
  }
}
