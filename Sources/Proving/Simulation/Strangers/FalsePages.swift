import FerryConformance
import FerryProtocol

/// Draws the lies of a hostile server about pull lists.
///
/// Each lie can be found by a device: by the page itself, by the next honest page, or since the
/// honest server rejects the cursor. Two kinds cannot, and are left out: false contents of others'
/// rows, and changes left out under an honest cursor.
struct FalsePages {
  private var random: SeededRandom
  private let manner: HostileServer.Manner
  /// Pages received by devices, by device.
  private var before: [String: [UInt8]] = [:]

  init(random: SeededRandom, manner: HostileServer.Manner) {
    (self.random, self.manner) = (random, manner)
  }

  /// Returns a page in place of an honest one, with a description.
  mutating func page(
    _ body: [UInt8], _ head: PageHead, _ asked: Cursor?, from device: String,
    tails: [OperationID]
  ) -> ([UInt8], String) {
    let old = before[device]
    before[device] = body
    var head = head
    switch random.below(10) {
    case 0: return (spoil(body), "a spoiled page")
    case 1: return (misshapen(body), "a page of another shape")
    case 2, 3:
      head.appliedTail = tail(tails)
      let named = head.appliedTail.map { "\($0)" } ?? "none"
      return (body.replacingHead(head), "a page that names the tail \(named)")
    case 4: return (old ?? body, "the page before, once more")
    case 5:
      advance(&head, beyond: asked, more: true)
      return (body.replacingHead(head), "a list without an end")
    case 6:
      advance(&head, beyond: asked, more: false)
      return (body.replacingHead(head), "a list that ends in the future")
    case 7:
      head.serverTime = random.chance(1, in: 2) ? 0 : Limits.wallTimeMax
      return (body.replacingHead(head), "a page of another time")
    case 8:
      head.count += random.chance(1, in: 2) ? 1 : -1
      return (body.replacingHead(head), "a page with another number of changes")
    default:
      let changes = (0..<1 + random.below(5)).map { _ in stray(head.head) }
      return (body.adding(changes, to: head), "\(changes.count) false rows")
    }
  }

  /// Returns damaged bytes.
  mutating func spoil(_ body: [UInt8]) -> [UInt8] {
    switch random.below(5) {
    case 0: return []
    case 1: return Array("{}".utf8)
    case 2: return Array("[[[[[[[[\"\u{0}\"".utf8)
    default: return Corruption.damage(body) { random.below($0) }
    }
  }

  private mutating func misshapen(_ body: [UInt8]) -> [UInt8] {
    switch random.below(6) {
    case 0: body.replacing(",\"changes\":[", by: ",\"changes\":{},\"others\":[")
    case 1: body.replacing(",\"changes\":[", by: ",\"changes\":null,\"others\":[")
    case 2: body.replacing("\"more\":", by: "\"more\":0,\"less\":")
    case 3: body.replacing("\"cursor\":\"", by: "\"cursor\":\"x")
    case 4: body.replacing("\"epoch\":\"", by: "\"epoch\":\"f")
    default: body.replacing("\"head\":\"", by: "\"head\":\"-")
    }
  }

  /// Returns a tail of this device that is too old, none, or one of nobody. A server with dropped
  /// packets in the pages never makes a device take another identifier.
  private mutating func tail(_ known: [OperationID]) -> OperationID? {
    switch random.below(3) {
    case 0: return nil
    case 1 where manner == .identities:
      return OperationID(UniqueID(timestamp: .zero, random: random.next()))
    default:
      if known.isEmpty { return nil }
      if manner == .names, random.chance(1, in: 2) { return known.last }
      // The newest one may be of a dropped packet.
      let oldest = known.prefix(manner == .names ? known.count : max(1, known.count / 2))
      return oldest[random.below(oldest.count)]
    }
  }

  /// Returns a page without changes whose list goes on.
  mutating func empty(_ head: PageHead, beyond asked: Cursor) -> [UInt8] {
    var head = head
    (head.count, head.appliedTail) = (0, nil)
    advance(&head, beyond: asked, more: true)
    var json = JSONWriter()
    json.beginPage(head)
    json.endPage()
    return json.finish()
  }

  /// Moves the head and the cursor past the honest head, to a nonexistent operation.
  private mutating func advance(_ head: inout PageHead, beyond asked: Cursor?, more: Bool) {
    let place = max(head.head, asked?.received ?? 0) + 1 + SequenceNumber(random.below(20))
    head.head = more ? place + 1_000_000 : place
    let anchor = Cursor.Anchor(
      head: place, operation: OperationID(UniqueID(timestamp: .zero, random: random.next())),
      historyHash: random.next())
    head.more = more
    head.cursor = Cursor(
      epoch: head.epoch, applied: more ? asked?.applied ?? 0 : place, received: place,
      anchor: anchor)
  }

  /// Returns a change of a table left out by oracles, by nobody, at any time.
  private mutating func stray(_ head: SequenceNumber) -> Change {
    let times: [UInt64] = [0, 1 << 16, 4_000_000_000_000 << 16, .max >> 1, .max]
    let stamp = Stamp(
      time: HybridTimestamp(rawValue: times[random.below(times.count)]),
      device: DeviceID(UniqueID(timestamp: .zero, random: random.next())))
    let place = SequenceNumber(random.below(Int(clamping: max(1, head)) + 3))
    let tables: [Name] = ["stray_nodes", "stray_hubs", "stray_legs", "stray", "stray\u{600}'"]
    let columns: [Name] = ["hub", "up", "name", "size", "HUB", "x'; --", "\u{600}\""]
    let key = RecordKey(
      table: tables[random.below(tables.count)], record: Name("s\(random.below(40))"))
    let value = Workload.oddTexts[random.below(Workload.oddTexts.count)]
    let mark = SequencedStamp(stamp: stamp, sequence: place)
    return Change(
      sequence: place, key: key,
      state: RecordState(
        inserted: random.chance(2, in: 3) ? mark : nil,
        deleted: random.chance(1, in: 4) ? mark : nil,
        columns: [
          ColumnState(
            name: columns[random.below(columns.count)], value: value, stamp: stamp,
            sequence: place)
        ]))
  }
}
