import FerryProtocol

/// The result of a comparison with the server.
public struct VerifyReport: Sendable, Equatable {
  /// The point of comparison in the space's order.
  public var cursor: Cursor
  /// The compared tables, by name.
  public var tables: [TableComparison] = []
  /// Tables with records on the server and not tracked here; they were not compared.
  public var untracked: [UntrackedTable] = []
  /// Tracked tables without a comparison, with the reason.
  public var faults: [TableFault] = []
  /// Tables changed by a migration. The next sync records the changes; a repair leaves them.
  public var unreconciled: [Name] = []
  /// Differing records, by table and identifier.
  public var differences: [RecordDifference] = []
  /// Records with changes not confirmed by the server yet: not compared.
  public var pending = 0
  /// Records changed by others during the comparison: not compared.
  public var changedMeanwhile = 0
  /// Records rejected by the tables here; they are not compared.
  public var deferred = 0
  /// Deferred records waiting because the user keeps another row with their unique value.
  public var keptLocal = 0
  /// The most frequent reasons of deferred records.
  public var waiting: [WaitingRecords] = []
  /// Bytes of requests, before compression.
  public var bytesSent = 0
  /// Bytes of answers, after decompression.
  public var bytesReceived = 0

  /// Creates an empty report: nothing is compared yet.
  public init(cursor: Cursor) { self.cursor = cursor }

  /// True if nothing differs, or all differences were repaired.
  public var isEqual: Bool { faults.isEmpty && differences.allSatisfy(\.isRepaired) }

  /// The number of rows read here.
  public var rowCount: Int { tables.reduce(0) { $0 + $1.rows } }
}

/// Records rejected by the tables of a replica for the same reason.
public struct WaitingRecords: Sendable, Equatable {
  /// The reason, for people to read.
  public var reason: String
  /// The number of records.
  public var count: Int

  /// Creates a group of records.
  public init(reason: String, count: Int) { (self.reason, self.count) = (reason, count) }
}

/// The comparison of one table.
public struct TableComparison: Sendable, Equatable {
  /// The table.
  public var table: Name
  /// The number of rows read here, without those with pending changes.
  public var rows: Int
  /// The number of records on the server.
  public var serverRecords: Int
  /// The number of differing records.
  public var differing: Int
}

/// A table of the space, not tracked by this replica.
public struct UntrackedTable: Sendable, Equatable {
  /// The table.
  public var table: Name
  /// The number of records on the server.
  public var serverRecords: Int

  /// Creates an untracked table.
  public init(table: Name, serverRecords: Int) {
    self.table = table
    self.serverRecords = serverRecords
  }
}

/// A record that differs between this replica and the server.
public struct RecordDifference: Sendable, Equatable {
  /// The kind of a difference.
  public enum Kind: Sendable, Equatable {
    /// The server has it, this replica does not.
    case missingHere
    /// This replica has the record, with these values. The server does not, and no pending
    /// operation here will create it.
    case missingThere([Column])
    /// Both have the record, with different values.
    case different([ColumnDifference])
  }

  /// The record.
  public var key: RecordKey
  /// How it differs.
  public var kind: Kind
  /// True if the row now equals the server's.
  public var isRepaired = false

  /// Creates a difference.
  public init(key: RecordKey, kind: Kind, isRepaired: Bool = false) {
    self.key = key
    self.kind = kind
    self.isRepaired = isRepaired
  }
}

/// A column with different values on both sides.
public struct ColumnDifference: Sendable, Equatable {
  /// The column.
  public var column: Name
  /// The value on this replica.
  public var here: Value
  /// The value on the server.
  public var there: Value

  /// Creates a difference.
  public init(column: Name, here: Value, there: Value) {
    self.column = column
    self.here = here
    self.there = there
  }
}

/// The progress of a comparison.
public struct VerifyProgress: Sendable, Equatable {
  /// A phase of a comparison.
  public enum Phase: String, Sendable {
    /// Applying the server's changes.
    case pulling
    /// The server updates the sums; this takes long the first time.
    case summing
    /// Reading this replica's rows.
    case reading
    /// Looking at records that may differ.
    case comparing
  }

  /// The current phase.
  public var phase: Phase
  /// Changes, rows or records done.
  public var completed: Int
  /// The number of changes, rows or records, as far as it is known.
  public var total: Int
}
