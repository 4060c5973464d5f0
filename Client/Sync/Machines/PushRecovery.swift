import FerryProtocol

/// Decides how a push goes on after an obstacle that is not in one packet: another identifier, another
/// history, or packets that wait on the server. Each obstacle is answered a bounded number of times,
/// and by a stronger step each time, so that a push ends in progress or names what stands in its way.
struct PushRecovery: Equatable {
  /// What stands in the way.
  enum Obstacle: Equatable {
    /// The server refused the device's identifier or its cursor.
    case refused(ProblemCode)
    /// Packets wait on the server for an earlier one, and everything was sent.
    case buffered
  }

  /// What to do before everything is sent again.
  enum Step: Equatable {
    case takeIdentity
    case pull
    case pullFromStart
    case giveUp
  }

  /// Identifiers that one push may take.
  static let identitiesMax = 3
  /// Refused histories that one push answers.
  static let refusalsMax = 4
  /// How often one push answers that packets wait.
  static let waitsMax = 2

  private var identities = 0
  private var refusals = 0
  private var waits = 0

  /// Whether packets have to go one after the other. In a chain that begins again, a packet that
  /// overtakes one which a copy of the device has sent looks like a fork to the server (SPEC.md §4).
  private(set) var isOrdered: Bool

  init(isOrdered: Bool) { self.isOrdered = isOrdered }

  mutating func step(after obstacle: Obstacle) -> Step {
    switch obstacle {
    case .refused(let code) where code.needsIdentity: return takeIdentity()
    case .refused: return refused()
    case .buffered:
      waits += 1
      isOrdered = true
      // A pull tells what the server has of this device's chain. Where it tells of no loss, a new
      // chain waits for nothing.
      return waits > Self.waitsMax ? .giveUp : waits == 1 ? .pull : takeIdentity()
    }
  }

  private mutating func takeIdentity() -> Step {
    identities += 1
    isOrdered = true
    return identities > Self.identitiesMax ? .giveUp : .takeIdentity
  }

  /// The server was restored from a backup since the pull before. The next pull tells what it lost;
  /// where it tells nothing, all is pulled from the start.
  private mutating func refused() -> Step {
    refusals += 1
    isOrdered = true
    return refusals > Self.refusalsMax ? .giveUp : refusals == 1 ? .pull : .pullFromStart
  }
}
