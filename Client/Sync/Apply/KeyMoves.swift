import FerryProtocol
import FerrySQLite

/// A value before and after a change, for rows of a child to follow.
struct KeyMove {
  let parent: TableSchema
  let follower: ForeignKey
  let old: [Value]
  let new: [Value]
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

  /// Moves rows from values changed by a pull, if no row has these values any more, to the new
  /// ones. The author of the change has sent the rows known there. Changes of other rows are
  /// recorded.
  ///
  /// - Parameter time: recorded operations are later than it.
  func apply(_ moves: [KeyMove], after time: HybridTimestamp) throws {
    if moves.isEmpty { return }
    try capture.during(.recording) {
      capture.observe(time)
      for move in moves {
        guard try !isHeld(move.old, move), let new = try newValues(of: move) else { continue }
        let (from, count) = (move.follower.from.map(quoted), move.old.count)
        let sets = from.enumerated().map { "\($1) = ?\($0 + 1)" }
        let conditions = from.enumerated().map { "\($1) = ?\($0 + count + 1)" }
        let update = try connection.foreignKeyStatement(
          "UPDATE \(quoted(move.follower.child.local)) SET \(sets.joined(separator: ", ")) "
            + "WHERE \(conditions.joined(separator: " AND "))")
        do throws(SQLiteError) {
          try update.run(SQLiteList(new), SQLiteList(move.old))
        } catch {
          // The rows stay unchanged, and count as rows that refer to nothing.
          guard error.concernsRow, connection.isInTransaction else { throw error }
        }
      }
    }
  }

  /// Returns the new values of the child's columns; `nil` if the child's defaults refer to no
  /// record here. Then the rows stay unchanged, as if their update had failed.
  private func newValues(of move: KeyMove) throws -> [Value]? {
    switch move.follower.onUpdate {
    case .cascade, .restrict, .none: return move.new
    case .setNull: return move.old.map { _ in .null }
    case .setDefault:
      let child = move.follower.child
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
