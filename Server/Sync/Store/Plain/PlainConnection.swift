import FerryProtocol

/// A statement written once for both stores.
///
/// Parameters are named `$1`, `$2` … in the order of their first use: SQLite numbers named
/// parameters by this order. It contains only SQL known to both databases.
struct PlainStatement: Sendable {
  /// Unique among all statements, at most 63 bytes.
  let name: String
  let sql: String

  init(_ name: String, _ sql: String) { (self.name, self.sql) = (name, sql) }
}

/// A parameter of such a statement; `nil` is NULL.
enum PlainValue: Sendable {
  case integer(Int64?)
  case text(String?)
  case bytes([UInt8])
  /// A record's identifier as `records` and `operations` have it.
  case record(Name)
  /// A `uuid` in PostgreSQL, sixteen bytes in SQLite.
  case uuid(UniqueID)
}

/// A row of a result. Columns are counted from 0.
protocol PlainRow {
  func isNull(_ column: Int) -> Bool
  func integer(_ column: Int) throws -> Int64
  func text(_ column: Int) throws -> String
  func bytes(_ column: Int) throws -> [UInt8]
  /// Returns a record's identifier from `records` or `operations`.
  func recordName(_ column: Int) throws -> StoredRecordName
}

extension PlainRow {
  func optionalInteger(_ column: Int) throws -> Int64? {
    isNull(column) ? nil : try integer(column)
  }

  func optionalText(_ column: Int) throws -> String? { isNull(column) ? nil : try text(column) }
}

/// A connection of either store, for queries rare enough to be written once.
///
/// A query of every pull or packet is written for each database.
protocol PlainConnection {
  /// The expression by which an index in the order of a space's sequences is used.
  static var sequenceSpace: String { get }

  /// Runs a query, and passes each row to `read`.
  func rows<T>(
    _ statement: PlainStatement, _ values: [PlainValue], _ read: (any PlainRow) throws -> T
  ) throws -> [T]

  /// Runs a statement. Returns the number of changed rows.
  @discardableResult
  func run(_ statement: PlainStatement, _ values: [PlainValue]) throws -> Int

  /// Runs a statement with each of these lists of parameters.
  func run(_ statement: PlainStatement, forEach lists: [[PlainValue]]) throws

  /// Runs `body` in one transaction.
  func together<T>(_ body: () throws -> T) throws -> T
}

/// A store that lends connections for such queries.
protocol PlainStore: Sendable {
  var makeEpoch: @Sendable () -> Epoch { get }

  /// - Parameter function: The caller, whose name the spans of traces have.
  func lend<T: Sendable>(
    _ use: PlainUse, for function: String,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T
}

extension PlainStore {
  /// Runs `body` on a connection.
  func plain<T: Sendable>(
    _ use: PlainUse, for function: String = #function,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T {
    try await lend(use, for: function, body)
  }
}

/// The purpose of a connection.
enum PlainUse: Sendable {
  case reading
  case writing
  /// Reading before a request is admitted.
  case authenticating
}
