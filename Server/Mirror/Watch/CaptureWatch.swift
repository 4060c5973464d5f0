/// Decides when a mirror looks for captured writes, and when it sleeps until a notification; pure.
///
/// An awake mirror looks every few milliseconds, and programs send no notification: PostgreSQL
/// commits transactions with `NOTIFY` one by one. An asleep mirror has a lock
/// (``MirrorLedger/lockClass``). A program tries to share it until the end of its transaction, and
/// sends a notification if it cannot.
///
/// - The mirror gets the lock only without programs that have shared it: all of them have ended. So
///   the look after it sees their writes, and no later write comes without a notification.
/// - PostgreSQL releases the lock at any end of the mirror's connection. A mirror looks when it
///   connects.
struct CaptureWatch: Sendable, Equatable {
  enum State: Sendable, Equatable {
    case awake
    /// It has the lock, and looks once more.
    case fallingAsleep
    case asleep
  }

  /// The result of a look.
  enum Found: Sendable, Equatable {
    case nothing
    /// The same as the look before.
    case same
    case new
  }

  enum Event: Sendable, Equatable {
    /// A new connection. Programs can send no notification in a transaction for `PREPARE
    /// TRANSACTION`, so a mirror does not sleep if the server allows these.
    case connected(sleeps: Bool)
    case notified
    /// The pause is over.
    case due
    /// The database's mirrors in this process are others now.
    case changed
    case looked(Found)
    /// It has tried to get the lock.
    case locked(Bool)
  }

  enum Effect: Sendable, Equatable {
    case look, lock, unlock
    /// Nothing more until the next event.
    case wait(Duration)
  }

  /// The pause between two looks while writes come.
  static let pause = Duration.milliseconds(10)
  /// The pause between two looks without new writes, if the mirror cannot sleep.
  static let longPause = Duration.milliseconds(100)
  /// The pause between two looks of an asleep mirror.
  static let sleepPause = Duration.seconds(15)
  /// Looks without new writes before a longer pause, or sleep.
  static let looksMax = 25

  private(set) var state = State.awake
  private var sleeps = false
  /// Looks without new writes.
  private var looks = 0

  /// Returns the effects in their order; the last one is a look, a lock or a wait.
  mutating func handle(_ event: Event) -> [Effect] {
    switch event {
    case .connected(let sleeps):
      self = CaptureWatch()
      self.sleeps = sleeps
      return [.look]
    case .notified, .changed:
      return awake() + [.look]
    case .due:
      return [.look]
    case .looked(let found):
      return looked(found)
    case .locked(true):
      state = .fallingAsleep
      return [.look]
    case .locked(false):
      return [.wait(Self.longPause)]
    }
  }

  private mutating func awake() -> [Effect] {
    let former = state
    (state, looks) = (.awake, 0)
    return former == .awake ? [] : [.unlock]
  }

  private mutating func looked(_ found: Found) -> [Effect] {
    switch (state, found) {
    case (.awake, .new):
      looks = 0
      return [.wait(Self.pause)]
    case (.awake, .same), (.awake, .nothing):
      looks = min(looks + 1, Self.looksMax)
      if looks < Self.looksMax { return [.wait(Self.pause)] }
      return [found == .nothing && sleeps ? .lock : .wait(Self.longPause)]
    case (.fallingAsleep, .nothing), (.asleep, .nothing):
      state = .asleep
      return [.wait(Self.sleepPause)]
    case (.fallingAsleep, _), (.asleep, _):
      return awake() + [.wait(Self.pause)]
    }
  }
}

extension MirrorLedger {
  /// The first number of the advisory locks of asleep mirrors: the bytes `fery`. The second one is
  /// the mirror's; negative for a group.
  static let lockClass = 0x6665_7279

  /// The statement in a trigger's function to notify a mirror if it is asleep.
  static func notification(of mirror: Int64) -> String {
    """
    IF NOT pg_try_advisory_xact_lock_shared(\(lockClass), \(mirror)) THEN
          PERFORM pg_notify('\(channel)', '\(mirror)'); END IF;
    """
  }
}
