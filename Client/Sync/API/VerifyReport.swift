import FerryProtocol

/// What a comparison with the server found.
public struct VerifyReport: Sendable, Equatable {
  /// The point in the space's order at which both sides were compared.
  public var cursor: Cursor
  /// The tables that were compared, by name.
  public var tables: [TableComparison] = []
  /// Tables that the server has records of and that are not tracked here: they were not compared.
  public var untracked: [UntrackedTable] = []
  /// Records that differ, by table and identifier.
  public var differences: [RecordDifference] = []
  /// Records whose changes the server has not confirmed yet: not compared.
  public var pending = 0
  /// Records that others changed while this went on: not compared.
  public var changedMeanwhile = 0
  /// Bytes of requests, before compression.
  public var bytesSent = 0
  /// Bytes of answers, after decompression.
  public var bytesReceived = 0

  /// Nothing compared yet.
  public init(cursor: Cursor) { self.cursor = cursor }

  /// Whether nothing differs, or all of it was mended.
  public var isEqual: Bool { differences.allSatisfy(\.isMended) }

  /// Rows that were read here.
  public var rowCount: Int { tables.reduce(0) { $0 + $1.rows } }
}

/// One table's part of a comparison.
public struct TableComparison: Sendable, Equatable {
  /// The table.
  public var table: Name
  /// Rows that were read here, those with pending changes left out.
  public var rows: Int
  /// Records that the server has.
  public var serverRecords: Int
  /// Records that differ.
  public var differing: Int
}

/// A table of the space that this replica does not track.
public struct UntrackedTable: Sendable, Equatable {
  /// The table.
  public var table: Name
  /// Records that the server has.
  public var serverRecords: Int

  /// A table from its two parts.
  public init(table: Name, serverRecords: Int) {
    self.table = table
    self.serverRecords = serverRecords
  }
}

/// A record that is not the same here and on the server.
public struct RecordDifference: Sendable, Equatable {
  /// How it differs.
  public enum Kind: Sendable, Equatable {
    /// The server has it, this replica does not.
    case missingHere
    /// This replica has it, with these values; the server does not, and nothing here waits to
    /// tell it.
    case missingThere([Column])
    /// Both have it, with other values.
    case different([ColumnDifference])
  }

  /// The record.
  public var key: RecordKey
  /// How it differs.
  public var kind: Kind
  /// Whether the row is what the server has now.
  public var isMended = false

  /// A difference from its parts.
  public init(key: RecordKey, kind: Kind, isMended: Bool = false) {
    self.key = key
    self.kind = kind
    self.isMended = isMended
  }
}

/// A column that does not hold the same on both sides.
public struct ColumnDifference: Sendable, Equatable {
  /// The column.
  public var column: Name
  /// What it holds here.
  public var here: Value
  /// What it holds on the server.
  public var there: Value

  /// A difference from its parts.
  public init(column: Name, here: Value, there: Value) {
    self.column = column
    self.here = here
    self.there = there
  }
}

/// How far a comparison is.
public struct VerifyProgress: Sendable, Equatable {
  /// What is under way.
  public enum Phase: String, Sendable {
    /// Applying what the server has.
    case pulling
    /// The server brings its sums up to date, which is long at the first time.
    case summing
    /// Reading this replica's rows.
    case reading
    /// Looking at records that may differ.
    case comparing
  }

  /// What is under way.
  public var phase: Phase
  /// Changes, rows or records done.
  public var completed: Int
  /// How many there are, as far as is known.
  public var total: Int
}
