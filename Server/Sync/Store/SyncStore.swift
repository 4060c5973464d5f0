import FerryProtocol

/// A space as known in the store, looked up once a request.
package struct SpaceSummary: Sendable, Equatable {
  /// The store's own number for the space: the first part of every key.
  package let id: Int64
  package let name: SpaceName
  package let epoch: Epoch
  package let head: SequenceNumber
  /// Tombstones up to here, and operations before it, are gone or about to go.
  package let retentionHorizon: SequenceNumber
  package let retention: Retention

  package init(
    id: Int64, name: SpaceName, epoch: Epoch, head: SequenceNumber,
    retentionHorizon: SequenceNumber = 0,
    retention: Retention = .standard
  ) {
    self.id = id
    self.name = name
    self.epoch = epoch
    self.head = head
    self.retentionHorizon = retentionHorizon
    self.retention = retention
  }
}

/// A packet with the decompressed size on the wire, which bounds the buffer.
package struct IncomingPacket: Sendable, Equatable {
  package let packet: Packet
  package let byteCount: Int
  package let principal: Principal
  /// The sender's.
  package let role: Role
  /// The sender's protocol version; see ``ProtocolVersion``.
  package let protocolVersion: Int
  /// The sender's cursor; `nil` if it sent none.
  package let cursor: Cursor?
  /// True if it is refused if a token was ever made.
  package let needsOpenServer: Bool

  package init(
    _ packet: Packet, byteCount: Int, principal: Principal = .anonymous, role: Role = .writer,
    protocolVersion: Int = ProtocolVersion.current, cursor: Cursor? = nil,
    needsOpenServer: Bool = false
  ) {
    self.packet = packet
    self.byteCount = byteCount
    self.principal = principal
    self.role = role
    self.protocolVersion = protocolVersion
    self.cursor = cursor
    self.needsOpenServer = needsOpenServer
  }
}

/// The result of one incoming packet.
package enum IngestResult: Sendable, Equatable {
  /// Applied, known already, or buffered, with the packets released by it.
  case accepted(PacketReceipt, released: [PacketReceipt])
  /// Not taken; nothing of it was kept.
  case refused(Problem)
}

/// The result of one transaction: the head after it, and a result for each packet, in order.
package struct IngestBatch: Sendable, Equatable {
  package let head: SequenceNumber
  package let epoch: Epoch
  package let results: [IngestResult]

  package init(head: SequenceNumber, epoch: Epoch, results: [IngestResult]) {
    self.head = head
    self.epoch = epoch
    self.results = results
  }
}

/// A request for the changes after a cursor.
package struct PullRequest: Sendable, Equatable {
  /// `nil` for a device without any data yet.
  package var cursor: Cursor?
  /// Changes and notices at most.
  package var limit: Int
  /// Bytes after which the page is closed.
  package var byteLimit: Int
  /// The device whose applied tail and notices to return.
  package var device: DeviceID?
  /// The device's former identifiers, ``Limits/formerDevices`` at most: notices to these are for
  /// it, too.
  package var former: [DeviceID] = []
  /// The device's protocol version; see ``ProtocolVersion``.
  package var protocolVersion = ProtocolVersion.current
  package var principal = Principal.anonymous

  package init(cursor: Cursor?, limit: Int, byteLimit: Int, device: DeviceID?) {
    self.cursor = cursor
    self.limit = limit
    self.byteLimit = byteLimit
    self.device = device
  }

  /// The devices whose notices to return.
  package var addressees: [DeviceID] { device.map { [$0] + former } ?? [] }
}

/// A space whose head moved.
package struct HeadMove: Sendable, Equatable {
  package let space: Int64
  package let head: SequenceNumber

  package init(space: Int64, head: SequenceNumber) {
    self.space = space
    self.head = head
  }
}

/// Notifications between the nodes of a store.
package struct NodeNotifications: Sendable, Equatable {
  /// Notifications received by this process since the start, its own included.
  package var received: Int
  /// Channels in use now.
  package var channels: Int

  package init(received: Int, channels: Int) {
    (self.received, self.channels) = (received, channels)
  }
}

/// Requests since the start of a process that a second server of the store can do, such as a
/// standby or a worker.
package struct SharedWork: Sendable, Equatable {
  /// Requests done by the second server.
  package var done = 0
  /// Requests done by the main server, because the second one was behind, failed, or rested.
  package var passedOn = 0

  package init(done: Int = 0, passedOn: Int = 0) {
    (self.done, self.passedOn) = (done, passedOn)
  }
}

/// The reason for a failure of a store.
package enum StoreError: Error, Sendable, Equatable {
  /// The database cannot be reached, or the connection was lost; the same call may succeed later.
  case unavailable(String)
  /// The database is there, and has too much to do; the same call may succeed in a moment.
  case busy(String)
  /// The database takes no writes: it is a standby, or was set to read only.
  case readOnly(String)
  /// The call needs more memory than it was given, and has changed nothing; see ``IngestRoom``.
  case needsMemory
  /// The database failed unexpectedly: a fault of Ferry's or of the disk's.
  case failed(String)

  /// The error of a change to a space deleted meanwhile.
  static let spaceGone = StoreError.failed("the space does not exist any more")
}

