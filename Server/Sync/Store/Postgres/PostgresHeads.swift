import FerryPlatform
import FerryPostgres
import FerryProtocol
import Synchronization

/// The heads reported to a node. It listens to the channels of the needed spaces. It reads their
/// heads when it begins to listen to a channel, so no move between is lost.
final class PostgresHeads: Sendable {
  let moves: HeadMoves
  let channels: PostgresChannels
  /// Of this run; they get the same moves.
  let timelines: OwnTimelines
  private let received = Atomic(0)
  private let bell = Mutex(Bell())

  private static let read = PostgresStatement(
    "heads", "SELECT id, head FROM spaces WHERE id = ANY($1)")
  private static let notify = PostgresStatement(
    "notify",
    """
    SELECT pg_notify(t.channel, t.payload)
    FROM unnest($1::text[], $2::text[]) AS t(channel, payload)
    """)

  /// - Parameter random: The source of names of timelines.
  init(random: @escaping @Sendable () -> UInt64) throws(PostgresError) {
    let channels = try PostgresChannels()
    let moves = HeadMoves { change in
      switch change {
      case .begin(let channel): channels.listen(to: channel)
      case .end(let channel): channels.unlisten(from: channel)
      }
    }
    (self.moves, self.channels) = (moves, channels)
    timelines = OwnTimelines(random: random) { moves.markWritten($0) }
  }

  var notifications: NodeNotifications {
    NodeNotifications(
      received: received.load(ordering: .relaxed), channels: channels.countInForce)
  }

  // MARK: Moves

  /// Notifies the other nodes after the commit; the move is durable whether or not they receive it.
  /// Within the transaction, PostgreSQL would hold a lock of the whole cluster until it is on the
  /// disk. Then all spaces would wait for each other.
  ///
  /// - Parameter pool: Connections to the server where the nodes listen.
  func notify(_ move: HeadMove, through pool: PostgresPool) {
    moves.publish(move)
    bell.withLock { bell in
      guard bell.add(move) else { return }
      bell.ringing = Task { await ring(through: pool) }
    }
  }

  private func ring(through pool: PostgresPool) async {
    var failures = 0
    while var moves = bell.withLock({ $0.next() }) {
      do {
        if failures > 0 {
          // After a failover, the database may lack the commits of these moves.
          moves = try await Self.heads(of: moves.map(\.space), in: .authentication, from: pool)
        }
        try await Self.announce(moves, through: pool)
        failures = 0
      } catch {
        failures += 1
        let goesOn = bell.withLock { bell in
          // Other nodes find the remaining moves at their next sweep.
          guard failures < Self.attempts, !bell.isFinishing else { return false }
          for move in moves { _ = bell.add(move) }
          return true
        }
        if goesOn { try? await Task.sleep(for: Self.pause) } else { failures = 0 }
      }
    }
  }

  private static func announce(
    _ moves: [HeadMove], through pool: PostgresPool
  ) async throws {
    let channels = PostgresArray(moves.map { HeadWatch.channel(of: $0.space) })
    let payloads = PostgresArray(moves.map(\.payload))
    _ = try await pool.run(in: .authentication) { connection in
      try connection.query(notify, [.array(channels), .array(payloads)]).count
    }
  }

  /// Waits until the other nodes are notified of all moves, and ends the streams of moves. A failed
  /// notification is not sent again.
  func finish() async {
    bell.withLock { $0.isFinishing = true }
    while let ringing = bell.withLock({ $0.isRinging ? $0.ringing : nil }) {
      await ringing.value
    }
    moves.finish()
  }

  /// Failures in a row after which moves are given up.
  private static let attempts = 5
  private static let pause = Duration.milliseconds(200)

  /// Handles a notification.
  func receive(_ payload: String) {
    received.add(1, ordering: .relaxed)
    guard let move = HeadMove(payload: payload), moves.needs(move.space) else { return }
    timelines.update(move)
    moves.publish(move)
  }

  /// Passes on the heads of the needed spaces of new channels.
  func catchUp(on channels: [String], from pool: PostgresPool) async {
    let spaces = moves.neededSpaces(on: channels)
    guard let heads = try? await Self.heads(of: spaces, in: .authentication, from: pool) else {
      return  // The next sweep reads them.
    }
    for move in heads { timelines.update(move) }
    moves.republish(heads)
  }

  /// Passes on the heads of all needed spaces that differ from the last ones.
  func sweep(_ pool: PostgresPool) async {
    let spaces = moves.neededSpaces
    let heads = (try? await Self.heads(of: spaces, in: .upkeep, from: pool)) ?? []
    for move in heads { timelines.update(move) }
    moves.correct(heads)
  }

  private static func heads(
    of spaces: [Int64], in lane: PoolLane, from pool: PostgresPool
  ) async throws -> [HeadMove] {
    if spaces.isEmpty { return [] }
    return try await pool.run(in: lane) { connection in
      try connection.query(read, [.array(PostgresArray(spaces))]).map {
        HeadMove(space: try $0.int8(0), head: try $0.int8(1))
      }
    }
  }
}

extension PostgresHeads {
  /// The moves to report to other nodes; pure.
  ///
  /// One notification is under way at a time. Moves that come meanwhile go together with the next
  /// one, of each space the last.
  ///
  /// ```swift
  /// var bell = PostgresHeads.Bell()
  /// bell.add(HeadMove(space: 1, head: 7))  // true: the caller notifies until `next()` is nil
  /// bell.add(HeadMove(space: 1, head: 8))  // false
  /// bell.next()                            // [HeadMove(space: 1, head: 8)]
  /// bell.next()                            // nil
  /// ```
  struct Bell {
    private var waiting: [Int64: SequenceNumber] = [:]
    /// True if a notification is under way, or begins.
    private(set) var isRinging = false
    /// The notifying under way.
    fileprivate var ringing: Task<Void, Never>?
    /// True if a failed notification is not sent again.
    fileprivate var isFinishing = false

    /// Adds a move. Returns whether the caller has to notify, since nobody does.
    mutating func add(_ move: HeadMove) -> Bool {
      waiting[move.space] = max(move.head, waiting[move.space] ?? 0)
      defer { isRinging = true }
      return !isRinging
    }

    /// Returns the moves of the next notification, by space; `nil` if there are none. Then the
    /// notifying is over.
    mutating func next() -> [HeadMove]? {
      guard !waiting.isEmpty else {
        isRinging = false
        return nil
      }
      defer { waiting = [:] }
      return waiting.sorted { $0.key < $1.key }.map { HeadMove(space: $0.key, head: $0.value) }
    }
  }
}

extension HeadMove {
  /// The message between nodes: `space:head`.
  var payload: String { "\(space):\(head)" }

  init?(payload: String) {
    let parts = payload.words(at: ":")
    guard parts.count == 2, let space = Int64(parts[0]), let head = Int64(parts[1]) else {
      return nil
    }
    self.init(space: space, head: head)
  }
}
