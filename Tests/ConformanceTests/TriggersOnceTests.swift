import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracle of the writes by users' triggers.
@Suite(.hangLimit)
struct TriggersOnceTests {
  private typealias Write = (table: Name, kind: OperationKind)
  private static let insert: [Write] = [("chips", .insert), ("stacks", .update)]
  private static let delete: [Write] = [
    ("chips", .delete), ("stacks", .update), ("trail", .insert),
  ]
  private static let devices = (1...2).map { DeviceID(UniqueID(high: $0, low: 1)) }

  /// Returns the findings of a run with these writes, by device.
  private func found(_ writes: [[Write]], _ events: [RunEvent] = []) -> [String] {
    var oracle = TriggersOnce()
    for event in events { #expect(oracle.see(event).isEmpty) }
    var history: [HistoryEntry] = []
    for (device, writes) in zip(Self.devices, writes) {
      for (table, kind) in writes {
        let place = SequenceNumber(history.count + 1)
        history.append(
          HistoryEntry(
            sequence: place,
            id: OperationID(UniqueID(high: 0x0190_0000_0000_7000, low: UInt64(place))),
            device: device, key: RecordKey(table: table, record: "r"), kind: kind, time: .zero))
      }
    }
    let server = ServerEvidence(
      head: SequenceNumber(history.count), epoch: Epoch(1), history: history, records: [:],
      buffered: 0)
    return oracle.judge(FinalEvidence(server: server, replicas: [:])).map(\.detail)
  }

  @Test("a device sends the writes of its triggers with its own writes")
  func once() {
    #expect(found([Self.insert + Self.insert + Self.delete, Self.insert]) == [])
  }

  @Test("a device that repeats the triggers of another one is named")
  func repeated() {
    let writes = [Self.insert + Self.delete, Array(Self.delete.dropFirst())]
    #expect(found(writes).count == 2)
    #expect(found(writes, [.serverWentBack(from: [], to: [])]) == [])
  }

  @Test("a device whose work ends before the writes of its triggers is not named")
  func missing() {
    #expect(found([Array(Self.insert.prefix(1))]) == [])
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
    var oracle = TriggersOnce()
    let found = oracle.judge(try world.final())
    #expect(found.isEmpty, "\(found)")
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
