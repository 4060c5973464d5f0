import FerryProtocol
import Synchronization

/// The composed missions as the manager's catalogue: the newest version of each. Records are made
/// once, so looking at missions signs and decodes nothing.
final class DraftCatalogue: MissionCatalogue {
  /// Records of composed and complete drafts, by number.
  private let records = Mutex<[Int64: MissionRecord]>([:])

  func set(_ record: MissionRecord, of number: Int64) { records.withLock { $0[number] = record } }

  func remove(_ number: Int64) { records.withLock { $0[number] = nil } }

  func space() async throws(MissionError) -> SpaceName { DraftRule.space }

  func missions() async throws(MissionError) -> [MissionRecord] {
    var newest: [MissionID: MissionRecord] = [:]
    for (_, record) in records.withLock({ $0.sorted { $0.key < $1.key } }) {
      newest[record.id] = record
    }
    return newest.values.sorted { $0.id < $1.id }
  }
}
