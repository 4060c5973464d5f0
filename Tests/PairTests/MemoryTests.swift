import Ferry
import FerryCompression
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

/// The memory of a real server of the shipped size (1 GiB) under requests for much of it.
@Suite(.hangLimit, .serialized)
struct MemoryTests {
  /// The most memory of the process in bytes: three quarters of the shipped size.
  private static let bound = 768 << 20
  private static let large = ["large1", "large2", "large3"]

  @Test(
    "small packets over large records are applied in little memory, and others are served",
    arguments: StoreKind.allCases)
  func largeRecords(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind, "--memory-budget", "256MiB")
    let writers = Self.large.map { LargeWriter(server.url, space: $0) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in writers { group.addTask { try await writer.fill(31) } }
      try await group.waitForAll()
    }
    // The peak counts from the start of a process.
    try await server.stop()
    try await server.start()
    let small = LargeWriter(server.url, space: "small")
    try await small.create()
    let done = Done()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in writers {
        group.addTask {
          try await writer.touchAll(31)
          done.count.withLock { $0 += 1 }
        }
      }
      group.addTask {
        while done.count.withLock({ $0 }) < Self.large.count { try await small.sendSmall() }
      }
      try await group.waitForAll()
    }
    let peak = try server.peakResident()
    #expect(peak < Self.bound, "\(peak >> 20) MiB")
    for space in Self.large { #expect(try await server.head(of: space) == 31 * 3) }
  }

  @Test(
    "readers that do not read their pages use a bounded memory, and others are served",
    arguments: StoreKind.allCases)
  func slowReaders(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind, "--memory-budget", "256MiB")
    let writer = LargeWriter(server.url, space: "large1")
    try await writer.fill(1)
    let small = LargeWriter(server.url, space: "small")
    try await small.create()
    try await small.sendSmall()
    try await server.stop()
    try await server.start()
    let request = Array("GET /v1/spaces/large1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
    let sockets = try (0..<150).map { _ in
      let socket = try LoopbackSocket.connect(to: server.port)
      _ = LoopbackSocket.write(socket, request[...])
      return socket
    }
    defer { for socket in sockets { close(socket) } }
    // Requests are counted when they are answered.
    try await eventually("answers that find no memory") {
      try await server.metric("ferry_memory_refused_total") > 0
    }
    for _ in 0..<20 {
      try await small.sendSmall()
      let page = try await Wire.send(.get, "\(server.url)/v1/spaces/small/changes")
      #expect(page.status == 200)
    }
    let peak = try server.peakResident()
    #expect(peak < Self.bound, "\(peak >> 20) MiB")
    // The slow readers give way.
    try await eventually("a large page") {
      try await Wire.send(.get, "\(server.url)/v1/spaces/large1/changes").status == 200
    }
  }
}

/// The finished writers.
private final class Done: Sendable {
  let count = Mutex(0)
}

/// A writer of records of nearly the largest size.
private final class LargeWriter: Sendable {
  private let url: String
  private let tail = Mutex<OperationID?>(nil)
  private let made = Mutex<UInt64>(0)
  private let device = DeviceID(
    UniqueID(
      timestamp: HybridTimestamp(milliseconds: 1_700_000_000_000), random: .random(in: 0 ... .max)))

  init(_ server: String, space: String) { url = "\(server)/v1/spaces/\(space)" }

  /// A text of 1,040,000 bytes, which compresses well.
  private static let text: String = {
    var (bytes, word) = ([UInt8](), UInt32(1))
    for _ in 0..<26_000 {
      word = word &* 1_664_525 &+ 1_013_904_223
      bytes.append(contentsOf: repeatElement(UInt8(ascii: "a") + UInt8(word >> 28), count: 40))
    }
    return String(decoding: bytes, as: UTF8.self)
  }()

  func create() async throws {
    let answer = try await Wire.send(.put, url)
    try #require([200, 201].contains(answer.status), "\(answer.text)")
  }

  /// Makes records of 8 MiB.
  func fill(_ count: Int) async throws {
    try await create()
    for record in 0..<count {
      let halves = [(OperationKind.insert, 0..<4), (.update, 4..<8)]
      let operations = halves.map { kind, range in
        operation(kind, record, range.map { Column("c\($0)", .text(Self.text)) })
      }
      try await postUntilApplied(packet(operations))
    }
  }

  /// Changes a small value of each record, in one packet, until the server has applied it.
  func touchAll(_ count: Int) async throws {
    let operations = (0..<count).map { operation(.update, $0, [Column("x", 1)]) }
    try await postUntilApplied(packet(operations))
  }

  func sendSmall() async throws {
    let number = made.withLock { $0 }
    try await postUntilApplied(packet([operation(.insert, Int(number), [Column("x", 1)])]))
  }

  /// Sends a packet as a device does: again if the server asks for it.
  private func postUntilApplied(_ body: [UInt8]) async throws {
    while true {
      let answer = try await post(body)
      if answer.status == 200 { return }
      try #require(answer.status == 503, "\(answer.text)")
      try #require(answer.headers["Retry-After"] != nil, "\(answer.text)")
    }
  }

  private func post(_ body: [UInt8]) async throws -> Wire.Answer {
    try await Wire.send(
      .post, "\(url)/packets", headers: ["Content-Encoding": "zstd"],
      body: try ContentCoding.zstd.compress(body))
  }

  private func packet(_ operations: [SyncOperation]) -> [UInt8] {
    tail.withLock { tail in
      defer { tail = operations.last?.id }
      return Packet(device: device, dependency: tail, operations: operations).encoded()
    }
  }

  private func operation(
    _ kind: OperationKind, _ record: Int, _ columns: [Column]
  ) -> SyncOperation {
    let number = made.withLock { made in
      made += 1
      return made
    }
    let time = HybridTimestamp(milliseconds: 1_700_000_000_000 + Int64(number))
    return SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: device.value.low << 16 | number)),
      key: RecordKey(table: "notes", record: Name("r\(record)")), kind: kind, time: time,
      columns: columns)
  }
}
