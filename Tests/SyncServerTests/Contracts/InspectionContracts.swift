import FerryProtocol
import FerrySyncServer

extension SpaceUnderTest {
  /// Returns all devices, read in pages.
  fileprivate func allDevices(by limit: Int) async throws -> [DeviceOverview] {
    var devices: [DeviceOverview] = []
    while true {
      let page = try await DeviceInspection(store).devices(
        in: space.id, after: devices.last?.device, limit: limit)
      try require(page.count <= limit, "a page has more than \(limit) devices")
      devices += page
      if page.count < limit { return devices }
    }
  }

  /// Returns all operations on a record, looked for in stretches.
  fileprivate func wholeHistory(
    of key: RecordKey, by length: Int64, limit: Int = 100
  ) async throws -> [HistoryEntry] {
    var entries: [HistoryEntry] = []
    var top = try await head()
    while top > 0 {
      let bottom = max(1, top - length + 1)
      let part = try await RecordInspection(store).history(
        of: key, in: space.id, within: bottom...top, limit: limit, characters: 1 << 20)
      entries += part.entries
      top = (part.isCut ? part.entries.last?.sequence ?? bottom : bottom) - 1
    }
    return entries
  }

  fileprivate func allConflicts(by limit: Int) async throws -> [ListedConflict] {
    var found: [ListedConflict] = []
    while true {
      let page = try await RecordInspection(store).conflicts(
        in: space.id, before: found.last?.place, limit: limit, characters: 1 << 20)
      if page.isEmpty { return found }
      found += page
    }
  }

  /// Makes two devices write one column without knowledge of each other.
  fileprivate func makeConflict(_ first: inout Author, _ second: inout Author) async throws {
    try await send(first.packet([first.insert("a", ["title": "old"])]))
    first.wall += 10
    second.wall += 20
    try await send(second.packet([second.update("a", ["title": "winner"])]))
    try await send(first.packet([first.update("a", ["title": "loser"])]))
  }
}

extension Rejection {
  fileprivate static func sample(
    _ subject: String, at moment: Int64, _ device: DeviceID? = nil
  ) -> Rejection {
    Rejection(
      subject: subject, firstAt: moment, lastAt: moment, code: "schema_violation",
      detail: "column n has the type integer", principal: "anonymous", device: device,
      key: .task("a"))
  }
}

