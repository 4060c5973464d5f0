import Ferry
import FerryTestSupport
import Foundation
import Testing

/// One-way tables between real processes (SPEC.md §17): a device that only sends messages, and one
/// that sees the server's state of them.
@Suite(.hangLimit)
struct OneWayTests {
  private static let schema = """
    CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER);
    CREATE TABLE messages(id TEXT PRIMARY KEY, body TEXT)
    """

  /// Makes a pair whose sender reaches the server through the proxy; the notes are two-way.
  private func makePair(
    _ kind: StoreKind = .embedded, _ options: String...
  ) async throws -> Pair {
    let pair = try await Pair.make(kind, schema: Self.schema)
    for command in [["track", "messages", "--upload-only"] + options] {
      let finished = try await ChildProcess.run(
        try Executables.ferry(), ["--replica", pair.one.path] + command)
      #expect(finished.status == .exited(0), "\(finished.error)")
    }
    try await pair.two.open().track("messages")
    return pair
  }

  /// Returns `RECORD dirty deleted failed`, as `ferry uploads` reports it.
  private func states(_ device: Device) async throws -> [String] {
    try JSONLine.all(try await device.ferry("--json", "uploads", "messages").output).map { line in
      let marks = ["dirty", "deleted", "failed"].filter { line.members[$0] as? Bool == true }
      return ([line.text("record") ?? "?"] + marks).joined(separator: " ")
    }
  }

  private func send(_ records: String..., from device: Device) async throws {
    for record in records {
      try await device.write("INSERT INTO messages VALUES (?, 'hello')", [.text(record)])
    }
  }

  private func received(_ device: Device) async throws -> [String] {
    try await device.exchange()
    return try await device.rows("SELECT id FROM messages ORDER BY id").compactMap {
      if case .text(let id)? = $0.first { id } else { nil }
    }
  }

  @Test(
    "changes of an upload-only table are sent, and other devices' changes do not return",
    arguments: StoreKind.allCases)
  func nothingComesBack(_ kind: StoreKind) async throws {
    let pair = try await makePair(kind)
    try await send("a", from: pair.one)
    #expect(try await states(pair.one) == ["a dirty"])
    try await pair.one.exchange()
    #expect(try await states(pair.one).isEmpty)
    #expect(try await received(pair.two) == ["a"])
    try await send("theirs", from: pair.two)
    try await pair.two.write("UPDATE messages SET body = 'changed' WHERE id = 'a'")
    try await pair.two.write(Sample.notes(3, "note"))
    try await pair.two.exchange()
    try await pair.one.exchange()
    #expect(try await pair.one.rows("SELECT * FROM messages") == [["a", "hello"]])
    #expect(try await pair.one.count() == 3)
    #expect(try await pair.one.status().toApply == 0)
    let report = try await pair.one.open().verify()
    #expect(report.isEqual && report.tables.map(\.table) == ["notes"])
    #expect(report.untracked.isEmpty)
    // Two-way again, everything is there.
    try await pair.one.ferry("track", "messages")
    try await pair.one.exchange()
    try await expectEqual([pair.one, pair.two], tables: ["messages", "notes"])
  }

