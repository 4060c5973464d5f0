import FerryProtocol
import FerrySyncServer

/// One space of a store, with the calls repeated in contracts.
struct SpaceUnderTest: Sendable {
  let store: any SyncStore
  let space: SpaceSummary

  /// The server's wall clock in the contracts, milliseconds since 1970.
  static let now: Int64 = 1_800_000_000_000

  /// Sends one packet in one transaction.
  @discardableResult
  func send(
    _ packet: Packet, byteCount: Int = 100, role: Role = .writer,
    now: Int64 = SpaceUnderTest.now
  ) async throws -> IngestResult {
    try await ingest([IncomingPacket(packet, byteCount: byteCount, role: role)], now: now)
      .results[0]
  }

  /// Sends one packet of a principal in one transaction.
  @discardableResult
  func send(
    _ packet: Packet, from principal: Principal, byteCount: Int = 100, cursor: Cursor? = nil,
    now: Int64 = SpaceUnderTest.now
  ) async throws -> IngestResult {
    let incoming = IncomingPacket(
      packet, byteCount: byteCount, principal: principal, cursor: cursor)
    return try await ingest([incoming], now: now).results[0]
  }

  /// Returns a principal's usage of the space; without one, the usage of all together.
  func usage(of principal: Principal? = nil) async throws -> Usage {
    let rows = try await store.usage(in: space.id)
    return rows.first { $0.principal == principal?.id ?? "" }?.usage ?? Usage()
  }

  /// Sends several packets in one transaction.
  func send(_ packets: [Packet]) async throws -> [IngestResult] {
    try await ingest(packets.map { IncomingPacket($0, byteCount: 100) }, now: Self.now).results
  }

  func ingest(_ packets: [IncomingPacket], now: Int64) async throws -> IngestBatch {
    let batch = try await store.ingest(packets, into: space.id, now: now)
    try require(batch.results.count, is: packets.count, "results of a batch")
    try require(batch.epoch, is: space.epoch, "a batch's epoch")
    return batch
  }

  /// Returns the receipt of a packet that must be accepted.
  func receipt(for packet: Packet) async throws -> PacketReceipt {
    switch try await send(packet) {
    case .accepted(let receipt, _): return receipt
    case .refused(let problem): throw ContractViolation(description: "refused: \(problem)")
    }
  }

  /// Reads one page, which must be served.
  func page(
    after cursor: Cursor?, limit: Int = 1_000, byteLimit: Int = 1 << 20, device: DeviceID? = nil
  ) async throws -> (head: PageHead, changes: [Change]) {
    let request = PullRequest(
      cursor: cursor, limit: limit, byteLimit: byteLimit, device: device)
    let answer = try await store.changes(in: space.id, request, now: Self.now)
    var changes: [Change] = []
    let bytes = try answer.get()
    let head = try bytes.withUnsafeBytes { bytes in
      try PageReader.read(bytes, limits: .standard) { changes.append($0) }
    }
    try require(changes.count, is: head.count, "changes in a page")
    return (head, changes)
  }

  /// Reads everything there is, like a new device.
  func everything() async throws -> Reader {
    var reader = Reader()
    try await reader.pull(from: self)
    return reader
  }

  /// Returns the newest applied operation of the device's packets, by a page.
  func appliedTail(of device: DeviceID?) async throws -> OperationID? {
    try await page(after: nil, device: device).head.appliedTail
  }

  /// Returns the newest sequence assigned.
  func head() async throws -> SequenceNumber {
    try unwrap(try await store.space(named: space.name), "the space is gone").head
  }
}

/// A device that only reads pages, as a client does.
struct Reader: Sendable {
  private(set) var cursor: Cursor?
  /// The existing records.
  private(set) var records: [RecordKey: [Name: Value]] = [:]
  /// Changes received, in order.
  private(set) var changes: [Change] = []
  /// The last operation of this device applied by the server, by the last page.
  private(set) var appliedTail: OperationID?

  /// Reads one page; returns whether there is more. `isAtomic` devices show nothing until then, but
  /// the received data is the same.
  mutating func pullPage(
    from space: SpaceUnderTest, limit: Int = 1_000, device: DeviceID? = nil
  ) async throws -> Bool {
    let (head, page) = try await space.page(after: cursor, limit: limit, device: device)
    var last = cursor?.received ?? 0
    for change in page {
      try require(change.sequence > last, "changes are not in sequence order")
      last = change.sequence
      apply(change)
    }
    try require(last <= head.head, "a change lies past the page's head")
    changes += page
    cursor = head.cursor
    appliedTail = head.appliedTail
    return head.more
  }

  /// Reads pages until the head is reached.
  mutating func pull(
    from space: SpaceUnderTest, limit: Int = 1_000, device: DeviceID? = nil
  ) async throws {
    while try await pullPage(from: space, limit: limit, device: device) {}
    try require(
      cursor?.applied == cursor?.received, "the last page leaves the cursor within a list")
  }

  private mutating func apply(_ change: Change) {
    if change.state.inserted != nil {
      records[change.key] = [:]
    } else if change.state.deleted != nil {
      records[change.key] = nil
      return
    }
    for column in change.state.columns { records[change.key]?[column.name] = column.value }
  }
}
