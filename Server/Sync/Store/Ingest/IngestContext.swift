import FerryProtocol

/// Everything of one space needed by the rules for one batch of packets, loaded under the space's
/// lock.
package struct IngestContext: Sendable {
  package var space: SpaceState
  /// The server's wall clock, milliseconds since 1970, read after the lock.
  package var now: Int64
  package var limits: Limits
  package var quotas: Quotas
  /// True if a token was ever made; loaded if a packet needs an open server.
  package var hasHadTokens = false
  /// The principals of the batch's devices; a device without a user is absent.
  package var owners: [DeviceID: Principal] = [:]
  /// The use of the space by the accounts of the batch's senders, and by ``Principal/anonymous``.
  package var usage: [Principal: Usage] = [:]
  /// The use of the space by all principals together.
  package var total = Usage()
  /// The chains of the batch's devices; a new device has none.
  package var chains: [DeviceID: DeviceChain] = [:]
  /// Waiting packets of the batch's devices.
  package var buffered: [BufferedPacket] = []
  /// Bodies of buffered packets, as requested by a plan.
  package var bodies: [BufferedKey: Packet] = [:]
  /// The requested operations, if in the space's history.
  package var known: [OperationID: KnownOperation] = [:]
  /// The ends of the timelines of cursors before the retention horizon: `.max` for a timeline that
  /// goes on. Timelines unknown in the space are absent.
  package var timelineEnds: [Timeline: SequenceNumber] = [:]
  /// The records touched by the batch's operations, if they exist.
  package var records: [RecordKey: RecordState] = [:]
  /// Bytes of the states of all touched records, as they are stored.
  package var recordBytes: [RecordKey: Int] = [:]
  /// The memory for states.
  package var room: IngestRoom
  /// True if all states together need more than ``room``. Then ``records`` is empty, and slices of
  /// them are loaded one after the other; see ``IngestSlices``.
  package internal(set) var isSliced = false
  /// The tables of the space with records; loaded if the batch writes to others.
  package var tables: Set<Name>?
  /// The columns written by the batch that their tables lack.
  package var newColumns: [Name: NewColumns] = [:]
  /// The schema of the space; `nil` if it has none.
  package var schema: SpaceSchema?
  /// The record with each unique key, `nil` if there is none; a key without a look-up is absent.
  package var holders: [UniqueClaim: Name?] = [:]
  /// Packets with operations that can never be applied: they stay out of the plan.
  package var refused: [IngestPlan.Source: Problem] = [:]
  /// For each batch operation applied by a plan: the matching records, as stored. Their states are
  /// in ``records``.
  package var matches: [OperationID: [RecordKey]] = [:]

  package init(
    space: SpaceState, now: Int64, limits: Limits, quotas: Quotas = .standard,
    room: IngestRoom = .sliced
  ) {
    self.space = space
    self.now = now
    self.limits = limits
    self.quotas = quotas
    self.room = room
  }
}

/// A space's own row.
package struct SpaceState: Sendable, Equatable {
  package var epoch: Epoch
  /// The newest sequence given.
  package var head: SequenceNumber
  /// The operation at ``head``; `nil` in an empty space.
  package var newest: OperationID?
  /// The history hash after ``newest``.
  package var historyHash: UInt64
  /// The space's hybrid clock: at or past every stamp in the space, independent of the servers'
  /// wall clocks.
  package private(set) var clock: HybridTimestamp
  /// The version of the schema; 0 without a schema.
  package var schemaVersion: Int64
  /// The oldest protocol admitted by the schema.
  package var minimumProtocol: Int
  /// Operations before this one may be gone from the history.
  package var retentionHorizon: SequenceNumber
  /// The timeline of the history; `nil` before the first one.
  package var timeline: Timeline?
  /// The timeline to begin with the next operation; `nil` if this run of the server has begun one.
  package var nextTimeline: Timeline?
  /// The place behind which ``timeline`` begins. `nil` unless it is new.
  package private(set) var timelineStart: SequenceNumber?

  package init(
    epoch: Epoch, head: SequenceNumber = 0, newest: OperationID? = nil,
    historyHash: UInt64 = HistoryHash.empty, clock: HybridTimestamp = .zero,
    schemaVersion: Int64 = 0,
    minimumProtocol: Int = 1, retentionHorizon: SequenceNumber = 0, timeline: Timeline? = nil
  ) {
    self.epoch = epoch
    self.head = head
    self.newest = newest
    self.historyHash = historyHash
    self.clock = clock
    self.schemaVersion = schemaVersion
    self.minimumProtocol = minimumProtocol
    self.retentionHorizon = retentionHorizon
    self.timeline = timeline
  }

  /// Returns the time of an operation on entry into the space. A time ahead of `limit` and of the
  /// clock becomes the clock's next reading. So it never goes below a stamp in the space: a write
  /// stays later than all its author has seen. It never becomes later than it was, so the device's
  /// next write is later still.
  ///
  /// - Parameter limit: The latest time admitted by the server's wall clock.
  package mutating func admit(
    _ time: HybridTimestamp, until limit: HybridTimestamp
  ) -> HybridTimestamp {
    let newest = max(limit, clock)
    let admitted = time > newest ? newest.next : time
    clock = max(clock, admitted)
    return admitted
  }

  /// Returns a time for the server's own writing, past every stamp in the space.
  ///
  /// - Parameter now: The server's wall clock, milliseconds since 1970.
  package mutating func tick(wall now: Int64) -> HybridTimestamp {
    clock = max(HybridTimestamp(milliseconds: now), clock.next)
    return clock
  }

  /// Assigns the next place of the order to an operation.
  ///
  /// - Parameters:
  ///   - time: The time on entry into the space, see ``admit(_:until:)``.
  ///   - base: The newest sequence that the author had seen.
  package mutating func place(
    _ operation: OperationID, at time: HybridTimestamp, base: SequenceNumber
  ) -> SequenceNumber {
    if let next = nextTimeline {
      (timeline, timelineStart, nextTimeline) = (next, head, nil)
    }
    head += 1
    newest = operation
    historyHash = HistoryHash.appending(operation, at: time, base: base, to: historyHash)
    return head
  }
}

