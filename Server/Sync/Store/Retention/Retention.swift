import FerryProtocol

/// The duration for which a space stores the history and tombstones that devices may still need.
package struct Retention: Sendable, Equatable {
  /// Milliseconds, never negative; `nil` to keep everything for ever.
  package let milliseconds: Int64?

  package init(milliseconds: Int64?) { self.milliseconds = milliseconds.map { max(0, $0) } }

  /// Nothing is ever pruned.
  package static let forever = Retention(milliseconds: nil)

  /// The retention of new spaces: 90 days. A device pulls everything again after a longer absence.
  package static let standard = Retention(milliseconds: 90 * 86_400_000)

  /// True if devices may send pruned operations again (SPEC.md §13).
  package var isShort: Bool { milliseconds.map { $0 < Limits.confirmedAgeMax } ?? false }

  /// For the audit log.
  var detail: String { milliseconds.map { "\($0) ms" } ?? "forever" }

  /// The longest time between two marks of a moving head.
  package static let markIntervalMax: Int64 = 3_600_000

  /// The shortest time between two marks: a tenth of the retention and at most an hour. History
  /// stays longer than requested by up to this time.
  package var markInterval: Int64 {
    min(Self.markIntervalMax, (milliseconds ?? Self.markIntervalMax * 10) / 10)
  }
}

/// The time at which a head was seen: all up to `sequence` had arrived by then.
package struct HeadTime: Sendable, Equatable {
  package let sequence: SequenceNumber
  /// The server's wall clock, milliseconds since 1970.
  package let at: Int64

  package init(sequence: SequenceNumber, at: Int64) {
    self.sequence = sequence
    self.at = at
  }
}

/// A request to raise a space's retention horizon.
package struct HorizonRequest: Sendable, Equatable {
  /// The server's wall clock, milliseconds since 1970.
  package let now: Int64
  /// The age from which history goes, in milliseconds; 0 is everything, `nil` nothing.
  package let olderThan: Int64?
  /// The shortest time between two marks, in milliseconds.
  package let markInterval: Int64

  package init(now: Int64, keeping retention: Retention) {
    self.now = now
    olderThan = retention.milliseconds
    markInterval = retention.markInterval
  }

  /// Marks at or before this moment are old enough.
  package var cutoff: Int64 {
    guard let olderThan else { return .min }
    return Self.moment(olderThan, before: now)
  }

  /// Chains of devices not seen since are trimmed. They are as old as pruned history, but never
  /// younger than operations stored in devices to send again.
  package var chainCutoff: Int64 {
    olderThan.map { Self.moment(max($0, Limits.confirmedAgeMax), before: now) } ?? .min
  }

  /// Devices not seen since are forgotten: four times as long ago.
  package var deviceCutoff: Int64 {
    guard let olderThan else { return .min }
    let (age, overflow) = max(olderThan, Limits.confirmedAgeMax).multipliedReportingOverflow(by: 4)
    return overflow ? .min : Self.moment(age, before: now)
  }

  private static func moment(_ age: Int64, before now: Int64) -> Int64 {
    let (moment, overflow) = now.subtractingReportingOverflow(age)
    return overflow ? .min : moment
  }
}

/// The facts behind the highest possible retention horizon of a space.
package struct HorizonState: Sendable, Equatable {
  package let head: SequenceNumber
  package let retentionHorizon: SequenceNumber
  /// The newest mark.
  package let newest: HeadTime?
  /// The newest mark at or before the request's cutoff.
  package let oldEnough: HeadTime?

  package init(
    head: SequenceNumber, retentionHorizon: SequenceNumber, newest: HeadTime?, oldEnough: HeadTime?
  ) {
    (self.head, self.retentionHorizon) = (head, retentionHorizon)
    (self.newest, self.oldEnough) = (newest, oldEnough)
  }

  /// Returns the due mark: the head has moved, and enough time has passed. Marks never go back in
  /// time: if a clock goes back, history stays longer, and is never deleted too early.
  package func dueMark(_ request: HorizonRequest) -> HeadTime? {
    let last = newest ?? HeadTime(sequence: retentionHorizon, at: .min)
    guard head > last.sequence else { return nil }
    if let newest, request.now - newest.at < request.markInterval { return nil }
    return HeadTime(sequence: head, at: max(request.now, last.at))
  }

  /// Returns the retention horizon from now on; never lower than it was.
  package func raised(_ request: HorizonRequest) -> RaisedHorizon {
    let goesWhole = request.olderThan == 0
    let raised = goesWhole ? head : max(retentionHorizon, oldEnough?.sequence ?? 0)
    let at = goesWhole ? request.now : oldEnough?.at
    return RaisedHorizon(retentionHorizon: raised, head: head, at: raised > 0 ? at : nil)
  }
}

