import Ferry
import FerryCommandLine
import FerryPlatform

/// The tables with waiting pulled changes, by the command that lets them be applied; pure.
struct WaitingTables: Equatable {
  /// Missing tables.
  private(set) var absent: [Name] = []
  /// Existing, untracked tables.
  private(set) var untracked: [Name] = []
  /// Tracked tables with missing columns.
  private(set) var narrow: [Name] = []
  /// Names of the space that SQLite treats as others here.
  let clashes: [NameClash]

  /// Sorts the tables with waiting changes. SQLite compares tables' names without ASCII case.
  init(
    waitedFor tables: [Name], tracked: [Name], existing: [Name], clashes: [NameClash] = []
  ) {
    self.clashes = clashes
    let tables = tables.filter { table in !clashes.contains { $0.table == table } }
    let tracked = Set(tracked.map(\.folded))
    let existing = Set(existing.map(\.folded))
    for table in tables {
      if tracked.contains(table.folded) {
        narrow.append(table)
      } else if existing.contains(table.folded) {
        untracked.append(table)
      } else {
        absent.append(table)
      }
    }
  }

  /// Returns the message: one line with the number of changes, then a line for each command.
  ///
  /// ```
  /// ferry: 3 changes wait for tables or columns that are not tracked here; nothing is lost
  ///   next: create and track notes, tasks: `ferry track --create notes tasks`
  /// ```
  func lines(changes: Int) -> [String] {
    var lines = [
      "ferry: \(changes.counted("change")) \(changes == 1 ? "waits" : "wait") for tables or columns "
        + "that are not tracked here; nothing is lost"
    ]
    if !absent.isEmpty {
      let command =
        absent.count > BoundedList.shown
        ? "ferry track --create --all" : Self.command("ferry track --create", absent)
      lines.append(
        "  next: create and track \(Self.list(absent)): `\(command)`; "
          + "--id COLUMN names the key column if it is not id")
    }
    if !untracked.isEmpty {
      lines.append(
        "  next: track \(Self.list(untracked)): `\(Self.command("ferry track", untracked))`")
    }
    lines += BoundedList.lines(narrow) { table in
      "  next: add the columns of \(Self.list([table])) that are missing here: "
        + "`ferry sql 'ALTER TABLE … ADD COLUMN …'`; `ferry to-apply` shows the values"
    } rest: {
      "  next: \($0.counted("more table")) \($0 == 1 ? "lacks" : "lack") columns here"
    }
    lines += BoundedList.lines(clashes) { clash in
      let table = Self.list([clash.table])
      let name = clash.column.map { "column \(Self.list([$0])) of \(table)" } ?? "table \(table)"
      if let column = clash.column, column == clash.local {
        return
          "  next: the space's \(name) is another one than \(Self.list([clash.local])) here, which has "
          + "another name in the space: give the one here a new name, "
          + "`ferry rename TABLE NEW --column OLD`, and add \(Self.list([column]))"
      }
      return "  next: SQLite takes \(name) of the space for \(Self.list([clash.local])), which the "
        + "space has as well: let all devices use one spelling"
        + (clash.column == nil
          ? ", and write the values of `ferry to-apply` again"
          : ". To use that one here, copy the column, drop it, and add it in the other spelling: "
            + "Documentation/migrations.md shows the statements")
    } rest: {
      "  next: \($0.counted("more name")) of the space \($0 == 1 ? "differs" : "differ") in case alone"
    }
    return lines.map(\.escapedForTerminal)
  }

  private static func list(_ tables: [Name]) -> String {
    // Only commands of Ferry are between backticks.
    BoundedList.names(tables.map { $0.text.replacing(bytes: "`", with: "\\u{60}") })
  }

  /// Returns a command with the first tables.
  private static func command(_ command: String, _ tables: [Name]) -> String {
    SuggestedCommand.line(
      command, tables.prefix(BoundedList.shown).map(\.text), or: "TABLE")
  }
}
