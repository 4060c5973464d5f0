import FerryProtocol

/// Decides how a push continues after an obstacle outside of any one packet: another identifier,
/// another history, or packets that stay buffered.
///
/// It handles each obstacle a limited number of times, each time with a stronger step. So a push
/// ends in progress or names the obstacle.
struct PushRecovery: Equatable {
  /// An obstacle to a push.
  enum Obstacle: Equatable {
    /// The server rejected the device's identifier or cursor.
    case refused(ProblemCode)
    /// The server buffers packets until an earlier one arrives, although all were sent.
    case buffered
  }

  /// A step before everything is sent again.
  enum Step: Equatable {
    case takeIdentity
    case pull
    case pullFromStart
    case giveUp
  }

  /// The most identifiers used by one push.
  static let identitiesMax = 3
  /// The most rejected histories handled by one push.
  static let refusalsMax = 4
  /// How often one push handles buffered packets at most.
  static let waitsMax = 2

  private var identities = 0
  private var refusals = 0
  private var waits = 0

  /// True if packets must go one after the other. In a restarted chain, the server treats an early
  /// packet as a fork if a copy of the device has sent it already (SPEC.md §4).
  private(set) var isOrdered: Bool

  init(isOrdered: Bool) { self.isOrdered = isOrdered }

  mutating func step(after obstacle: Obstacle) -> Step {
    switch obstacle {
    case .refused(let code) where code.needsIdentity: return renewIdentity()
    case .refused: return refused()
    case .buffered:
      waits += 1
      isOrdered = true
      // A pull reports the server's part of this device's chain. If it reports no loss, a new chain
      // waits for nothing.
      return waits > Self.waitsMax ? .giveUp : waits == 1 ? .pull : renewIdentity()
    }
  }

  private mutating func renewIdentity() -> Step {
    identities += 1
    isOrdered = true
    return identities > Self.identitiesMax ? .giveUp : .takeIdentity
  }

  /// Handles a rejected history: the server rolled back since the last pull. The next pull reports
  /// the loss. If it reports none, the device pulls from the start.
  private mutating func refused() -> Step {
    refusals += 1
    isOrdered = true
    return refusals > Self.refusalsMax ? .giveUp : refusals == 1 ? .pull : .pullFromStart
  }
}
