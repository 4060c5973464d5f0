import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

@Suite("A hostile or broken server", .hangLimit)
struct HostileServerTests {
  private static func text(_ body: [UInt8], replacing old: String, by new: String) -> [UInt8] {
    Array(String(decoding: body, as: UTF8.self).replacing(old, with: new).utf8)
  }

  @Test(
    "extreme times and counts of a server cause an error and lose no operation",
    arguments: [
      (#""time":0"#, #""time":-9223372036854775808"#),
      (#""time":0"#, #""time":9223372036854775807"#),
      (#""count":0"#, #""count":9223372036854775807"#),
      (#""count":0"#, #""count":-9223372036854775808"#),
      (#""head":"0""#, #""head":"9223372036854775807""#),
    ])
  func extremes(old: String, new: String) async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/changes") else { return nil }
      return ScriptedServer.json(
        Self.text(PageMaker().page([], head: 0).body, replacing: old, by: new))
    }
    let replica = try await server.replica(in: directory)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    await #expect(throws: ReplicaError.self) { try await replica.sync() }
    #expect(try await replica.status().pending == 1)
  }

  @Test("a device stops requesting pages that do not advance the list")
  func standingCursor() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, number in
      guard request.url.contains("/changes") else { return nil }
      let change = PageMaker().change(5, "notes", "r\(number)", [Column("body", "x")])
      return ScriptedServer.json(PageMaker().page([change], head: 9, more: true).body)
    }
    let replica = try await server.replica(in: directory)
    await #expect {
      try await replica.pull()
    } throws: {
      guard case .unexpectedAnswer(_, let found) = $0 as? ReplicaError else { return false }
      return found.contains("without progress")
    }
    #expect(server.requests.count { $0.url.contains("/changes") } == 2)
  }

