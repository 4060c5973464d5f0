import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracles on the reads of one reader over time.
@Suite(.hangLimit)
struct ReaderOracleTests {
  private var maker = HistoryMaker()

  private func evidence(_ beats: [String: Int64], _ ledger: [String] = []) -> ReplicaEvidence {
    var beat = TableRows(name: "beats", columns: ["n"])
    for (name, number) in beats.sorted(by: { $0.key < $1.key }) {
      beat.append(Name(name), [.integer(number)])
    }
    var rows = TableRows(name: "ledger", columns: ["txn", "size", "place"])
    for record in ledger.sorted() { rows.append(Name(record), ["x", 1, 1]) }
    return maker.replica(1, [beat, rows])
  }

  private func beat(_ device: String, _ number: Int64) -> RunEvent {
    var maker = maker
    return .committed(
      device: device,
      [
        maker.operation(
          number == 1 ? .insert : .update, device, at: UInt64(number), ["n": .integer(number)],
          table: "beats")
      ])
  }

  private func read(_ beats: [String: Int64], _ ledger: [String] = []) -> RunEvent {
    .read(device: "one", evidence(beats, ledger))
  }

  // MARK: Monotonic reads

  private func backward(_ events: [RunEvent]) -> [String] {
    MonotonicReads.found(MonotonicReads(), events, maker.final())
  }

  @Test("reads that move forward pass; the oracle finds a beat that counts down")
  func beats() {
    #expect(backward([read([:]), read(["two": 1]), read(["two": 4, "six": 1])]) == [])
    #expect(
      backward([read(["two": 4]), read(["two": 3])]) == ["one shows beat 3 of two after 4"])
    #expect(backward([read(["two": 4, "six": 1]), read(["two": 4])]).count == 1)
    // Another reader may be behind.
    #expect(
      backward([read(["two": 4]), .read(device: "six", evidence(["two": 3]))]) == [])
  }

  @Test("the oracle finds a ledger row that disappears")
  func rows() {
    #expect(backward([read([:], ["a", "c"]), read([:], ["a", "b", "c"])]) == [])
    #expect(
      backward([read([:], ["a", "b", "c"]), read([:], ["a", "c", "d"])])
        == ["one does not show the ledger row b any more"])
    #expect(backward([read([:], ["a", "b"]), read([:], ["a"])]).count == 1)
  }

  @Test("after a power loss, a reader continues from the surviving rows, and no lower")
  func lostPower() {
    let before = [beat("two", 1), read(["two": 5], ["a", "b"])]
    let loss = RunEvent.lostPower(device: "one", survivors: evidence(["two": 3], ["a"]))
    #expect(
      backward(before + [loss, read(["two": 3], ["a"]), read(["two": 5], ["a", "b"])]) == [])
    #expect(backward(before + [loss, read(["two": 2], ["a"])]).count == 1)
    #expect(backward(before + [loss, read(["two": 3], [])]).count == 1)
  }

  @Test("beats that a device repeats are ignored until it has passed them all")
  func repeatedBeats() {
    let events: [RunEvent] = [
      beat("two", 6), read(["two": 6]),
      .lostPower(device: "two", survivors: evidence(["two": 4])), beat("two", 5),
    ]
    #expect(backward(events + [read(["two": 6]), read(["two": 5])]) == [])
    #expect(backward(events + [read(["two": 3])]).count == 1)
    #expect(backward(events + [read(["two": 20]), read(["two": 19])]).count == 1)
  }

  @Test("a beat from a copied file with a clock far ahead may arrive and be clamped late")
  func clampedLate() {
    let copied = RunEvent.copied(device: "three", from: "two", evidence(["two": 5]))
    let events = [copied, read(["two": 5]), read(["two": 4])]
    var maker = HistoryMaker()
    maker.add(.insert, "two", by: 2, at: 9, ["n": 5], table: "beats")
    func found(_ clampedTo: UInt64) -> Int {
      var final = maker.final()
      final.server.history[0].time = HistoryMaker.time(clampedTo)
      return MonotonicReads.found(MonotonicReads(), events, final).count
    }
    #expect(found(9) == 1)
    #expect(found(8) == 0)
    #expect(backward(Array(events.dropFirst())).count == 1)
  }

  // MARK: Read your writes

  private func missed(_ events: [RunEvent]) -> [String] {
    ReadYourWrites.found(ReadYourWrites(), events, maker.final())
  }

  private func post(_ records: String...) -> RunEvent {
    var maker = maker
    return .committed(
      device: "one",
      records.map { maker.operation(.insert, $0, at: 1, ["txn": "x"], table: "ledger") })
  }

  @Test("a user who sees all own beats and rows passes")
  func ownWrites() {
    #expect(
      missed([beat("one", 1), read(["one": 1]), beat("one", 2), post("a"), read(["one": 2], ["a"])])
        == [])
  }

  @Test("the oracle finds a missing own beat or row")
  func missedWrites() {
    #expect(missed([beat("one", 1), read([:])]) == ["one shows its own beat as none after 1"])
    #expect(missed([beat("one", 2), read(["one": 1])]).count == 1)
    #expect(
      missed([post("a", "b"), read([:], ["a", "c"])])
        == ["one does not show the ledger row b that it has posted"])
  }

  @Test("after a power loss, the user continues from the surviving rows")
  func survivingWrites() {
    let loss = RunEvent.lostPower(device: "one", survivors: evidence(["one": 2]))
    let events = [beat("one", 3), post("a"), loss]
    #expect(missed(events + [read(["one": 2])]) == [])
    #expect(missed(events + [read(["one": 1])]).count == 1)
    #expect(missed(events + [beat("one", 3), read(["one": 2])]).count == 1)
  }

  @Test("a beat that both file and server lost may be missing, but not the beat before it")
  func lostTwice() {
    func loss(_ beat: Int64) -> RunEvent {
      .lostPower(device: "one", survivors: evidence(["one": beat]))
    }
    func events(_ middle: [RunEvent], shown: Int64) -> [RunEvent] {
      [beat("one", 3), beat("one", 4), loss(3)] + middle + [loss(4), read(["one": shown])]
    }
    let lost = RunEvent.serverWentBack(from: [], to: [])
    #expect(missed(events([lost], shown: 3)) == [])
    #expect(missed(events([lost], shown: 2)).count == 1)
    #expect(missed(events([], shown: 3)).count == 1)
  }

  @Test("beats that were lost with the file may return from a copy that has sent them")
  func lostBeats() {
    let loss = RunEvent.lostPower(device: "one", survivors: evidence(["one": 1]))
    let events = [beat("one", 2), beat("one", 3), loss, beat("one", 2), beat("one", 3)]
    #expect(missed(events + [read(["one": 2])]) == [])
    #expect(missed(events + [read(["one": 1])]).count == 1)
  }

  @Test("a copy continues from the rows that it was copied with")
  func copies() {
    let events: [RunEvent] = [
      beat("two", 7), .copied(device: "one", from: "two", evidence(["two": 6], ["a"])),
    ]
    #expect(missed(events + [read(["two": 6], ["a"])]) == [])
    #expect(backward(events + [read(["two": 6], ["a"])]) == [])
    #expect(backward(events + [read(["two": 5], ["a"])]).count == 1)
  }
}
