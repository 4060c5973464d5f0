import FerryProtocol
import FerrySyncClient
import Foundation

/// The pages of a pull list of new tasks, made one by one: a long list needs no memory for all of
/// them.
struct PulledPages {
  /// One page as it arrives, and the rows as values.
  typealias Page = (body: [UInt8], head: PageHead, rows: [TaskRow])

  let count: Int
  let changesPerPage: Int
  private var random = SeededRandom(seed: 7)
  private var clock = HybridClock()
  private var made = 0

  init(count: Int, changesPerPage: Int = 5_000) {
    (self.count, self.changesPerPage) = (count, changesPerPage)
  }

  /// The changes of the list.
  var total: Int { count * changesPerPage }

  /// Returns the next page; `nil` after the last one.
  mutating func next() -> Page? {
    guard made < count else { return nil }
    made += 1
    let last = Int64(made * changesPerPage)
    let isLast = made == count
    let cursor = Cursor(epoch: Epoch(1), applied: isLast ? last : 0, received: last)
    let head = PageHead(
      epoch: Epoch(1), head: Int64(total), cursor: cursor, more: !isLast, appliedTail: nil,
      serverTime: 0, count: changesPerPage)
    var json = JSONWriter(capacity: changesPerPage * 420)
    json.beginPage(head)
    let device = DeviceID(UniqueID(timestamp: .zero, random: 1))
    var rows: [TaskRow] = []
    for place in 0..<changesPerPage {
      let time = clock.tick(wall: SystemClock.milliseconds())
      let row = TaskRow(id: UniqueID(timestamp: time, random: random.next()), random: &random)
      rows.append(row)
      let sequence = last - Int64(changesPerPage - place) + 1
      json.element()
      json.change(row.change(sequence: sequence, time: time, device: device))
    }
    json.endPage()
    return (json.finish(), head, rows)
  }
}

extension TaskRow {
  fileprivate func change(
    sequence: SequenceNumber, time: HybridTimestamp, device: DeviceID
  ) -> Change {
    let stamp = Stamp(time: time, device: device)
    let states = columns.map {
      ColumnState(name: $0.name, value: $0.value, stamp: stamp, sequence: sequence)
    }
    return Change(
      sequence: sequence, key: RecordKey(table: Self.table, record: id),
      state: RecordState(
        inserted: SequencedStamp(stamp: stamp, sequence: sequence),
        columns: states.sorted { $0.name < $1.name }))
  }
}