/// A space's retention horizon after it was raised.
package struct RaisedHorizon: Sendable, Equatable {
  /// Tombstones up to here go, and operations before it.
  package let retentionHorizon: SequenceNumber
  package let head: SequenceNumber
  /// The time by which all up to the retention horizon had arrived, milliseconds since 1970; `nil`
  /// at horizon 0.
  package let at: Int64?

  package init(retentionHorizon: SequenceNumber, head: SequenceNumber, at: Int64?) {
    (self.retentionHorizon, self.head, self.at) = (retentionHorizon, head, at)
  }
}

/// A bounded piece of the work below the retention horizon, done in one transaction.
package struct PruneSlice: Sendable, Equatable {
  /// Operations up to here are gone already; `nil` if unknown.
  package var after: SequenceNumber?
  /// Packets buffered at or before this moment go, milliseconds since 1970.
  package var bufferedBefore: Int64
  /// Chains of devices last seen at or before this moment are trimmed.
  package var chainsBefore: Int64
  /// Devices last seen at or before this moment are forgotten.
  package var devicesBefore: Int64
  /// Rows at most.
  package var rows: Int

  package init(
    after: SequenceNumber? = nil, bufferedBefore: Int64, chainsBefore: Int64 = .min,
    devicesBefore: Int64 = .min, rows: Int
  ) {
    (self.after, self.bufferedBefore, self.rows) = (after, bufferedBefore, rows)
    (self.chainsBefore, self.devicesBefore) = (chainsBefore, devicesBefore)
  }

  /// - Parameter request: The request by which the retention horizon was raised.
  package init(_ request: HorizonRequest, rows: Int) {
    self.init(
      bufferedBefore: request.cutoff, chainsBefore: request.chainCutoff,
      devicesBefore: request.deviceCutoff, rows: rows)
  }
}

/// The counts of deleted rows, in one slice or in many.
package struct PrunedRows: Sendable, Equatable {
  package var operations = 0
  package var tombstones = 0
  package var notices = 0
  /// Packets with an earlier one that never came.
  package var buffered = 0
  /// Devices away for long: chains trimmed, and devices forgotten. Not among ``count``.
  package var devices = 0

  package init(operations: Int = 0, tombstones: Int = 0, notices: Int = 0, buffered: Int = 0) {
    (self.operations, self.tombstones) = (operations, tombstones)
    (self.notices, self.buffered) = (notices, buffered)
  }

  package var count: Int { operations + tombstones + notices + buffered }

  package static func += (sum: inout PrunedRows, part: PrunedRows) {
    sum.operations += part.operations
    sum.tombstones += part.tombstones
    sum.notices += part.notices
    sum.buffered += part.buffered
    sum.devices += part.devices
  }
}

/// The result of a slice.
package enum PruneStep: Sendable, Equatable {
  /// Another server is pruning.
  case busy
  /// Rows were deleted; operations up to `reached` are gone. More may be left unless `isLast`.
  case pruned(PrunedRows, reached: SequenceNumber, isLast: Bool)
}

/// The result of a call to reclaim room.
package enum ReclaimStep: Sendable, Equatable {
  /// Nothing worth reclaiming is left.
  case done
  /// Call it again.
  case more
  /// Another session, such as PostgreSQL's own vacuum, holds a needed table: try again later.
  case busy
}

/// Deleted rows whose room is not reclaimed yet, from one run of the pruner to the next.
package struct ReclaimDebt: Sendable, Equatable {
  /// Fewer rows are not worth reclaiming in any store.
  static let rowsMin = 10_000

  package private(set) var rows = 0

  package init() {}

  package mutating func add(_ rows: PrunedRows) { self.rows += rows.count }

  package mutating func reset() { rows = 0 }

  /// Returns `true` if it is worth the work, which grows with the remaining history. If little of
  /// much is deleted, new rows soon take the room.
  package func isDue(keeping history: SequenceNumber) -> Bool {
    rows >= max(Self.rowsMin, Int(clamping: history / 10))
  }
}
