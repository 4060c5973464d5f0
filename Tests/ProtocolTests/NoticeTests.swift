import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// Notices in pages: they travel whole, and readers skip them if they do not request them.
@Suite("Notices in pages", .hangLimit)
struct NoticeTests {
  static let seeds: ClosedRange<UInt64> = 1...200

  @Test("notices are read back unchanged, beside the page's changes", arguments: seeds)
  func roundTrip(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let notices = (0..<Int.random(in: 0...6, using: &random)).map {
      Notice.random(at: Int64($0 + 1), &random)
    }
    let changes = (0..<Int.random(in: 0...4, using: &random)).map { Change.absent(.sample($0)) }
    let bytes = Self.page(notices, changes)
    #expect(try PageReader.notices(of: bytes, limits: .standard) == notices)
    #expect(try FixtureTests.page(bytes).1 == changes)
    #expect(try PageReader.head(of: bytes) == Self.head(changes.count))
  }

  @Test("a reader that does not know notices reads the same page", arguments: seeds)
  func passedOver(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let changes = [Change.absent(.sample(1))]
    let notices = (1...3).map { Notice.random(at: $0, &random) }
    let with = try FixtureTests.page(Self.page(notices, changes))
    let without = try FixtureTests.page(Self.page([], changes))
    #expect(with.0 == without.0 && with.1 == without.1)
  }

  @Test("a page without notices has no such member")
  func absent() throws {
    let bytes = Self.page([], [])
    #expect(!String(decoding: bytes, as: UTF8.self).contains("notices"))
    #expect(try PageReader.notices(of: bytes, limits: .standard) == [])
    var plain = JSONWriter()
    plain.beginPage(Self.head(0))
    plain.endPage()
    #expect(plain.finish() == bytes)
  }

  @Test("a golden page reports to the loser the lost value, the winner and its operation")
  func golden() throws {
    let bytes = try ProjectFiles.fixture("pages/notices")
    let notice = try #require(try PageReader.notices(of: bytes, limits: .standard).first)
    #expect(notice.sequence == 18)
    #expect(notice.operation.value.timestamp == FixtureTests.time(500))
    #expect(notice.key == RecordKey(table: "tasks", record: FixtureTests.record))
    #expect(notice.conflicts.map(\.lost) == ["Buy soy milk"])
    #expect(notice.conflicts.map(\.loser.device) == [FixtureTests.deviceB])
  }

  @Test(
    "a golden page reports to the author of an overruled value the reason, and the kind of write")
  func goldenReason() throws {
    let bytes = try ProjectFiles.fixture("pages/overruled")
    let notice = try #require(try PageReader.notices(of: bytes, limits: .standard).first)
    let packet = try Packet(decoding: ProjectFiles.fixture("packets/reason"), limits: .standard)
    let operation = try #require(packet.operations.first)
    let reason = try #require(operation.reason)
    #expect(reason.hasSuffix("violates check constraint \"tasks_done\""))
    #expect(notice.operation == operation.id && notice.key == operation.key)
    #expect(notice.overruling == Notice.Overruling(kind: .update, reason: reason))
    #expect(notice.conflicts.map(\.lost) == [7])
  }

  @Test(
    "a notice whose reason is empty, too long or without a kind is malformed",
    arguments: [
      (",\"kind\":\"update\",\"reason\":\"\"", false),
      (",\"kind\":\"batch\",\"reason\":\"a\"", false), (",\"reason\":\"a\"", false),
      (",\"kind\":\"update\",\"reason\":\"\(String(repeating: "é", count: 500))\"", true),
      (",\"kind\":\"update\",\"reason\":\"\(String(repeating: "é", count: 501))\"", false),
    ])
  func reasons(members: String, isRead: Bool) throws {
    let page = String(decoding: Self.page([.plain], []), as: UTF8.self)
      .replacingFirst(",\"conflicts\"", with: members + ",\"conflicts\"")
    let notices = try? PageReader.notices(of: Array(page.utf8), limits: .standard)
    #expect((notices != nil) == isRead)
    #expect(notices?.first?.overruling?.kind == (isRead ? .update : nil))
  }

