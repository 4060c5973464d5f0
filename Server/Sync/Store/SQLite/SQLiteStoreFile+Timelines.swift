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

  /// Stores a new timeline, if one begins.
  func saveTimeline(_ state: SpaceState, in space: Int64) throws {
    guard let row = TimelineQueries.beginning(of: state, in: space) else { return }
    try run(row.statement, row.values)
  }
}
