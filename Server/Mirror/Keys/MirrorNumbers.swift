import FerryPostgres
import FerryProtocol
import FerrySyncClient
import Synchronization

/// Lets the sequences of a company's database count the records of mapped tables in a mirror's file.
/// So a row has the same number on both sides.
package final class MirrorNumbers: RecordNumbering, Sendable {
  private let configuration: MirrorConfiguration
  /// The database's word.
  private let origin: String
  /// Whether the connection stays open; the mirrors of a group are too many.
  private let keepsConnection: Bool
  private let connection = Mutex<PostgresConnection?>(nil)

  init(_ configuration: MirrorConfiguration, origin: String, keepsConnection: Bool) {
    (self.configuration, self.origin) = (configuration, origin)
    self.keepsConnection = keepsConnection
  }

  /// Returns the numbers of a table.
  func keys(_ table: Name) -> MirrorKeys {
    MirrorKeys(
      space: configuration.space, schema: configuration.schema, table: table, origin: origin)
  }

  package func counts(_ table: Name) -> Bool {
    configuration.adoptions.keys.contains { Name($0) == table }
  }

  package func record(of number: Int64, in table: Name) -> String {
    keys(table).derived.record(of: number)
  }

  package func numbers(
    of records: [Name], in table: Name, isTaken: Bool
  ) throws -> [Int64] {
    let (keys, texts) = (keys(table), records.map(\.text))
    return try connection.withLock { kept in
      let present = try kept ?? PostgresConnection(url: configuration.database)
      kept = nil
      // After an error, the next call connects again.
      let found = try keys.numbers(of: texts, isTaken: isTaken, present)
      if keepsConnection { kept = present }
      return found
    }
  }
}