  @Test("reading notices skips the changes and checks everything before them")
  func damaged() throws {
    var random = SeededGenerator(seed: 1)
    let bytes = Self.page([.random(at: 1, &random)], [])
    let end = try #require(
      bytes.indices.first { bytes[$0...].starts(with: Array("\"changes\":".utf8)) })
    let head = Array(bytes[..<end])
    let rest = Array("\"changes\":nonsense".utf8)
    #expect(try PageReader.notices(of: head + rest, limits: .standard).count == 1)
    for count in 0..<end {
      #expect(throws: MalformedMessage.self, "cut after \(count)") {
        try PageReader.notices(of: Array(bytes.prefix(count)), limits: .standard)
      }
    }
  }

  @Test(
    "a notice that lacks a part is malformed",
    arguments: ["sequence", "operation", "table", "record"])
  func lacking(member: String) throws {
    var random = SeededGenerator(seed: 7)
    let bytes = Self.page([.random(at: 5, &random)], [])
    let text = String(decoding: bytes, as: UTF8.self)
    let start = try #require(text.range(of: "\"notices\""))
    let broken = text.replacingFirst("\"\(member)\"", with: "\"x\"", after: start.lowerBound)
    #expect(throws: MalformedMessage.self) {
      try PageReader.notices(of: Array(broken.utf8), limits: .standard)
    }
  }

  // MARK: Pages

  static func head(_ count: Int) -> PageHead {
    let epoch = Epoch(7)
    return PageHead(
      epoch: epoch, head: 9, cursor: Cursor(epoch: epoch, applied: 9), more: false,
      appliedTail: nil, serverTime: 1, count: count)
  }

  static func page(_ notices: [Notice], _ changes: [Change]) -> [UInt8] {
    var json = JSONWriter()
    json.beginPage(head(changes.count), notices: Notice.listed(notices))
    for change in changes {
      json.element()
      json.change(change)
    }
    json.endPage()
    return json.finish()
  }
}

extension Notice {
  /// Returns the notices as a page carries them.
  static func listed(_ notices: [Notice]) -> [UInt8] {
    var json = JSONWriter()
    for notice in notices {
      json.element()
      json.notice(notice)
    }
    return json.finish()
  }

  static var plain: Notice {
    Notice(sequence: 1, operation: .sample(1), key: .sample(1), conflicts: [])
  }

  static func random(at sequence: SequenceNumber, _ random: inout SeededGenerator) -> Notice {
    let values: [Value] = [
      .null, 1, .integer(.min), 0.5, .real(-0.0), "", "a \"b\" \\ \u{0} é", .blob([0, 255]),
    ]
    let conflicts = (0..<Int.random(in: 0...4, using: &random)).map { index in
      Conflict(
        column: random.chance(1, of: 4) ? nil : "c\(index)",
        lost: values[Int.random(in: 0..<values.count, using: &random)],
        loser: .at(Int64(index), random.next() % 4), winner: .at(Int64(index) + 1, 5))
    }
    let overruling = Notice.Overruling(
      kind: [.insert, .update, .delete][Int(random.next() % 3)], reason: "a \"reason\"\n\u{202E}é")
    return Notice(
      sequence: sequence, operation: .sample(random.next() % 1_000),
      key: .sample(Int(random.next() % 9)), conflicts: conflicts,
      overruling: random.chance(1, of: 3) ? overruling : nil)
  }
}

extension RecordKey {
  static func sample(_ number: Int) -> RecordKey {
    RecordKey(table: "notes", record: "r\(number)")
  }
}

extension String {
  /// Replaces the first place of `text` from `start` on.
  fileprivate func replacingFirst(
    _ text: String, with other: String, after start: String.Index? = nil
  ) -> String {
    guard let range = self[(start ?? startIndex)...].range(of: text) else { return self }
    return replacingCharacters(in: range, with: other)
  }
}
