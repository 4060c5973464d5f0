import FerryPlatform
import FerryPostgres
import FerryProtocol

/// A change of a row of a mirrored table, as the log has it; pure.
struct LoggedRow: Sendable, Equatable {
  var old: [PgoutputValue]?
  var new: [PgoutputValue]?

  /// Returns the change of a row; `nil` if the log does not have the whole former row.
  init?(_ change: ReplicatedChange) {
    switch change {
    case .insert(_, let new): self.new = new
    case .update(_, .row(let old)?, let new):
      self.old = old
      // An unchanged value outside of the row is in the former row alone.
      self.new = zip(old, new).map { $1 == .unchanged ? $0 : $1 }
    case .delete(_, .row(let old)): self.old = old
    default: return nil
    }
    if [old, new].contains(where: { $0?.contains(.unchanged) == true }) { return nil }
  }

  /// Returns the position in a logged row of each column of the table; `nil` for a column that the log
  /// does not have, such as a new one. Returns no positions if a needed column had another name at the
  /// time of the write: it is absent, or columns have exchanged their names.
  ///
  /// - Parameters:
  ///   - columns: those of the table as it is now, by their numbers.
  ///   - logged: those of the log. A new name changes no number, so the order stays.
  ///   - comparesOrder: false for a partition, which has an order of its own.
  static func places(
    of columns: [Name], in logged: [Name], _ needed: Set<Name>, comparesOrder: Bool
  ) -> [Int?]? {
    // A needed column may have exchanged names with another one.
    let common = Set(columns).intersection(logged)
    guard needed.isSubset(of: common),
      !comparesOrder || columns.filter(common.contains) == logged.filter(common.contains)
    else { return nil }
    return columns.map { logged.firstIndex(of: $0) }
  }

  /// Returns a row as the text of a composite value (PostgreSQL manual, "Composite Types").
  ///
  /// - Parameter columns: the position in `values` of each column of the table, as it is now; `nil`
  ///   for NULL.
  static func text(_ values: [PgoutputValue], _ columns: [Int?]) -> [UInt8] {
    var text = [UInt8(ascii: "(")]
    for (place, column) in columns.enumerated() {
      if place > 0 { text.append(UInt8(ascii: ",")) }
      guard let column, case .text(let value) = values[column] else { continue }
      text.append(UInt8(ascii: "\""))
      for byte in value {
        // Twice within quotes.
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.append(byte) }
        text.append(byte)
      }
      text.append(UInt8(ascii: "\""))
    }
    text.append(UInt8(ascii: ")"))
    return text
  }
}

/// A mark of the mirror in the log: a message in a transaction of the mirror's own; pure.
///
/// A step writes `open`, then one statement, and `close` behind the rows of the statement. The rows
/// of the named table between both are the step's. All others are effects: of foreign keys, or of
/// programs' triggers. They reach the space. Triggers before a row run between both marks: beside
/// them, the step only writes `gone` behind the rows of the statement, with the keys. It writes `over`
/// before rows that an effect of a former statement may have changed: it overwrites them.
///
/// A table is named by ``MirrorSQL/function``: the name may contain any character.
enum LogMark: Equatable {
  case open(table: String)
  case close
  /// The named rows are the step's as well, if an effect has changed them before.
  case forget(table: String, Forgotten, keys: String)
  /// Shows that the reader has come so far.
  case beat
  /// Makes the reader store the position, also without a change: another process waits for it.
  case store

  /// The changes of effects that are the step's.
  enum Forgotten: String {
    case all = "gone"
    /// The step writes the rows next.
    case overwritten = "over"
    /// The step has captured the rows as a whole.
    case updates = "made"
  }

  /// The prefix of the messages.
  static let prefix = "ferry.mirror"

  /// Returns the SQL of a mark. The server adds the mirror's word: PostgreSQL may write statements
  /// and parameters to other logs, and shows statements to other roles.
  ///
  /// - Parameter rest: the SQL of more text.
  static func sql(_ mirror: Int64, _ words: [String], rest: String = "") -> String {
    let text = "\n" + words.joined(separator: "\n")
    return """
      pg_logical_emit_message(true, '\(LogMark.prefix)',
        (SELECT l.secret FROM \(MirrorSQL.ledger).logged d
          JOIN \(MirrorSQL.ledger).logs l ON l.mirror = d.log WHERE d.mirror = \(mirror))
          || \(quoted(postgres: text))\(rest))
      """
  }

  /// Reads a message; `nil` if it is of another mirror, or of a program.
  init?(_ content: [UInt8], secret: String) {
    guard let text = String(validating: content, as: UTF8.self) else { return nil }
    let parts = text.parts(at: "\n", most: 4).map(String.init)
    guard parts.count > 1, parts[0] == secret else { return nil }
    switch (parts[1], parts.count) {
    case ("open", 3): self = .open(table: parts[2])
    case ("close", 2): self = .close
    case ("beat", 2): self = .beat
    case ("store", 2): self = .store
    case (let word, 4):
      guard let forgotten = Forgotten(rawValue: word) else { return nil }
      self = .forget(table: parts[2], forgotten, keys: parts[3])
    default: return nil
    }
  }
}

extension ReplicatedChange {
  /// False for a mark.
  var isOfRows: Bool { if case .message = self { false } else { true } }
}
