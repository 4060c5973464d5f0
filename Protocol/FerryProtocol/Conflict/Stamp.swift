/// The writer and time of a write, by which two writes to one column are compared.
public struct Stamp: Hashable, Sendable, Comparable {
  /// The writer's hybrid clock.
  public let time: HybridTimestamp
  /// The writer, which breaks ties.
  public let device: DeviceID

  /// Creates a stamp from the given parts.
  public init(time: HybridTimestamp, device: DeviceID) {
    self.time = time
    self.device = device
  }

  public static func < (left: Stamp, right: Stamp) -> Bool {
    (left.time, left.device) < (right.time, right.device)
  }
}

/// The winner of two writes to one column.
package enum Resolution: Sendable, Equatable {
  case existing
  case incoming

  /// Decides by last writer wins: by hybrid clock, ties by device. Client and server both decide by
  /// this function; a write against itself has no effect.
  package static func resolve(existing: Stamp, incoming: Stamp) -> Resolution {
    incoming >= existing ? .incoming : .existing
  }
}

/// A lost value and the winning one (SPEC.md §6), with the stamps of both.
public struct Conflict: Sendable, Equatable {
  /// The column; `nil` if the conflict is about the record's existence.
  public let column: Name?
  /// The lost value.
  public let lost: Value
  /// The writer of the lost value.
  public let loser: Stamp
  /// The writer of the present value.
  public let winner: Stamp
  /// True if the loser is asked for the final value: no rule decided against the lost value.
  public let isQuestion: Bool

  /// Creates a conflict from the given parts.
  public init(
    column: Name?, lost: Value, loser: Stamp, winner: Stamp, isQuestion: Bool = false
  ) {
    self.column = column
    self.lost = lost
    self.loser = loser
    self.winner = winner
    self.isQuestion = isQuestion
  }
}

/// The result of one operation.
public struct Outcome: Sendable, Equatable {
  /// Lost values: this operation's own, or those it overruled.
  public var conflicts: [Conflict]
  /// True if any part of this operation did not take effect.
  public var isOverruled: Bool
  /// For a batch: how many records it has changed or tried to. Their conflicts are their own.
  public var records: Int?
  /// The number of lost values not quoted in ``conflicts``: an answer quotes only so many bytes.
  public var omitted: Int

  /// All values won, and nothing concurrent was overruled.
  public static let applied = Outcome()

  /// Creates an outcome from the given parts.
  public init(
    conflicts: [Conflict] = [], isOverruled: Bool = false, records: Int? = nil, omitted: Int = 0
  ) {
    self.conflicts = conflicts
    self.isOverruled = isOverruled
    self.records = records
    self.omitted = omitted
  }
}