  @Test("an upload-only table is filled once on a new device, also on one that has pulled before")
  func fill() async throws {
    let pair = try await makePair()
    try await pair.two.write("INSERT INTO messages VALUES ('a', 'first'), ('b', 'second')")
    try await pair.two.exchange()
    let new = try await Device.joined(pair.server.url, schema: Self.schema, tracking: ["notes"])
    try await new.exchange()
    for device in [new, pair.one] {
      try await device.ferry("track", "messages", "--upload-only", "--fill")
      try await device.exchange()
      #expect(
        try await device.rows("SELECT * FROM messages ORDER BY id")
          == [["a", "first"], ["b", "second"]])
    }
    // Only once, and the device still sends.
    try await pair.two.write(
      "INSERT INTO messages VALUES ('c', 'third'); UPDATE messages SET body = 'other'")
    try await pair.two.exchange()
    try await send("mine", from: new)
    try await new.exchange()
    #expect(
      try await new.rows("SELECT * FROM messages ORDER BY id")
        == [["a", "first"], ["b", "second"], ["mine", "hello"]])
    #expect(try await received(pair.two) == ["a", "b", "c", "mine"])
    #expect(try await new.status().toApply == 0)
    // Once more.
    try await new.ferry("track", "messages", "--upload-only", "--fill")
    try await new.exchange()
    try await new.exchange()
    #expect(
      try await new.rows("SELECT id, body FROM messages ORDER BY id")
        == [["a", "other"], ["b", "other"], ["c", "other"], ["mine", "hello"]])
    let failed = try await new.ferry("track", "messages", "--fill", exits: 2)
    #expect(failed.error.contains("--fill is for upload-only tables"))
  }

  @Test("a message that could not be sent stays marked until the user retries it, and is sent once")
  func retry() async throws {
    let pair = try await makePair()
    try await pair.one.exchange()
    pair.proxy.refuse()
    try await send("a", "b", "c", "d", from: pair.one)
    try await pair.one.write(Sample.notes(2, "note"))
    let offline = try await pair.one.ferry("sync", exits: 3)
    #expect(offline.error.contains("ferry retry"))
    pair.proxy.refuse(false)
    let report = try await pair.one.exchange(exits: 4)
    #expect(report.pushed == 2)
    #expect(try await states(pair.one) == ["a", "b", "c", "d"].map { "\($0) dirty failed" })
    #expect(try await received(pair.two).isEmpty)
    #expect(
      try await pair.one.rows("SELECT count(*) FROM ferry_uploads WHERE failed AND is_dirty")
        == [[4]])
    // The user deletes one, and sends another.
    try await pair.one.write("DELETE FROM messages WHERE id = 'd'")
    try await pair.one.ferry("retry", "messages", "b")
    try await pair.one.exchange(exits: 4)
    #expect(try await received(pair.two) == ["b"])
    #expect(
      try await states(pair.one) == [
        "a dirty failed", "c dirty failed", "d dirty deleted failed",
      ])
    #expect(try await pair.one.ferry("retry", "messages", "b", exits: 1).error.contains("messages"))
    let retried = try await pair.one.ferry("--json", "retry", "messages")
    #expect(try JSONLine.all(retried.output).first?.number("retried") == 3)
    try await pair.one.exchange()
    #expect(try await states(pair.one).isEmpty)
    #expect(try await received(pair.two) == ["a", "b", "c"])
    #expect(try await pair.one.status().unsent == 0)
  }

  @Test("failed changes of an automatic table are sent with the next sync")
  func automatic() async throws {
    let pair = try await makePair(.embedded, "--automatic")
    pair.proxy.refuse()
    try await send("a", from: pair.one)
    try await pair.one.ferry("push", exits: 3)
    #expect(try await states(pair.one) == ["a dirty"])
    pair.proxy.refuse(false)
    try await pair.one.exchange()
    #expect(try await received(pair.two) == ["a"])
  }

  @Test("after a lost answer the next sync confirms the message, which exists once")
  func answerLost() async throws {
    let pair = try await makePair()
    try await pair.one.exchange()
    try await send("a", from: pair.one)
    // Each response to the packet is lost, until the push gives up.
    pair.proxy.trap(.answer, of: "POST ", times: 100, .cut)
    try await pair.one.ferry("push", exits: 3)
    pair.proxy.removeTraps()
    #expect(try await states(pair.one) == ["a dirty failed"])
    try await pair.one.exchange()
    #expect(try await states(pair.one).isEmpty)
    #expect(try await received(pair.two) == ["a"])
    #expect(try await pair.server.head() == 1)
  }

  @Test("a failed message exists once if its packet arrives late")
  func arrivesLate() async throws {
    let pair = try await makePair()
    try await pair.one.exchange()
    try await send("a", from: pair.one)
    let copy = try Device()
    try pair.one.copy(to: copy)
    pair.proxy.refuse()
    try await pair.one.ferry("push", exits: 3)
    pair.proxy.refuse(false)
    try await pair.one.exchange(exits: 4)
    // The packet under the same name and with the same identifiers.
    try await copy.exchange()
    #expect(try await pair.server.head() == 1)
    try await pair.one.write(Sample.notes(1, "note"))
    try await pair.one.exchange(exits: 4)
    try await pair.one.ferry("retry")
    try await pair.one.exchange()
    #expect(try await states(pair.one).isEmpty)
    #expect(try await received(pair.two) == ["a"])
    #expect(try await pair.server.head() == 2)
  }

  @Test("a watching process does not retry failed messages until another process does")
  func watching() async throws {
    let pair = try await makePair()
    try await pair.one.exchange()
    let watcher = try pair.one.start("sync", "--watch")
    defer { watcher.send(SIGKILL) }
    pair.proxy.refuse()
    pair.proxy.cutAll()
    try await send("a", from: pair.one)
    try await eventually("the mark", from: watcher) {
      try await states(pair.one) == ["a dirty failed"]
    }
    pair.proxy.refuse(false)
    try await pair.one.write(Sample.notes(1, "note"))
    try await eventually("the note", from: watcher) { try await pair.one.status().pending == 0 }
    #expect(try await states(pair.one) == ["a dirty failed"])
    #expect(try await received(pair.two).isEmpty)
    try await pair.one.ferry("retry", "messages", "a")
    try await eventually("the message", from: watcher) { try await states(pair.one).isEmpty }
    #expect(try await received(pair.two) == ["a"])
  }

  @Test("a refused message keeps its row, and is sent once after repair and retry")
  func refused() async throws {
    let pair = try await makePair()
    let rule = #"{"tables":{"messages":{"columns":{"body":{"type":"text"}}}}}"#
    try await pair.two.open().applySchema(try SpaceSchema(json: rule))
    try await pair.one.write("INSERT INTO messages VALUES ('a', X'05')")
    try await send("b", from: pair.one)
    let report = try await pair.one.exchange(exits: 4)
    #expect(report.quarantined == 1 && report.pushed == 1)
    #expect(try await pair.one.count("messages") == 2)
    #expect(try await states(pair.one) == ["a dirty failed"])
    try await pair.one.write("UPDATE messages SET body = 'five' WHERE id = 'a'")
    try await pair.one.exchange(exits: 4)
    #expect(try await received(pair.two) == ["b"])
    try await pair.one.ferry("retry", "messages", "a")
    try await pair.one.exchange()
    #expect(try await received(pair.two) == ["a", "b"])
    #expect(try await pair.two.rows("SELECT body FROM messages WHERE id = 'a'") == [["five"]])
  }

  @Test("a refused batch is listed by its condition, and sent again with others")
  func refusedBatch() async throws {
    let pair = try await makePair()
    try await send("a", from: pair.one)
    try await pair.one.exchange()
    let rule = #"{"tables":{"messages":{"columns":{"body":{"type":"text"}}}}}"#
    try await pair.two.open().applySchema(try SpaceSchema(json: rule))
    for body in ["5", "x"] {
      try await pair.one.ferry(
        "batch", "messages", "--where", "body = 'hello'", "--set", "body=\(body)")
    }
    #expect(try await pair.one.exchange(exits: 4).quarantined == 1)
    let listed = try await pair.one.ferry("uploads")
    #expect(listed.output.contains("set where body = 'hello'"), "\(listed.output)")
    #expect(listed.output.contains("schema_violation"), "\(listed.output)")
    #expect(try await states(pair.one) == ["set where body = 'hello' dirty failed"])
    #expect(try await pair.one.ferry("retry").output.contains("1 record"))
  }

  @Test("a deleted message is listed as deleted until the server has acknowledged it")
  func deleted() async throws {
    let pair = try await makePair()
    try await send("a", from: pair.one)
    try await pair.one.exchange()
    try await pair.one.write("DELETE FROM messages")
    #expect(try await states(pair.one) == ["a deleted"])
    try await pair.one.exchange()
    #expect(try await states(pair.one).isEmpty)
    #expect(try await received(pair.two).isEmpty)
  }

  @Test(
    "a kill during a send is not a failure: the next process sends the message once",
    arguments: [TCPProxy.Direction.request, .answer])
  func killed(_ direction: TCPProxy.Direction) async throws {
    let pair = try await makePair()
    try await pair.one.exchange()
    try await send("a", from: pair.one)
    let trap = pair.proxy.trap(direction, of: "POST ", .hold)
    let client = try pair.one.start("sync")
    try await trap.sprung()
    client.send(SIGKILL)
    _ = try await client.exitStatus()
    trap.cut()
    pair.proxy.removeTraps()
    #expect(try await states(pair.one) == ["a dirty"])
    try await pair.one.exchange()
    #expect(try await states(pair.one).isEmpty)
    #expect(try await received(pair.two) == ["a"])
    #expect(try await pair.server.head() == 1)
  }

  @Test("wrong combinations are wrong usage")
  func usage() async throws {
    let device = try Device()
    try await device.ferry("sql", "CREATE TABLE t(id TEXT PRIMARY KEY)")
    try await device.ferry("track", "t", "--automatic", exits: 2)
    try await device.ferry("track", "t", "--create", "--upload-only", exits: 2)
  }
}