extension StoreContract {
  static let inspection = [
    StoreContract("an overview counts records, bytes and the operations of the last hour") {
      under in
      let store = try await under.open(.standard)
      for name in ["a", "b", "c"] { _ = try await store.createSpace(.name(name)) }
      let space = SpaceUnderTest(store: store, space: try await store.createSpace(.test))
      var author = Author(1)
      try await space.send(author.packet(inserting: ["x", "y"]))
      let now = SpaceUnderTest.now
      var observed = Observations()
      observed.activity = [
        (space.space.id, ActivityCount(at: now - 7_200_000, operations: 50)),
        (space.space.id, ActivityCount(at: now - 60_000, operations: 2, conflicts: 1)),
      ]
      try await store.store(observed, now: now)
      let first = try await SpaceInspection(store).overviews(after: "", limit: 2, now: now)
      try require(first.map(\.space.name.value), is: ["a", "b"], "the first page")
      let rest = try await SpaceInspection(store).overviews(after: "b", limit: 5, now: now)
      try require(rest.map(\.space.name.value), is: ["c", "contract"], "the second page")
      let one = try unwrap(
        try await SpaceInspection(store).overview(of: .test, now: now), "no overview")
      try require(one, is: rest[1], "the overview of one space")
      try require([one.usage.records, one.usage.devices], is: [2, 1], "records and devices")
      try require(one.usage.bytes > 0 && one.space.head == 2, "its bytes and its head")
      try require(one.lastHour, is: 2, "operations of the last hour")
      try require(
        try await SpaceInspection(store).overview(of: .name("none"), now: now) == nil,
        "a missing space")
      await store.close()
    },
    StoreContract("devices that write and devices that read are listed once each, in pages") {
      under in
      try await under.withSpace { space in
        var authors = (1...5).map { Author(UInt64($0)) }
        for index in authors.indices {
          try await space.send(authors[index].packet(inserting: ["r\(index)"]))
        }
        // A packet whose predecessor is missing waits.
        _ = authors[1].packet(inserting: ["lost"])
        try await space.send(authors[1].packet(inserting: ["waits"]), byteCount: 70)
        let reader = Author(9)
        var observed = Observations()
        for (device, reached) in [(authors[0].device, Int64(3)), (reader.device, 1)] {
          observed.sightings.append(
            DeviceSighting(
              space: space.space.id, device: device, principal: .anonymous,
              at: SpaceUnderTest.now + 5, reached: reached, client: "ferry/1 <b>"))
        }
        try await space.store.store(observed, now: SpaceUnderTest.now)
        let all = try await space.allDevices(by: 100)
        for limit in [1, 2, 3] {
          try require(try await space.allDevices(by: limit), is: all, "pages of \(limit)")
        }
        let devices = (authors.map(\.device) + [reader.device]).sorted()
        try require(all.map(\.device), is: devices, "the devices")
        let writer = try unwrap(all.first { $0.device == authors[0].device }, "no writer")
        try require([writer.operations, writer.reached], is: [1, 3], "the writer")
        try require(writer.client, is: "ferry/1 <b>", "its client")
        try require(writer.seenAt, is: SpaceUnderTest.now + 5, "when it was seen")
        let waiting = try unwrap(all.first { $0.device == authors[1].device }, "no waiting device")
        try require([waiting.bufferedPackets, waiting.bufferedBytes], is: [1, 70], "its buffer")
        try require(all.last?.operations == nil, "a reader has applied operations")
      }
    },
    StoreContract("an older sighting of a device does not replace a newer one") { under in
      try await under.withSpace { space in
        func see(_ at: Int64, _ reached: SequenceNumber?) async throws {
          var observed = Observations()
          observed.sightings = [
            DeviceSighting(
              space: space.space.id, device: Author(1).device, principal: .anonymous, at: at,
              reached: reached, client: nil)
          ]
          try await space.store.store(observed, now: at)
        }
        try await see(1_000, 7)
        try await see(900, 5)
        try await see(1_100, nil)
        let device = try unwrap(try await space.allDevices(by: 10).first, "no device")
        try require(device.reached, is: 7, "the place that it reached")
        try require(device.seenAt, is: 1_100, "when it was seen")
      }
    },
    StoreContract("a refusal that comes again is counted, and the newest are listed first") {
      under in
      try await under.withSpace { space in
        for (round, subjects) in [["a", "b"], ["c"], ["a"]].enumerated() {
          var observed = Observations()
          observed.rejections = subjects.map {
            (space.space.id, .sample($0, at: 1_000 + Int64(round), Author(1).device))
          }
          try await space.store.store(observed, now: 2_000)
        }
        let all = try await DeviceInspection(space.store).rejections(
          in: space.space.id, before: nil, limit: 10)
        try require(all.map(\.subject), is: ["a", "c", "b"], "the order")
        try require(all.map(\.times), is: [2, 1, 1], "the counts")
        try require([all[0].firstAt, all[0].lastAt], is: [1_000, 1_002], "first and last")
        try require(all[0].key, is: .task("a"), "the record")
        let place = RejectionPlace(lastAt: all[0].lastAt, subject: all[0].subject)
        let rest = try await DeviceInspection(space.store).rejections(
          in: space.space.id, before: place, limit: 10)
        try require(rest, is: Array(all.dropFirst()), "the list after the first")
      }
    },
    StoreContract("only the newest 1,000 refusals of a space are kept") { under in
      try await under.withSpace { space in
        var observed = Observations()
        observed.rejections = (0..<1_200).map { number in
          let subject = String(1_000_000 + number)
          return (space.space.id, .sample(subject, at: Int64(10_000 + number)))
        }
        try await space.store.store(observed, now: 20_000)
        let last = try await DeviceInspection(space.store).rejections(
          in: space.space.id, before: RejectionPlace(lastAt: 10_202, subject: "~"), limit: 10)
        try require(last.map(\.lastAt), is: [10_202, 10_201, 10_200], "the oldest")
      }
    },
    StoreContract("activity adds up by minute and hour, and old minutes go first") { under in
      try await under.withSpace { space in
        let hour = SpaceUnderTest.now - SpaceUnderTest.now % 3_600_000
        for moment in [hour, hour + 59_999, hour + 60_000] {
          var observed = Observations()
          observed.activity = [
            (space.space.id, ActivityCount(at: moment, operations: 3, conflicts: 1, rejected: 2))
          ]
          try await space.store.store(observed, now: moment)
        }
        let minutes = try await SpaceInspection(space.store).activity(
          in: space.space.id, by: .minute, since: 0)
        try require(minutes.map(\.at), is: [hour, hour + 60_000], "minutes")
        try require(minutes.map(\.operations), is: [6, 3], "operations of minutes")
        let hours = try await SpaceInspection(space.store).activity(
          in: space.space.id, by: .hour, since: 0)
        try require(hours.map(\.conflicts), is: [3], "conflicts of hours")
        try require(hours.map(\.rejected), is: [6], "refusals of hours")
        var observed = Observations()
        let later = hour + 2 * 86_400_000
        observed.activity = [(space.space.id, ActivityCount(at: later, operations: 1))]
        try await space.store.store(observed, now: later)
        let kept = try await SpaceInspection(space.store).activity(
          in: space.space.id, by: .minute, since: 0)
        try require(kept.map(\.at), is: [later], "minutes two days later")
        let all = try await SpaceInspection(space.store).activity(
          in: space.space.id, by: .hour, since: 0)
        try require(all.map(\.at), is: [hour, later], "hours two days later")
      }
    },
    StoreContract("tables and records are listed in pages, with values of any kind") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let hostile = "<img src=x onerror=alert(1)>"
        let records = ["1", "2", "é", "z", hostile, "\u{1F469}\u{200D}\u{1F4BB}"]
        for table in ["tasks", "notes", hostile] {
          try await space.send(
            author.packet(
              records.map { record in
                author.operation(
                  .insert, record, [Column("n", .integer(.max)), Column("title", .text(record))],
                  table: table)
              }))
        }
        try await space.send(author.packet([author.delete("2")]))
        let tables = try await SpaceInspection(space.store).tableNames(
          in: space.space.id, after: nil, limit: 10)
        try require(tables, is: [Name(hostile), "notes", "tasks"], "the tables")
        let later = try await SpaceInspection(space.store).tableNames(
          in: space.space.id, after: Name(hostile), limit: 1)
        try require(later, is: ["notes"], "the table after the first")
        var found: [ListedRecord] = []
        while true {
          let page = try await RecordInspection(space.store).listedRecords(
            of: "tasks", in: space.space.id, after: found.last?.record, limit: 2,
            characters: 1 << 20)
          if page.isEmpty { break }
          found += page
        }
        try require(
          found.map(\.record), is: records.map { Name($0) }.sorted(), "the records in pages")
        try require(
          found.filter { !$0.state.isAlive }.map(\.record), is: ["2"], "the deleted record")
        let one = try await RecordInspection(space.store).listedRecord(
          RecordKey(table: "tasks", record: hostile), in: space.space.id)
        try require(one?.state.columns.last?.value, is: .text(hostile), "its value")
        let short = try await RecordInspection(space.store).listedRecords(
          of: "tasks", in: space.space.id, after: nil, limit: 10, characters: 1)
        try require(short.count, is: 1, "records of a list with room for nothing")
      }
    },
    StoreContract("a record's history names every operation on it, with the values that lost") {
      under in
      try await under.withSpace { space in
        var (first, second) = (Author(1), Author(2))
        try await space.makeConflict(&first, &second)
        try await space.send(second.packet(inserting: ["b", "c", "d"]))
        try await space.send(
          second.packet([try second.batch(where: "title = 'winner'", set: ["done": 1])]))
        let whole = try await space.wholeHistory(of: .task("a"), by: 1_000)
        try require(
          whole.map(\.kind), is: [.update, .update, .update, .insert], "kinds, the last first")
        try require(
          whole.map(\.device),
          is: [second.device, first.device, second.device, first.device], "authors")
        let lost = String(decoding: whole[1].outcome ?? [], as: UTF8.self)
        try require(lost.contains("loser"), "the lost value is not in \(lost)")
        try require(whole[0].id.value.version, is: 8, "the version of a batch's effect")
        for length in [Int64(1), 2, 3] {
          try require(
            try await space.wholeHistory(of: .task("a"), by: length), is: whole,
            "stretches of \(length)")
        }
        try require(
          try await space.wholeHistory(of: .task("a"), by: 1_000, limit: 1), is: whole,
          "parts of one operation")
      }
    },
    StoreContract("a history has the values of an insert after later changes of its record") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        func expect(_ data: [String?], _ step: String) async throws {
          for length in [Int64(1), 1_000] {
            let entries = try await space.wholeHistory(of: .task("a"), by: length)
            try require(
              entries.map { $0.data.map { String(decoding: $0, as: UTF8.self) } }, is: data, step)
          }
        }
        let (first, second) = (#"{"n":1,"title":"one"}"#, #"{"title":"two"}"#)
        try await space.send(author.packet([author.insert("a", ["title": "one", "n": 1])]))
        try await space.send(author.packet(inserting: ["b", "c"]))
        try await expect([first], "an insert alone")
        try await space.send(author.packet([author.update("a", ["title": "two"])]))
        try await expect([second, first], "an update")
        try await space.send(
          author.packet([author.delete("a"), author.insert("a", ["title": "three"])]))
        let third = #"{"title":"three"}"#
        try await expect([third, nil, second, first], "a delete and an insert")
        // Of one packet, to another record.
        try await space.send(
          author.packet([
            author.insert("d", ["title": "one"]), author.delete("d"),
            author.insert("e", ["title": "kept"]),
          ]))
        let deleted = try await space.wholeHistory(of: .task("d"), by: 1_000)
        try require(
          deleted.map { $0.data.map { String(decoding: $0, as: UTF8.self) } },
          is: [nil, #"{"title":"one"}"#], "an insert and a delete at once")
        let evidence = try await space.wholeHistory(of: .task("e"), by: 1_000)
        try require(
          evidence.first?.data.map { String(decoding: $0, as: UTF8.self) },
          is: #"{"title":"kept"}"#, "an insert behind others")
      }
    },
    StoreContract("conflicts are listed once each, the last first, with the devices that lost") {
      under in
      try await under.withSpace { space in
        var (first, second) = (Author(1), Author(2))
        try await space.makeConflict(&first, &second)
        first.wall += 100
        try await space.send(first.packet([first.update("a", ["title": "third"])]))
        let all = try await space.allConflicts(by: 100)
        try require(all.count, is: 3, "conflicts")
        try require(
          all.map(\.device), is: [second.device, first.device, first.device], "the losers")
        try require(
          all.map(\.notice.conflicts.first?.lost),
          is: [.text("winner"), .text("loser"), .text("old")],
          "the values that lost")
        try require(try await space.allConflicts(by: 1), is: all, "pages of one")
        let names = try await space.store.identities(
          of: [second.device, first.device, Author(7).device], in: space.space.id)
        try require(names.map(\.principal), is: ["anonymous", "anonymous"], "known devices")
      }
    },
  ]
}
