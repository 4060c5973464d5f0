import FerryPostgres
import FerryProtocol
import FerrySyncClient

/// Lets the sequences of a company's database count the records of mapped tables in a mirror's file.
/// So a row has the same number on both sides.
package final class MirrorNumbers: RecordNumbering, Sendable {
  /// The longest wait for a connection of the pool: the replica's thread waits.
  private static let waitMax = Duration.seconds(60)

  /// Runs work on a connection, and blocks the caller.
  package typealias Blocking =
    @Sendable (@escaping @Sendable (PostgresConnection) throws -> [Int64]) throws -> [Int64]

  /// The numbers of each adopted table.
  private let keys: [Name: MirrorKeys]
  private let runBlocking: Blocking

  /// - Parameter origin: the database's word.
  convenience init(_ configuration: MirrorConfiguration, origin: String, _ pool: PostgresPool) {
    self.init(configuration, origin: origin) {
      try pool.runBlocking(waiting: Self.waitMax, $0)
    }
  }

  /// - Parameter origin: the database's word.
  package init(
    _ configuration: MirrorConfiguration, origin: String, _ runBlocking: @escaping Blocking
  ) {
    let (space, schema) = (configuration.space, configuration.schema)
    let tables = configuration.adoptions.keys.map { Name($0) }
    keys = Dictionary(
      uniqueKeysWithValues: tables.map {
        ($0, MirrorKeys(space: space, schema: schema, table: $0, origin: origin))
      })
    self.runBlocking = runBlocking
  }

  /// Returns the numbers of a table; `nil` if it is not adopted.
  func keys(_ table: Name) -> MirrorKeys? { keys[table] }

  package func counts(_ table: Name) -> Bool { keys[table] != nil }

  package func record(of number: Int64, in table: Name) -> String {
    guard let keys = keys[table] else {
      preconditionFailure("only the numbers of adopted tables are counted")
    }
    return keys.derived.record(of: number)
  }

  package func numbers(
    of records: [Name], in table: Name, isTaken: Bool
  ) throws -> [Int64] {
    guard let keys = keys[table] else {
      throw MirrorFault(
        description: "table \(table) is not adopted, so no sequence counts the rows")
    }
    let texts = records.map(\.text)
    return try runBlocking { try keys.numbers(of: texts, isTaken: isTaken, $0) }
  }
}
