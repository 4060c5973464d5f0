import FerryPlatform
import FerryProtocol

/// How a tracked table's own key and the identifier sent to the server belong together (SPEC.md
/// §27).
public enum KeyIdentity: String, Sendable, CaseIterable {
  /// The key is a text, and is the identifier.
  case text
  /// The identifier is made of the key's value: on all devices, the same value is the same record. For
  /// keys of several columns, natural keys and UUIDs.
  case value
  /// Each device has its own integers, and stores the identifier of each. Foreign keys are
  /// translated.
  case mapped
}

/// A part of a table's primary key.
struct KeyColumn: Sendable, Equatable {
  /// The name in this file.
  let local: Name
  /// The declared type, in upper case.
  let type: String
  /// The mapped table with the numbers in this column, named as in the space.
  var numbers: Name?
}

/// Ferry's proposed identity for a table, with the reason.
public struct KeyProposal: Sendable, Equatable {
  /// The table's name in this file.
  public var table: Name
  /// The proposed identity.
  public var identity: KeyIdentity
  /// The reason, as part of a sentence: "its key id is an integer, which each device counts
  /// itself".
  public var reason: String
}

extension KeyProposal {
  /// Proposes an identity for a key.
  ///
  /// - Parameter refers: true if a key column refers to another table.
  static func of(
    _ table: Name, _ keys: [KeyColumn], refers: (KeyColumn) -> Bool
  ) -> KeyProposal {
    func proposal(_ identity: KeyIdentity, _ reason: String) -> KeyProposal {
      KeyProposal(table: table, identity: identity, reason: reason)
    }
    guard keys.count == 1, let key = keys.first else {
      return proposal(
        .value, "its key has \(keys.count) columns: the same values are the same record")
    }
    if key.isText { return proposal(.text, "its key \(key.local) is a text") }
    if refers(key) {
      return proposal(.value, "its key \(key.local) refers to another table")
    }
    return key.isInteger
      ? proposal(.mapped, "its key \(key.local) is an integer, which each device counts itself")
      : proposal(.value, "its key \(key.local) is no text: the same value is the same record")
  }
}

extension KeyColumn {
  /// True if SQLite stores texts in it (https://sqlite.org/datatype3.html §3.1).
  var isText: Bool { !isInteger && ["TEXT", "CHAR", "CLOB"].contains(where: { type.has($0) }) }
  var isInteger: Bool { type.has("INT") }

  /// The column's type after SQLite's conversion of values, by SQLite's rules
  /// (https://sqlite.org/datatype3.html §3.1).
  var affinity: KeyAffinity {
    if isInteger { return .numeric }
    if isText { return .text }
    if type.isEmpty || type.has("BLOB") { return .none }
    return ["REAL", "FLOA", "DOUB"].contains(where: { type.has($0) }) ? .real : .numeric
  }
}
