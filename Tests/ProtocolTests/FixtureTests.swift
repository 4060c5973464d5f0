import FerryProtocol
import FerryTestSupport
import Testing

/// The golden messages in Protocol/fixtures: the meaning of each. Both directions of the codec must
/// agree with them byte for byte.
@Suite("Golden messages", .hangLimit)
struct FixtureTests {
  static let deviceA = DeviceID("0199c306-6400-7000-800a-11ce00000001")
  static let deviceB = DeviceID("0199c368-0c00-7000-800b-0b0000000002")
  static let record = "0199c82c-0000-7000-8000-0000000000a1"

  static func time(_ offset: Int64, counter: UInt16 = 0) -> HybridTimestamp {
    HybridTimestamp(milliseconds: 1_760_000_000_000 + offset, counter: counter)
  }

  // MARK: Byte for byte

  @Test(
    "packets are read and written back byte for byte",
    arguments: try ProjectFiles.fixtures(in: "packets")
  )
  func packets(name: String) throws {
    let bytes = try ProjectFiles.fixture("packets/\(name)")
    let packet = try Packet(decoding: bytes, limits: .standard)
    #expect(packet.encoded() == bytes)
    for operation in packet.operations {
      #expect(operation.id.value.timestamp == operation.time, "the samples follow the advice")
    }
  }

  @Test(
    "answers are read and written back byte for byte",
    arguments: try ProjectFiles.fixtures(in: "answers")
  )
  func answers(name: String) throws {
    let bytes = try ProjectFiles.fixture("answers/\(name)")
    #expect(try PacketAnswer(decoding: bytes, limits: .standard).encoded() == bytes)
  }

  @Test(
    "pages are read and written back byte for byte",
    arguments: try ProjectFiles.fixtures(in: "pages"))
  func pages(name: String) throws {
    let bytes = try ProjectFiles.fixture("pages/\(name)")
    let (head, changes) = try Self.page(bytes)
    var json = JSONWriter()
    json.beginPage(
      head, notices: Notice.listed(try PageReader.notices(of: bytes, limits: .standard)))
    for change in changes {
      json.element()
      json.change(change)
    }
    json.endPage()
    #expect(json.finish() == bytes)
    #expect(try PageReader.head(of: bytes) == head, "the head is read without the changes")
    #expect(head.count == changes.count)
  }

  @Test("a request for records is read and written back byte for byte")
  func records() throws {
    let bytes = try ProjectFiles.fixture("requests/records")
    let request = try RecordsRequest(decoding: bytes, limits: .standard)
    #expect(request.encoded() == bytes)
    let answer = try Self.changes("records")
    #expect(answer.map(\.key) == request.keys)
    #expect(answer[0].state.isAlive && answer[0].state.inserted != nil)
    #expect(answer[1] == .absent(request.keys[1]))
  }

  @Test("a space's info is read and written back byte for byte")
  func space() throws {
    let bytes = try ProjectFiles.fixture("space")
    let info = try SpaceInfo(decoding: bytes)
    #expect(info.head == 9_007_199_254_740_993)
    #expect(info.role == .writer)
    #expect(info.encoded() == bytes)
  }

  @Test("each problem code has a golden document, byte for byte")
  func problems() throws {
    let names = try ProjectFiles.fixtures(in: "problems")
    #expect(names == ProblemCode.allCases.map(\.rawValue).sorted())
    for name in names {
      let bytes = try ProjectFiles.fixture("problems/\(name)")
      let problem = try #require(Problem(decoding: bytes))
      #expect(problem.code.rawValue == name)
      #expect(problem.encoded() == bytes)
    }
  }

  // MARK: Meaning

