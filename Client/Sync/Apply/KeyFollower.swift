import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// A foreign key of a tracked table to other columns than the parent's key, with an action on their
/// update. Rows of the child follow a changed value (ON UPDATE CASCADE) or release it (ON UPDATE
/// SET NULL, ON UPDATE SET DEFAULT).
struct KeyFollower: Equatable {
  /// The effect on the child's columns.
  enum Action: String {
    case cascade = "CASCADE"
    case setNull = "SET NULL"
    case setDefault = "SET DEFAULT"
  }

  let child: Name
  /// The child's columns, and the parent's in the same order. As for the child, the names are those
  /// in this file.
  var from: [Name]
  var to: [Name]
  let action: Action
}

/// A value before and after a change, for rows of a child to follow.
struct KeyMove {
  let parent: TableSchema
  let follower: KeyFollower
  let old: [Value]
  let new: [Value]
}

extension KeyFollower {
  /// Reads the foreign keys of tracked tables that follow values of `parent`.
  static func read(
    of parent: TableSchema, from connection: SQLiteConnection
  ) throws -> [KeyFollower] {
    var followers: [(id: Int64, follower: KeyFollower)] = []
    try connection.prepare(
      """
      SELECT t.local, link.id, link."from", link."to", link.on_update
      FROM ferry_tables AS t, pragma_foreign_key_list(t.local) AS link
      WHERE link."table" = ? COLLATE NOCASE AND link."to" IS NOT NULL
        AND link.on_update IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
      ORDER BY t.local, link.id, link.seq
      """
    ).forEach(parent.local) { row in
      let (child, id) = (row.name(0), row.int64(1))
      if let last = followers.indices.last, followers[last].id == id,
        followers[last].follower.child == child
      {
        followers[last].follower.from.append(row.name(2))
        followers[last].follower.to.append(row.name(3))
      } else if let action = KeyFollower.Action(rawValue: row.text(4)) {
        let follower = KeyFollower(
          child: child, from: [row.name(2)], to: [row.name(3)], action: action)
        followers.append((id, follower))
      }
    }
    // A record's key never changes: an update of it is a delete and an insert.
    return followers.map(\.follower).filter { follower in
      !follower.to.contains { to in parent.keys.contains { $0.local.folded == to.folded } }
    }
  }
}

extension TableSchema {
  /// Returns the values of a record's row in these columns; `nil` if there is no row.
  func values(
    of record: Name, _ columns: [Name], on connection: SQLiteConnection
  ) throws -> [Value]? {
    try connection.first(
      "SELECT \(columns.map(quoted).joined(separator: ", ")) FROM \(quoted(local)) "
        + "WHERE \(has(record: "?1"))", record
    ) { row in columns.indices.map { row.value(Int32($0)) } }
  }
}

/// Rows that follow the values changed by a pass.
struct KeyMoves {
  let connection: SQLiteConnection
  let capture: CaptureContext
  /// Returns the schema of a table of this file.
  let schema: (_ local: Name) throws -> TableSchema

  /// Moves rows from values changed by a pull, if no row has these values any more, to the new
  /// ones. The author of the change has sent the rows known there. Changes of other rows are
  /// recorded.
  ///
  /// - Parameter time: recorded operations are later than it.
  func apply(_ moves: [KeyMove], after time: HybridTimestamp) throws {
    if moves.isEmpty { return }
    let before = capture.mode
    capture.mode = .recording
    defer { capture.mode = before }
    capture.observe(time)
    for move in moves {
      guard try !isHeld(move.old, move), let new = try newValues(of: move) else { continue }
      let (from, count) = (move.follower.from.map(quoted), move.old.count)
      let sets = from.enumerated().map { "\($1) = ?\($0 + 1)" }
      let conditions = from.enumerated().map { "\($1) = ?\($0 + count + 1)" }
      let update = try connection.foreignKeyStatement(
        "UPDATE \(quoted(move.follower.child)) SET \(sets.joined(separator: ", ")) "
          + "WHERE \(conditions.joined(separator: " AND "))")
      do {
        try update.run(SQLiteList(new), SQLiteList(move.old))
      } catch {
        // The rows stay unchanged, and count as rows that refer to nothing.
        guard error.concernsRow, connection.isInTransaction else { throw error }
      }
    }
  }

  /// Returns the new values of the child's columns; `nil` if the child's defaults refer to no
  /// record here. Then the rows stay unchanged, as if their update had failed.
  private func newValues(of move: KeyMove) throws -> [Value]? {
    switch move.follower.action {
    case .cascade: return move.new
    case .setNull: return move.old.map { _ in .null }
    case .setDefault:
      let child = try schema(move.follower.child)
      let defaults = try move.follower.from.map { name -> Value in
        let column = child.columns.first { $0.local.folded == name.folded }
        guard let sql = column?.defaultSQL else { return .null }
        return try connection.prepare("SELECT (\(sql))").first { $0.value(0) } ?? .null
      }
      return try defaults.contains(.null) || isHeld(defaults, move) ? defaults : nil
    }
  }

  private func isHeld(_ values: [Value], _ move: KeyMove) throws -> Bool {
    let conditions = move.follower.to.enumerated().map { "\(quoted($1)) = ?\($0 + 1)" }
    return try connection.exists(
      "SELECT 1 FROM \(quoted(move.parent.local)) WHERE \(conditions.joined(separator: " AND "))",
      SQLiteList(values))
  }
}