/// The progress of a device's applied packets.
package struct DeviceChain: Sendable, Equatable {
  /// The number of packet tails in a chain. An older packet is looked up in the history.
  package static let recentCount = 100

  /// The last operation of the last packet applied.
  package private(set) var tail: OperationID
  /// The last packets' tails, oldest first, the newest one included.
  package private(set) var recent: [OperationID]
  /// Operations of this device in the history.
  package var operations: Int64
  /// True if tails before ``recent`` were forgotten since the device was away for long.
  package private(set) var isTrimmed: Bool

  package init(
    tail: OperationID, recent: [OperationID] = [], operations: Int64 = 0, isTrimmed: Bool = false
  ) {
    self.tail = tail
    self.recent = recent.isEmpty ? [tail] : recent
    self.operations = operations
    self.isTrimmed = isTrimmed
  }

  /// The remaining tails of a device that was away for longer than the retention. It may have sent
  /// as many packets without an answer.
  package static let trimmedCount = 8

  /// True if it has forgotten tails of applied packets.
  package var hasForgotten: Bool { isTrimmed || recent.count >= Self.recentCount }

  package mutating func append(_ tail: OperationID) {
    self.tail = tail
    if recent.count >= Self.recentCount { recent.removeFirst() }
    recent.append(tail)
  }
}

/// The key of a packet for device and server: the device and its last operation.
package struct BufferedKey: Sendable, Hashable, Comparable {
  package let device: DeviceID
  package let tail: OperationID

  package init(device: DeviceID, tail: OperationID) {
    self.device = device
    self.tail = tail
  }

  package static func < (left: BufferedKey, right: BufferedKey) -> Bool {
    (left.device, left.tail) < (right.device, right.tail)
  }
}

/// A waiting packet, without the operations.
package struct BufferedPacket: Sendable, Equatable {
  package let key: BufferedKey
  package let dependency: OperationID?
  package let continues: Bool
  /// Bytes it had on the wire after decompression.
  package let byteCount: Int
  /// The sender's role on arrival.
  package let role: Role

  package init(
    key: BufferedKey, dependency: OperationID?, continues: Bool, byteCount: Int,
    role: Role = .writer
  ) {
    self.key = key
    self.dependency = dependency
    self.continues = continues
    self.byteCount = byteCount
    self.role = role
  }
}

/// An operation in the history.
package struct KnownOperation: Sendable, Equatable {
  package let sequence: SequenceNumber
  /// The device of the chain with which it came.
  package let device: DeviceID
  package let outcome: Outcome
  /// The history hash after it.
  package let historyHash: UInt64

  package init(
    sequence: SequenceNumber, device: DeviceID, outcome: Outcome, historyHash: UInt64
  ) {
    self.sequence = sequence
    self.device = device
    self.outcome = outcome
    self.historyHash = historyHash
  }

  /// The size of a stored outcome up to which it is always loaded, in bytes.
  static let smallOutcome = 1_024

  var place: HistoryPlace { HistoryPlace(sequence: sequence, historyHash: historyHash) }
}
