import FerryProtocol
import FerrySQLite

/// The rows that SQLite deletes with a row over any number of steps, as in a tree: its table refers to
/// itself, or to itself through others (ON DELETE CASCADE); pure.
///
/// ```swift
/// ParentChain(link, links).holding("p", "p_1", choice)  // EXISTS (WITH RECURSIVE ferry_chain(…) …)
/// ```
struct ParentChain {
  private static let name = "ferry_chain"

  private let first: ForeignKey
  /// The tables of the rows.
  private let tables: [TableSchema]
  /// The foreign keys from one row to the next.
  private let steps: [ForeignKey]
  /// The foreign keys of rows that keep one of the rows.
  private let keepers: [ForeignKey]
  /// True if SQLite itself deletes all rows that go.
  let isWhole: Bool

  /// - Parameters:
  ///   - first: the foreign key of the rows below the first one.
  ///   - links: the foreign keys of all tracked tables.
  init(_ first: ForeignKey, _ links: [ForeignKey]) {
    self.first = first
    var (tables, steps) = ([first.child], [ForeignKey]())
    var keepers: [ForeignKey] = []
    var (place, isWhole) = (0, true)
    while place < tables.count {
      for link in links where link.parent.folded == tables[place].local.folded {
        if link.rule == .childGoes && link.onDelete != .cascade { isWhole = false }
        if link.rule == .childGoes && link.onDelete == .cascade {
          steps.append(link)
          if Self.place(of: link.child.local, in: tables) == nil { tables.append(link.child) }
        } else if link.keepsParent || link.rule == .childGoes && !link.onDelete.changesRows {
          keepers.append(link)
        }
      }
      place += 1
    }
    (self.tables, self.steps, self.keepers) = (tables, steps, keepers)
    self.isWhole = isWhole
  }

  /// Returns the condition under which a row stays because rows refer to rows that would go with it; `nil` if
  /// none can.
  ///
  /// - Parameters:
  ///   - alias: the row's name in the statement.
  ///   - child: the name of a row below it.
  func holding(_ alias: String, _ child: String, _ choice: ParentRules.Choice) -> String? {
    let counting = choice.isAsking ? keepers.filter { $0.rule == .ask } : keepers
    if counting.isEmpty { return nil }
    let width = tables.map(\.keys.count).max() ?? 0
    let columns = (0..<width).map { "key_\($0)" }
    let rows =
      [
        "SELECT \(row(first, child, width)) FROM \(quoted(first.child.local)) AS \(child) WHERE "
          + ([ParentRules.match(first, alias, child)]
          + ParentRules.staying(first, child, choice)).joined(separator: " AND ")
      ]
      + steps.map { step in
        "SELECT \(row(step, "c", width)) FROM \(Self.name) AS chain, \(pair(step)) WHERE "
          + condition(step, choice)
      }
    let kept = counting.map { keeper in
      "EXISTS (SELECT 1 FROM \(pair(keeper)) WHERE \(condition(keeper, choice)))"
    }
    return "EXISTS (WITH RECURSIVE \(Self.name)(place, \(columns.joined(separator: ", "))) AS ("
      + rows.joined(separator: " UNION ") + ") SELECT 1 FROM \(Self.name) AS chain WHERE "
      + kept.joined(separator: " OR ") + ")"
  }

  /// Returns the table and the key of a link's child. All rows of the chain have as many columns.
  private func row(_ link: ForeignKey, _ child: String, _ width: Int) -> String {
    let keys = link.child.keyList.map { "\(child).\($0)" }
    let place = Self.place(of: link.child.local, in: tables) ?? 0
    let rest = Array(repeating: "NULL", count: width - keys.count)
    return (["\(place)"] + keys + rest).joined(separator: ", ")
  }

  /// Returns a link's rows: the parent `q`, and the child `c`.
  private func pair(_ link: ForeignKey) -> String {
    "\(quoted(link.parent)) AS q, \(quoted(link.child.local)) AS c"
  }

  /// Returns the condition for a link's rows, with a parent in the chain.
  private func condition(_ link: ForeignKey, _ choice: ParentRules.Choice) -> String {
    let place = Self.place(of: link.parent, in: tables) ?? 0
    // The columns of the chain are of several tables: the sign removes their types.
    let isParent = tables[place].keyList.enumerated().map { "q.\($1) = +chain.key_\($0)" }
    return
      (["chain.place = \(place)"] + isParent + [ParentRules.match(link, "q", "c")]
      + ParentRules.staying(link, "c", choice)).joined(separator: " AND ")
  }

  private static func place(of local: Name, in tables: [TableSchema]) -> Int? {
    tables.firstIndex { $0.local.folded == local.folded }
  }
}
