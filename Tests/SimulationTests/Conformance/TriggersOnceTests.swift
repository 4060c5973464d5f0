import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracle of the writes by users' triggers.
@Suite(.hangLimit)
struct TriggersOnceTests {
  /// An operation on record `r` of a table, by the device at this place.
  private struct Write {
    var device: Int
    var table: Name
    var kind: OperationKind
    /// True if the device's user committed it.
    var isOwn = true
  }

  private static let devices = (1...2).map { DeviceID(UniqueID(high: $0, low: 1)) }
  /// Both devices write, and the first one deletes its chip.
  private static let once = [
    Write(device: 0, table: "chips", kind: .insert),
    Write(device: 1, table: "boxes", kind: .insert),
    Write(device: 0, table: "chips", kind: .delete),
    Write(device: 0, table: "trail", kind: .insert),
  ]
  private static let again = Write(device: 1, table: "trail", kind: .update, isOwn: false)

  /// Returns the findings of a run with these writes.
  private func found(_ writes: [Write], _ events: [RunEvent] = []) -> [String] {
    var oracle = TriggersOnce()
    var history: [HistoryEntry] = []
    for write in writes {
      let place = SequenceNumber(history.count + 1)
      let id = OperationID(UniqueID(high: 0x0190_0000_0000_7000, low: UInt64(place)))
      let key = RecordKey(table: write.table, record: "r")
      if write.isOwn {
        let operation = LocalOperation(id: id, key: key, kind: write.kind, columns: [])
        #expect(oracle.see(.committed(device: "device-\(write.device)", [operation])).isEmpty)
      }
      history.append(
        HistoryEntry(
          sequence: place, id: id, device: Self.devices[write.device], key: key, kind: write.kind,
          time: .zero))
    }
    for event in events { #expect(oracle.see(event).isEmpty) }
    let server = ServerEvidence(
      head: SequenceNumber(history.count), epoch: Epoch(1), history: history, records: [:],
      buffered: 0)
    return oracle.judge(FinalEvidence(server: server, replicas: [:])).map(\.detail)
  }

  @Test("a device logs the deletes of its own chips")
  func once() {
    #expect(found(Self.once) == [])
  }

  @Test("a device that repeats the triggers of another one is named")
  func repeated() {
    let writes = Self.once + [Self.again]
    #expect(found(writes) == ["device-1 logged the delete of chip r, which device-0 made"])
    #expect(found(writes, [.serverWentBack(from: [], to: [])]) == [])
  }

  @Test("a world's triggers fire once, on devices that pull each other's changes")
  func world() throws {
    let world = try DirectWorld(seed: 3, devices: 2)
    for device in world.devices {
      try device.file.write { database in
        for statement in Workload.stackSchema { try database.execute(statement) }
      }
      try device.file.track(Workload.stacked)
    }
    for round in 0..<24 {
      for (place, device) in world.devices.enumerated() {
        let planned = PlannedAction(
          ordinal: round, at: 0, device: place, action: .stack, seed: UInt64(round * 2 + place))
        _ = try device.perform(planned, sizes: Workload.Sizes())
      }
      for device in world.devices + world.devices { try world.sync(device) }
    }
    for device in world.devices {
      let query = """
        SELECT count(*) FROM stacks WHERE chips <> (SELECT count(*) FROM chips WHERE maker = stacks.id)
        """
      #expect(try device.reader.first(query) { $0.int64(0) } == 0)
      #expect(
        try device.reader.first("SELECT count(*), max(deletes) FROM trail") {
          $0.int64(0) > 5 && $0.int64(1) == 1
        } == true)
    }
  }
}
