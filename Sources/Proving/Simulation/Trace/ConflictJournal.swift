import FerryConformance
import FerryLaboratory
import FerryProtocol
import FerrySQLite

/// Finds the values behind the conflicts of a trace, for the report.
///
/// It reads copies of the devices' files, on disks of their own, so a run with a report is the same
/// run. The history of the server names the winning values when the run is over.
// SAFETY: touched on the scheduler's thread only.
final class ConflictJournal: @unchecked Sendable {
  /// A row of a replica's `ferry_conflicts`.
  private struct Kept: Hashable {
    var space: SpaceName
    var operation: OperationID
    var key: RecordKey
    var column: Name?
    /// JSON.
    var lost: String
    var loser: Stamp
    var winner: Stamp
    var isQuestion: Bool
  }

  private var known: [String: Set<Kept>] = [:]
  /// With the places of the events that report them.
  private var noticed: [(event: Int, conflict: Kept)] = []
  private var authors: [OperationID: String] = [:]

  /// Records the authors of operations.
  func see(_ event: RunEvent) {
    guard case .committed(let device, let operations) = event else { return }
    for operation in operations { authors[operation.id] = device }
  }

  /// Records a device's copy of another one's file, with all conflicts.
  func inherit(_ device: String, from original: String) { known[device] = known[original] }

  /// Connects new conflicts on a device with an event.
  func look(at device: SimulatedDevice, on disk: SimulatedDisk, event: Int) {
    for conflict in Self.read(device, on: disk)
    where known[device.name, default: []].insert(conflict).inserted {
      noticed.append((event, conflict))
    }
  }

  /// Returns events with the lost values.
  func named(
    _ events: [TraceEvent], history: (SpaceName) -> [HistoryEntry]
  ) -> [TraceEvent] {
    var events = events
    var writers: [SpaceName: WriterIndex] = [:]
    for (event, conflict) in noticed where events.indices.contains(event) {
      let index =
        writers[conflict.space] ?? WriterIndex(history(conflict.space), authors: authors)
      writers[conflict.space] = index
      let column = conflict.column.map { ".\($0)" } ?? ""
      let lost =
        conflict.column == nil ? index.verb(conflict.key, conflict.loser) : conflict.lost
      events[event].lost.append(
        LostValue(
          place: "\(conflict.key.table)/\(conflict.key.record)\(column)",
          lost: LostValue.Side(
            value: lost, author: index.author(conflict.key, conflict.loser)),
          won: LostValue.Side(
            value: index.value(conflict.key, conflict.column, conflict.winner),
            author: index.author(conflict.key, conflict.winner)),
          isQuestion: conflict.isQuestion))
    }
    return events
  }

  private static func read(_ device: SimulatedDevice, on disk: SimulatedDisk) -> [Kept] {
    let copy = disk.copy(under: "/\(device.name)/")
    return withExtendedLifetime(copy) {
      let connection = try? SQLiteConnection(
        path: device.path, mode: .readWrite, fileSystem: copy.fileSystem)
      guard let connection else { return [] }
      // A file may have no such table yet.
      return device.ledgers.flatMap { (try? rows(of: $0, connection)) ?? [] }
    }
  }

  private static func rows(
    of ledger: SimulatedDevice.Ledger, _ connection: SQLiteConnection
  ) throws -> [Kept] {
    try ledger.on(connection).rows(
      """
      SELECT operation, tbl, record, col, lost, loser_time, loser, winner_time, winner, question
      FROM ferry_conflicts ORDER BY seq
      """
    ) { row in
      func id(_ index: Int32) -> UniqueID { row.uniqueID(index) ?? UniqueID(high: 0, low: 0) }
      func stamp(_ time: Int32, _ device: Int32) -> Stamp {
        let bits = UInt64(bitPattern: row.int64(time))
        return Stamp(time: HybridTimestamp(rawValue: bits), device: DeviceID(id(device)))
      }
      return Kept(
        space: ledger.space, operation: OperationID(id(0)),
        key: RecordKey(table: row.name(1), record: row.name(2)), column: row.optionalName(3),
        lost: row.text(4), loser: stamp(5, 6), winner: stamp(7, 8),
        isQuestion: row.int64(9) != 0)
    }
  }
}

/// The writes of a history, by record, column and stamp.
private struct WriterIndex {
  private struct Place: Hashable {
    var key: RecordKey
    var column: Name?
    var stamp: Stamp
  }

  private var values: [Place: String] = [:]
  private var verbs: [Place: String] = [:]
  private var authors: [Place: String] = [:]
  /// The operation of each stamp, with the record.
  private var operations: [Stamp: String] = [:]
  private var devices: [DeviceID: String] = [:]

  init(_ history: [HistoryEntry], authors names: [OperationID: String]) {
    for entry in history {
      let name = names[entry.id]
      if let name { devices[entry.device] = name }
      operations[Stamp(time: entry.time, device: entry.device)] =
        "the \(entry.kind) of \(entry.key.table)/\(entry.key.record)"
      var stamps = [Stamp(time: entry.time, device: entry.device)]
      for column in entry.columns {
        let time = min(entry.columnTimes[column.name] ?? entry.time, entry.time)
        let stamp = Stamp(time: time, device: entry.device)
        var json = JSONWriter()
        json.value(column.value)
        let text = String(decoding: json.finish(), as: UTF8.self)
        let sign = entry.increments.contains(column.name) ? "+" : ""
        values[Place(key: entry.key, column: column.name, stamp: stamp)] = sign + text
        stamps.append(stamp)
      }
      for stamp in stamps {
        let place = Place(key: entry.key, column: nil, stamp: stamp)
        verbs[place] = "the \(entry.kind)"
        authors[place] = name
      }
    }
  }

  /// Returns a written value, or the operation that wrote it.
  func value(_ key: RecordKey, _ column: Name?, _ stamp: Stamp) -> String {
    column.flatMap { values[Place(key: key, column: $0, stamp: stamp)] } ?? verb(key, stamp)
  }

  /// Returns `the delete`, or `the delete of lists/7` if another record's delete took this one
  /// along. Empty if the history has no such operation, as with a never sent row.
  func verb(_ key: RecordKey, _ stamp: Stamp) -> String {
    verbs[Place(key: key, column: nil, stamp: stamp)] ?? operations[stamp] ?? ""
  }

  func author(_ key: RecordKey, _ stamp: Stamp) -> String {
    authors[Place(key: key, column: nil, stamp: stamp)] ?? devices[stamp.device]
      ?? "\(stamp.device)"
  }
}
