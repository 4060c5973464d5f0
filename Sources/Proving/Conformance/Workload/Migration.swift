import FerryProtocol

/// A change of the tables past the triggers. The application makes it on one device, or another
/// program without knowledge of Ferry.
package enum Migration: String, Sendable, CaseIterable {
  /// Fill a new table, drop the old one, and give the new one the old name.
  case rebuilt
  /// The same by another program, which then writes to the table: no trigger records this.
  case rebuiltElsewhere
  /// Drop a column, and add it again.
  case columnReplaced
  /// Drop a table, and create it again without the rows.
  case emptied
  /// Stop recording a table, write to it, and record it again.
  case untracked

  /// Tables to which no row of another table refers.
  private static let tables = ["notes", "drafts", "places", "slots", "paints"]

  /// One migration of one table, with all choices.
  package struct Plan: Sendable, Equatable {
    package let kind: Migration
    package let table: String
    private let tag: String

    /// - Parameter shares: Whether the device has a table with rows of two spaces.
    package init(_ random: inout SeededRandom, shares: Bool = false) {
      kind = Migration.allCases[random.below(Migration.allCases.count)]
      let all = Migration.tables + (shares ? Workload.shared.tables.map(\.text) : [])
      let tables = kind == .columnReplaced ? ["notes"] : all
      table = tables[random.below(tables.count)]
      tag = Workload.fresh("", &random)
    }

    /// Returns the statements that change the table.
    ///
    /// - Parameter sql: The statement that created it.
    package func statements(madeBy sql: String) -> [String] {
      let columns = sql.drop { $0 != "(" }
      let rebuilt = [
        "CREATE TABLE \(table)_next\(columns)",
        "INSERT INTO \(table)_next SELECT * FROM \(table)",
        "DROP TABLE \(table)", "ALTER TABLE \(table)_next RENAME TO \(table)",
      ]
      return switch kind {
      case .rebuilt: rebuilt
      case .rebuiltElsewhere: rebuilt + writes(to: sql)
      case .columnReplaced:
        ["ALTER TABLE notes DROP COLUMN body", "ALTER TABLE notes ADD COLUMN body"]
      case .emptied: ["DROP TABLE \(table)", "CREATE TABLE \(table)\(columns)"]
      case .untracked: writes(to: sql)
      }
    }

    /// Returns writes not recorded by any trigger.
    private func writes(to sql: String) -> [String] {
      if Workload.shared.tables.contains(Name(table)) {
        // A row with an unrecorded move would stay in the former space: no delete is inferred.
        let (old, new) = (Workload.sharedRename.from, Workload.sharedRename.to)
        let name = sql.contains(new.text) ? new : old
        return [
          "UPDATE \(table) SET \(name) = 'm \(tag)' WHERE id = (SELECT min(id) FROM \(table))"
        ]
      }
      guard table == "notes" else { return [] }
      return [
        "UPDATE notes SET title = 'moved \(tag)' WHERE id = (SELECT min(id) FROM notes)",
        "INSERT INTO notes(id, title) VALUES ('n-\(tag)', 'unrecorded')",
      ]
    }
  }
}
