import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
  /// Runs one durable transaction that may assign places in a space's order.
  func change<T>(_ space: Int64, _ body: () throws -> T) throws -> T {
    unsettled = nil
    let result = try connection.transaction { try body() }
    if let unsettled { timelines.update(unsettled, of: space) }
    return result
  }
}