  @Test("the first packet of a device has no dependency, and its operation has six parts")
  func insert() throws {
    let packet = try Self.packet("insert")
    #expect(packet.device == Self.deviceA)
    #expect(packet.dependency == nil)
    #expect(!packet.continues)
    let operation = try #require(packet.operations.first)
    #expect(operation.key == RecordKey(table: "tasks", record: Self.record))
    #expect(operation.kind == .insert)
    #expect(operation.time == Self.time(1))
    #expect(
      operation.columns == [
        Column("title", "Buy milk"), Column("done", 0), Column("due", nil), Column("weight", 2.5),
        Column("photo", .blob([0x89, 0x50, 0x4E, 0x47])),
      ])
  }

  @Test("a batch contains a table, a predicate and the change of the matching records")
  func batch() throws {
    let operations = try Self.packet("batch").operations
    #expect(operations.map(\.kind) == [.batch, .batch])
    #expect(operations.map(\.key.record) == ["", ""])
    #expect(operations.map(\.batch?.effect) == [.set, .delete])
    #expect(operations.map(\.base) == [13, 12])
    #expect(operations[0].columns == [Column("done", 1), Column("weight", 2.0)])
    #expect(
      operations[0].batch?.predicate.text(key: "id")
        == "due < '2026-10-01' and (done = 0 or done is null) and not (id in ('\(Self.record)'))")
    let outcomes = try Self.answer("batch").receipt.outcomes
    #expect(outcomes.map(\.records) == [3, 0])
    #expect(outcomes.map(\.isOverruled) == [true, false])
  }

  @Test("columns that were written earlier than their operation keep their times")
  func update() throws {
    let packet = try Self.packet("update")
    let operation = try #require(packet.operations.first)
    #expect(packet.dependency == (try Self.packet("insert")).tail)
    #expect(operation.base == 7)
    #expect(operation.time(of: "title") == Self.time(300))
    #expect(operation.time(of: "done") == Self.time(500))
  }

  @Test("a delete has no data, and a packet can end within a transaction")
  func deleteAndContinues() throws {
    let delete = try #require(try Self.packet("delete").operations.first)
    #expect(delete.kind == .delete)
    #expect(delete.columns.isEmpty)
    #expect(try Self.packet("continues").continues)
  }

  @Test("an operation's base is the packet's unless it has its own")
  func bases() throws {
    #expect(try Self.packet("mixed").operations.map(\.base) == [9, 12, 9, 9])
    #expect(try Self.packet("mixed").operations[1].time == Self.time(1_000, counter: 1))
  }

  @Test("answers state the outcome of each operation")
  func outcomes() throws {
    let applied = try Self.answer("applied")
    #expect(applied.receipt.status == .applied)
    #expect(applied.receipt.sequences == 10...13)
    #expect(applied.receipt.outcomes == Array(repeating: .applied, count: 4))
    #expect(try Self.answer("duplicate").receipt.status == .duplicate)
    let buffered = try Self.answer("buffered").receipt
    #expect(buffered.status == .buffered)
    #expect(buffered.sequences == nil && buffered.outcomes.isEmpty)
    #expect(try Self.answer("gaps").receipt.sequences == nil)
    #expect(try Self.answer("released").released.map(\.sequences) == [15...15, 16...16])
  }

  @Test("conflicts contain the lost value, its writer and the winner")
  func conflicts() throws {
    let outcomes = try Self.answer("conflicts").receipt.outcomes
    let (a, b) = (try #require(Self.deviceA), try #require(Self.deviceB))
    #expect(outcomes.map(\.isOverruled) == [false, false, true])
    #expect(
      outcomes[1].conflicts == [
        Conflict(
          column: "title", lost: "Buy soy milk", loser: Stamp(time: Self.time(450), device: b),
          winner: Stamp(time: Self.time(500), device: a))
      ])
    #expect(outcomes[2].conflicts.map(\.column) == ["done", nil])
  }

  @Test("an update contains its increments and its author's original text")
  func policies() throws {
    let operations = try Self.packet("policies").operations
    #expect(operations.map(\.increments) == [["points", "votes"], []])
    #expect(operations[1].original(of: "body") == "one\ntwo\nthree\n")
    let outcomes = try Self.answer("question").receipt.outcomes
    #expect(outcomes[1].conflicts.map(\.isQuestion) == [true])
    #expect(outcomes[1].isOverruled)
    let columns = try Self.changes("touched")[0].state.columns
    #expect(columns.map(\.origin) == [12, 28])
    #expect(columns.map(\.sequence) == [30, 28])
    #expect(columns.map(\.shared) == [0, 25])
  }

  @Test("a page distinguishes a whole record, changed columns, a tombstone and a new life")
  func changes() throws {
    let whole = try Self.changes("whole")[0].state
    #expect(whole.isAlive && whole.inserted != nil)
    #expect(whole.columns.map(\.name) == ["done", "due", "photo", "title", "weight"])
    #expect(whole.sequence == 8)
    let partial = try Self.changes("partial")[0].state
    #expect(partial.inserted == nil && partial.deleted == nil)
    #expect(partial.columns.map(\.name) == ["done", "title"])
    let tombstone = try Self.changes("tombstone")[0].state
    #expect(tombstone.deleted != nil && !tombstone.isAlive && tombstone.columns.isEmpty)
    let again = try Self.changes("reinsert")[0].state
    #expect(again.isAlive && again.columns.isEmpty)
  }

  @Test("a cursor has no anchor, or an anchor with a hash")
  func cursors() throws {
    func anchor(_ name: String) throws -> Cursor.Anchor? {
      try Self.page(ProjectFiles.fixture("pages/\(name)")).0.cursor.anchor
    }
    #expect(try anchor("empty") == nil)
    let whole = try #require(try anchor("whole"))
    #expect(whole.head == 9 && whole.historyHash == 0x91A2_7C05_3DE8_46FB)
    #expect(whole.operation.description == "0199c82c-c1f4-7000-800a-0000000001f4")
    #expect(try anchor("partial")?.head == 5_000)
    #expect(try anchor("partial")?.timeline == Timeline(0x7D02_C451_9BE8_3F6A))
    let last = try #require(try anchor("tombstone"))
    #expect(last.head == 12 && last.historyHash == 0x4E19_D7B3_605A_C82F)
  }

  // MARK: Reading them

  static func packet(_ name: String) throws -> Packet {
    try Packet(decoding: ProjectFiles.fixture("packets/\(name)"), limits: .standard)
  }

  static func answer(_ name: String) throws -> PacketAnswer {
    try PacketAnswer(decoding: ProjectFiles.fixture("answers/\(name)"), limits: .standard)
  }

  static func changes(_ name: String) throws -> [Change] {
    try page(ProjectFiles.fixture("pages/\(name)")).1
  }

  static func page(_ bytes: [UInt8]) throws -> (PageHead, [Change]) {
    var changes: [Change] = []
    let head = try bytes.withUnsafeBytes { buffer in
      try PageReader.read(buffer, limits: .standard) { changes.append($0) }
    }
    return (head, changes)
  }
}