/// The work of a store's process since the start, as far as other servers have a part in it.
package struct StoreCounts: Sendable, Equatable {
  /// The notifications of this process; `nil` if the store has one process.
  package var notifications: NodeNotifications?
  /// The pulls suitable for a standby; `nil` without a standby.
  package var standbyPulls: SharedWork?
  /// The requests suitable for a worker of Citus; `nil` without a worker.
  package var workerRequests: SharedWork?

  package init() {}
}

/// The storage of a server's spaces. PostgreSQL and SQLite implement it, and both pass the contract
/// suite in Tests/SyncServerTests/Contracts.
///
/// The requirements are the primitives written for each database. All other calls are extensions
/// over them, with one set of SQL statements: see ``PlainConnection``.
///
/// Each call that reads throws ``StoreError/needsMemory`` if its task has a ``PageRoom`` and there
/// is no memory for it.
package protocol SyncStore: Sendable {
  /// The moves of heads, by any process of this store, of the watched spaces. Moves of other spaces
  /// may come, too. After a lost connection the current heads come again.
  var heads: HeadMoves { get }

  /// The bounds of packets and answers.
  var limits: Limits { get }

  /// The source of the epochs of new spaces.
  var makeEpoch: @Sendable () -> Epoch { get }

  /// Runs `body` on a connection.
  ///
  /// - Parameter function: The caller, whose name the spans of traces have.
  func lend<T: Sendable>(
    _ use: PlainUse, for function: String,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T

  /// Runs one transaction that may write operations of the server's in a space, and reports the
  /// head if it moved.
  ///
  /// - Parameters:
  ///   - now: The wall clock, milliseconds since 1970.
  ///   - function: The caller, whose name the spans of traces have.
  func change<T: Sendable>(
    _ space: Int64, now: Int64, for function: String,
    _ body: @escaping @Sendable (SpaceChange) throws -> T
  ) async throws(StoreError) -> T

  /// Applies, answers or buffers packets of one space in one durable transaction; one packet's
  /// refusal does not affect the others.
  ///
  /// - Parameters:
  ///   - now: The wall clock, milliseconds since 1970.
  ///   - room: The memory for the states of the packets' records. `needsMemory` is thrown if it is
  ///     not enough.
  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, room: IngestRoom
  ) async throws(StoreError) -> IngestBatch

  /// Returns one page of the pull list, encoded for the wire. A refused cursor is a `Problem`.
  func changes(
    in space: Int64, _ request: PullRequest, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem>

  /// Puts a schema in force from the next sequence on, and notifies devices by their pull lists.
  /// `document.version` is one more than the version it replaces, or 0 for the next one. Returns
  /// the schema in force, or the reason of the refusal, which names existing records that do not
  /// fit, or rules that the document would drop. With `onlyChecks` nothing is changed.
  func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, consent: SchemaConsent, onlyChecks: Bool,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<SpaceSchema, Problem>

  /// Releases some of the room of deleted rows to the system.
  func reclaim() async throws(StoreError) -> ReclaimStep

  /// Prevents the other nodes of this store from collecting content, or (exclusively) from
  /// publishing too, until the returned value is released. `nil` if no other node can use the
  /// store.
  func lockContent(isExclusive: Bool) async throws(StoreError) -> (any Sendable)?

  /// The work of this process.
  var counts: StoreCounts { get }

  /// Throws unless the store can serve now.
  func check() async throws(StoreError)

  /// Removes the unfinished work left by an ended process. The only server of the store calls it at
  /// the start.
  func recover() async throws(StoreError)

  /// Finishes the calls under way and closes.
  func close() async
}

extension SyncStore {
  /// Applies packets with the memory in which any packet can be applied.
  package func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64
  ) async throws(StoreError) -> IngestBatch {
    try await ingest(packets, into: space, now: now, room: .sliced)
  }

  /// Puts a schema in force.
  package func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64,
    consent: SchemaConsent = SchemaConsent(), by mark: AuditMark? = nil
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    try await applySchema(
      document, to: space, now: now, consent: consent, onlyChecks: false, by: mark)
  }

  /// Decides about a schema like ``applySchema(_:to:now:consent:by:)``, and changes nothing.
  /// Returns the schema that would be in force.
  package func checkSchema(
    _ document: SpaceSchema, of space: Int64, now: Int64, consent: SchemaConsent
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    try await applySchema(
      document, to: space, now: now, consent: consent, onlyChecks: true, by: nil)
  }
}

// A store of one process.
extension SyncStore {
  package func lockContent(isExclusive: Bool) async throws(StoreError) -> (any Sendable)? { nil }
  package var counts: StoreCounts { StoreCounts() }
  package func recover() async throws(StoreError) {}
}
