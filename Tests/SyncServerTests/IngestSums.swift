import FerryProtocol

@testable import FerrySyncServer

/// The rows of a decision without regard to the slices in which they are written.
struct IngestSums: Equatable {
  private var operations: [IngestEffects.OperationRow]
  private var states: [RecordKey: [UInt8]] = [:]
  private var notices: [IngestEffects.NoticeRow]
  private var rest: IngestEffects

  init(_ effects: IngestEffects, after slices: [IngestEffects] = []) {
    let all = slices + [effects]
    operations = all.flatMap(\.operations).sorted { $0.sequence < $1.sequence }
    notices = all.flatMap(\.notices)
    for row in all.flatMap(\.records) { states[row.key] = row.state }
    rest = effects
    (rest.operations, rest.records, rest.notices) = ([], [], [])
  }
}

/// Loads and writes slices in memory.
final class SlicesInMemory: IngestSlices {
  private var records: [RecordKey: RecordState]
  private(set) var saved: [IngestEffects] = []

  init(_ records: [RecordKey: RecordState]) { self.records = records }

  func load(_ keys: [RecordKey]) throws -> [RecordKey: (state: RecordState, bytes: Int)] {
    var found: [RecordKey: (state: RecordState, bytes: Int)] = [:]
    for key in keys { found[key] = records[key].map { ($0, $0.stored().count) } }
    return found
  }

  func save(_ slice: IngestEffects) throws {
    saved.append(slice)
    for row in slice.records {
      records[row.key] = try row.state.withUnsafeBytes {
        try RecordState(stored: $0, limits: .stored)
      }
    }
  }
}
