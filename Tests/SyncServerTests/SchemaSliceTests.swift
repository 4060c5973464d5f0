import Dispatch
import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

/// Checks of schemas in the embedded store, which has one writer for all spaces.
@Suite("Schemas beside the embedded store's writer", .hangLimit)
struct SchemaSliceTests {
  private let directory: TemporaryDirectory
  private let one: Int64
  private let two: Int64
  private let now: Int64 = 1_800_000_000_000
  /// A store's connections share them.
  private let timelines = OwnTimelines()
  private let writing = WriteLock()
  private let unique: SpaceSchema
  private var maker = PacketMaker(1)
  private var other = PacketMaker(2)

  init() async throws {
    directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    one = try await store.createSpace(try #require(SpaceName("one"))).id
    two = try await store.createSpace(try #require(SpaceName("two"))).id
    await store.close()
    unique = try SpaceSchema(
      json: #"{"tables":{"t":{"columns":{"v":{"type":"text"}},"unique":[["v"],["v","w"]]}}}"#)
    let inserts = (0..<50).map { number in
      maker.operation(
        .insert, "r\(100 + number)", [Column("v", .text("v\(number)")), Column("w", 1)])
    }
    try send(maker.packet(inserts), to: one, try open())
  }

  private func open() throws -> SQLiteStoreFile {
    try SQLiteStoreFile(
      path: directory.file(SQLiteStore.fileName).path, limits: .standard, timelines: timelines,
      writing: writing, slice: WriteSlice(rows: 10, bytes: 4_000, matches: 10))
  }

  private func send(_ packet: Packet, to space: Int64, _ file: SQLiteStoreFile) throws {
    let attempt = try file.ingest(
      [IncomingPacket(packet, byteCount: 100)], into: space, now: now, BatchMatches())
    guard case .done(_, let batch) = attempt, case .accepted = batch.results[0] else {
      throw StoreError.failed("\(attempt)")
    }
  }

  private func work(onlyChecks: Bool = false) -> SchemaWork {
    SchemaWork(unique, now: now, onlyChecks: onlyChecks, random: 1)
  }

  /// Returns the claims of the first space, and the version of the space's schema.
  private func state(_ file: SQLiteStoreFile) throws -> [Int64] {
    #expect(try file.isSettled(one))
    return try [
      "SELECT count(*) FROM unique_keys WHERE space = \(one)",
      "SELECT schema_version FROM spaces WHERE id = \(one)",
    ].map { try file.connection.first($0) { $0.int64(0) } ?? -1 }
  }

  @Test(
    "another space's packets are applied between the slices of a check", arguments: [true, false])
  mutating func beside(onlyChecks: Bool) throws {
    let (writer, stager) = (try open(), try open())
    var work = work(onlyChecks: onlyChecks)
    var steps: Int64 = 0
    var answer: Result<SpaceSchema, Problem>?
    while answer == nil {
      answer = try SchemaSteps(file: stager, space: one).step(&work)
      try send(other.packet("a\(steps)"), to: two, writer)
      steps += 1
      #expect(try writer.head(of: two) == steps)
    }
    #expect(try answer?.get().version == 1)
    #expect(steps > 7)
    #expect(try state(writer) == (onlyChecks ? [0, 0] : [100, 1]))
  }

  @Test("a schema that records do not fit leaves no claims")
  mutating func unfit() throws {
    let (writer, stager) = (try open(), try open())
    let double = other.operation(.insert, "z", [Column("v", "v7")])
    try send(other.packet([double]), to: one, writer)
    var work = work()
    var answer: Result<SpaceSchema, Problem>?
    while answer == nil { answer = try SchemaSteps(file: stager, space: one).step(&work) }
    guard case .failure(let problem)? = answer else {
      Issue.record("the schema is in force")
      return
    }
    #expect(problem.violations.map(\.record) == ["z"])
    #expect(problem.violations.map(\.holder) == ["r107"])
    #expect(try state(writer) == [0, 0])
  }

  @Test("a process that ends within a check leaves claims that the next packet removes")
  mutating func crash() throws {
    let stager = try open()
    var work = work()
    for _ in 0..<4 { #expect(try SchemaSteps(file: stager, space: one).step(&work) == nil) }
    let next = try open()
    #expect(try next.isSettled(one) == false)
    try send(other.packet([other.operation(.insert, "z", [Column("v", "v7")])]), to: one, next)
    #expect(try state(next) == [0, 0])
  }

  @Test("a check begins again if another process has changed the space", arguments: ["new", "v7"])
  mutating func changed(value: String) throws {
    let (writer, stager) = (try open(), try open())
    var work = work()
    for _ in 0..<4 { #expect(try SchemaSteps(file: stager, space: one).step(&work) == nil) }
    let insert = other.operation(.insert, "z", [Column("v", .text(value))])
    try send(other.packet([insert]), to: one, writer)
    var answer: Result<SpaceSchema, Problem>?
    while answer == nil { answer = try SchemaSteps(file: stager, space: one).step(&work) }
    switch try #require(answer) {
    case .success(let schema): #expect(schema.version == 1 && value == "new")
    case .failure(let problem):
      #expect(problem.violations.map(\.record) == ["z"] && value == "v7")
    }
    #expect(try state(writer) == (value == "new" ? [101, 1] : [0, 0]))
  }

  @Test("a space that changes during each check is busy in the end, and stays as it is")
  mutating func busy() throws {
    let (writer, stager) = (try open(), try open())
    var work = work()
    #expect(throws: StoreError.self) {
      while true {
        guard try SchemaSteps(file: stager, space: one).step(&work) == nil else { return }
        try send(other.packet("a\(other.milliseconds)"), to: one, writer)
      }
    }
    try writer.removeStagedRows(one)
    #expect(try state(writer) == [0, 0])
  }

  @Test("claims of keys that a schema does not declare any more are removed")
  func gone() throws {
    let file = try open()
    _ = try file.applySchema(unique, to: one, now: now, random: 1).get()
    #expect(try state(file) == [100, 1])
    let fewer = try SpaceSchema(json: #"{"tables":{"t":{"unique":[["v"]]}}}"#)
    _ = try file.applySchema(
      fewer, to: one, now: now, consent: SchemaConsent(dropsRules: true), random: 2
    ).get()
    #expect(try state(file) == [50, 2])
  }

  @Test("a schema is checked and put in force while the writer is busy with another space")
  func whileBusy() async throws {
    let (schema, space, holder) = (unique, one, HeldThread("ferry-store"))
    let store = try await SQLiteStore(
      directory: directory.url.path, limits: .standard,
      makeExecutor: { $0 == "ferry-store" ? holder.thread : ThreadExecutor(name: $0) })
    async let held: Void = holder.hold()
    defer { holder.release() }
    try await eventually("the writer is busy") { holder.isHeld }
    let check = try await store.checkSchema(schema, of: space, now: now, consent: SchemaConsent())
    #expect(try check.get().version == 1)
    let applied = try await store.applySchema(schema, to: space, now: now)
    #expect(try applied.get().version == 1)
    holder.release()
    try await held
    await store.close()
  }

  @Test("packets of another space are applied while a schema waits for its next slice")
  func whileChecking() async throws {
    let (schema, space, holder) = (unique, one, HeldThread("ferry-stager"))
    let store = try await SQLiteStore(
      directory: directory.url.path, limits: .standard,
      makeExecutor: { $0 == "ferry-stager" ? holder.thread : ThreadExecutor(name: $0) })
    async let held: Void = holder.hold()
    defer { holder.release() }
    try await eventually("the thread of slices is busy") { holder.isHeld }
    async let applied = store.applySchema(schema, to: space, now: 1_800_000_000_000)
    var author = PacketMaker(3)
    let packet = IncomingPacket(author.packet("a"), byteCount: 100)
    #expect(try await store.ingest([packet], into: two, now: now).head == 1)
    holder.release()
    try await held
    #expect(try await applied.get().version == 1)
    await store.close()
  }
}

/// A thread, busy until it is released.
private final class HeldThread: Sendable {
  let thread: ThreadExecutor
  private let gate = DispatchSemaphore(value: 0)
  private let started = Mutex(false)

  init(_ name: String) { thread = ThreadExecutor(name: name) }

  var isHeld: Bool { started.withLock { $0 } }

  func hold() async throws {
    try await thread.run { [self] in
      started.withLock { $0 = true }
      gate.wait()
    }
  }

  func release() { gate.signal() }
}