  @Test("a list of pages that always advance ends a sync, and the next sync continues")
  func endlessList() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, number in
      guard request.url.contains("/changes") else { return nil }
      let place = SequenceNumber(number)
      let change = PageMaker().change(place, "notes", "r", [Column("body", "x")])
      return ScriptedServer.json(
        PageMaker().page([change], head: Limits.sequenceMax, more: true).body)
    }
    let replica = try await server.replica(in: directory)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    for round in 1...2 {
      await #expect {
        try await replica.sync()
      } throws: {
        if case .unfinished = $0 as? ReplicaError { true } else { false }
      }
      let pages = server.requests.filter { $0.url.contains("/changes") }
      #expect(pages.count <= round * (ListBound.smallPagesMax + 2))
      // The second sync does not begin from the start.
      let asked = try #require(pages.last?.url.split(separator: "cursor=").last)
      let cursor = try #require(Cursor(String(asked.prefix { $0 != "&" })))
      #expect(cursor.received >= SequenceNumber(round * ListBound.smallPagesMax))
    }
    #expect(try await replica.status().pending == 1)
  }

  @Test("sums of digests that always move on end a comparison")
  func endlessSums() async throws {
    let directory = try TemporaryDirectory()
    let head: SequenceNumber = 1 << 40
    let server = ScriptedServer { request, number in
      if request.url.contains("/changes") {
        return ScriptedServer.json(PageMaker().page([], head: head).body)
      }
      guard request.url.contains("/digests") else { return nil }
      let answer = DigestAnswer(
        epoch: PageMaker().epoch, head: head, folded: SequenceNumber(number), content: .behind)
      return ScriptedServer.json(answer.encoded())
    }
    let replica = try await server.replica(in: directory)
    await #expect {
      try await replica.verify()
    } throws: {
      if case .unfinished = $0 as? ReplicaError { true } else { false }
    }
    #expect(server.requests.count { $0.url.contains("/digests") } <= 10_001)
  }

  @Test("a device stops requesting records that the server never returns")
  func otherRecords() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/records") else { return nil }
      return ScriptedServer.json(PageMaker().page([PageMaker().deletion(0, "notes", "other")]).body)
    }
    let replica = try await server.replica(in: directory)
    try await replica.pull()
    try await replica.thread.run { try $0.refreshes.add([RecordKey(table: "notes", record: "a")]) }
    await #expect(throws: ReplicaError.self) { try await replica.sync() }
    #expect(server.requests.count { $0.url.contains("/records") } == 1)
  }

  @Test("names that break a rule are not stored, and the sync succeeds")
  func names() async throws {
    let directory = try TemporaryDirectory()
    let other = DeviceID(UniqueID(high: 7, low: 7))
    let stranger = DeviceID(UniqueID(high: 7, low: 8))
    let answers = [
      #"{"devices":[{"device":"\#(other)","name":"a\u001b[31m"}]}"#,
      #"{"devices":[{"device":"\#(other)","name":"a\u202eb"}]}"#,
      #"{"devices":[{"device":"\#(other)","name":"\#(String(repeating: "a", count: 65))"}]}"#,
      #"{"devices":[{"device":"\#(other)","name":"a"},{"device":"\#(other)","name":"b"}]}"#,
      #"{"devices":7}"#, "{}",
      #"{"devices":[{"device":"\#(stranger)","name":"x"},{"device":"\#(other)","name":"Ada"}]}"#,
    ]
    let asked = Mutex(0)
    let server = ScriptedServer { request, _ in
      if request.url.contains("/devices") {
        return ScriptedServer.json(Array(answers[asked.withLock { ($0, $0 += 1).0 }].utf8))
      }
      guard request.url.contains("/changes") else { return nil }
      let body = PageMaker().page([], head: 0).body
      return ScriptedServer.json(
        Self.text(body, replacing: #""count":0"#, by: #""count":0,"nameChanges":"4""#))
    }
    let replica = try await server.replica(in: directory)
    let stamp = Stamp(time: .zero, device: other)
    let conflict = Conflict(column: "body", lost: "x", loser: stamp, winner: stamp)
    try await replica.thread.run { file in
      try file.conflictLog.store(
        conflict, of: OperationID(other.value), on: RecordKey(table: "notes", record: "a"))
    }
    for number in answers.indices {
      #expect(try await replica.deviceNames()[other] == nil, "answer \(number)")
      try await replica.sync()
    }
    #expect(try await replica.deviceNames()[other] == "Ada")
    #expect(try await replica.deviceNames()[stranger] == nil)
    // Nothing has changed since then, so no request is necessary.
    try await replica.sync()
    #expect(asked.withLock { $0 } == answers.count)
  }

  @Test("a page with a name that breaks a rule is refused")
  func nameInPage() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/changes") else { return nil }
      let body = PageMaker().page([], head: 0).body
      return ScriptedServer.json(
        Self.text(body, replacing: #""count":0"#, by: #""count":0,"deviceName":"a\nb""#))
    }
    let replica = try await server.replica(in: directory)
    await #expect(throws: ReplicaError.self) { try await replica.sync() }
  }

  @Test("a device does not send its name again and again to a server that refuses it")
  func refusedName() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/devices") else { return nil }
      return ScriptedServer.json(Problem(.forbidden, "no").encoded(), status: 403)
    }
    let replica = try await server.replica(in: directory)
    try await replica.setDeviceName("Ada")
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    #expect(try await replica.sync().pushed == 1)
    #expect(server.requests.count { $0.url.contains("/devices") } == 1)
    // A watch does not begin a sync for it.
    #expect(try await !replica.thread.run { try $0.nameSteps.hasUnsent() })
    try await replica.setDeviceName("Bob")
    #expect(try await replica.thread.run { try $0.nameSteps.hasUnsent() })
  }

  @Test("a server that confirms another packet than the sent one has confirmed nothing")
  func otherReceipt() async throws {
    let directory = try TemporaryDirectory()
    let tail = OperationID(UniqueID(high: 1, low: 1))
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/packets") else { return nil }
      let receipt = PacketReceipt(tail: tail, status: .applied, sequences: 1...1, outcomes: [])
      return ScriptedServer.json(
        PacketAnswer(receipt: receipt, epoch: PageMaker().epoch, head: 1, serverTime: 0).encoded())
    }
    let replica = try await server.replica(in: directory)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    await #expect(throws: ReplicaError.self) { try await replica.sync() }
    #expect(try await replica.status().pending == 1)
  }

  @Test("a receipt with another number of results confirms nothing", arguments: [0, 1, 3])
  func miscounted(count: Int) async throws {
    let directory = try TemporaryDirectory()
    let isLying = Mutex(true)
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/packets"), isLying.withLock({ $0 }),
        let packet = try? Packet(decoding: request.body ?? [], limits: .standard),
        let tail = packet.operations.last?.id
      else { return nil }
      let receipt = PacketReceipt(
        tail: tail, status: .applied, sequences: 1...2,
        outcomes: Array(repeating: .applied, count: count))
      return ScriptedServer.json(
        PacketAnswer(receipt: receipt, epoch: PageMaker().epoch, head: 2, serverTime: 0).encoded())
    }
    let replica = try await server.replica(in: directory)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x'), ('b', 'y')") }
    await #expect(throws: ReplicaError.self) { try await replica.sync() }
    #expect(try await replica.status().pending == 2)
    isLying.withLock { $0 = false }
    #expect(try await replica.sync().pushed == 2)
    #expect(server.operations.count == 2)
  }

  @Test("a confirmation that the next page contradicts is undone, and the operation is sent again")
  func contradicted() async throws {
    let directory = try TemporaryDirectory()
    let isLying = Mutex(true)
    let server = ScriptedServer { request, _ in
      guard isLying.withLock({ $0 }) else { return nil }
      if request.url.contains("/changes") {
        return ScriptedServer.json(PageMaker().page([], head: 1).body)
      }
      guard request.url.contains("/packets"),
        let packet = try? Packet(decoding: request.body ?? [], limits: .standard),
        let tail = packet.operations.last?.id
      else { return nil }
      isLying.withLock { $0 = false }
      let receipt = PacketReceipt(
        tail: tail, status: .applied, sequences: 2...2, outcomes: [.applied],
        historyHashBefore: PageMaker.historyHash(at: 1), historyHash: PageMaker.historyHash(at: 2),
        timeline: PageMaker.timeline(at: 2))
      return ScriptedServer.json(
        PacketAnswer(receipt: receipt, epoch: PageMaker().epoch, head: 2, serverTime: 0).encoded())
    }
    let replica = try await server.replica(in: directory)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    for _ in 0..<3 { try await replica.sync() }
    #expect(server.operations.map(\.key.record) == ["a"])
    #expect(try await replica.status().pending == 0)
  }

  @Test(
    "a page of another shape is refused, also if its head has nothing new",
    arguments: [
      (#""changes":[]"#, #""changes":{}"#), (#""changes":[]"#, #""changes":null"#),
      (#""changes":[]"#, #""others":[]"#), (#""changes":[]"#, #""changes":[7]"#),
      (#","changes":[]}"#, ""), (#""more":false"#, #""more":0"#),
    ])
  func shapes(old: String, new: String) async throws {
    let directory = try TemporaryDirectory()
    let isLying = Mutex(false)
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/changes"), isLying.withLock({ $0 }) else { return nil }
      return ScriptedServer.json(
        Self.text(PageMaker().page([], head: 0).body, replacing: old, by: new))
    }
    let replica = try await server.replica(in: directory)
    try await replica.sync()
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    isLying.withLock { $0 = true }
    await #expect(throws: (any Error).self) { try await replica.sync() }
    #expect(try await replica.status().pending == 1)
    isLying.withLock { $0 = false }
    #expect(try await replica.sync().pushed == 1)
  }

  @Test("a device sends requests only to the origin that the user named")
  func redirects() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer()
    let replica = try await server.replica(in: directory)
    try await replica.sync()
    #expect(server.requests.allSatisfy { $0.redirects == .withinOrigin })
  }

  @Test(
    "permanent failures are distinguished from a missing network",
    arguments: [
      (TransportError.Kind.secureConnectionFailed, ReplicaError.untrusted("why")),
      (.responseTooLarge, .tooLarge("why")), (.redirectRefused, .redirected("why")),
      (.badAddress, .badAddress("why")), (.interrupted, .offline("why")),
    ])
  func kinds(kind: TransportError.Kind, expected: ReplicaError) {
    #expect(ReplicaError(TransportError(kind, "why")) == expected)
    #expect(expected.isTransient == (kind == .interrupted))
  }
}
