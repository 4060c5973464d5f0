import FerryProtocol
import Synchronization

/// The user's answer to a conflict.
public enum ConflictAnswer: Sendable, Equatable {
  /// The value written by this device.
  case keepLocal
  /// The value written by other devices.
  case keepRemote
  /// Other values.
  case set([Column])
}

/// A lost value, kept for the user.
public struct KeptConflict: Sendable, Equatable, Identifiable {
  /// Names the conflict on this replica.
  public var number: Int64
  /// When this device learned of the conflict, in milliseconds since 1970.
  public var noticedAt: Int64
  /// The operation that decided the conflict, or took part in it.
  public var operation: OperationID
  /// The record.
  public var key: RecordKey
  /// The lost column and value, and the stamps of both sides.
  public var conflict: Conflict
  /// True if this replica wrote the losing value, under any device identifier it has had.
  public var isLosersOwn: Bool
  /// True if this replica wrote the winning value.
  public var isWinnersOwn: Bool
  /// When a question was answered, here or elsewhere, milliseconds since 1970.
  public var resolvedAt: Int64?
  /// The record of the local row with the unique value, if the conflict's record waits for this
  /// value. Answer with another value for the waiting record, or change the holder.
  public var holder: Name?

  public var id: Int64 { number }

  /// True if the conflict waits for the user's decision.
  public var isOpen: Bool { conflict.isQuestion && resolvedAt == nil }
}

/// The present state of a conflict's place. It is the winning side, unless a later write has
/// replaced it.
public enum PresentSide: Sendable, Equatable {
  /// The value of the conflict's column.
  case value(Value)
  /// The record exists; for a conflict about the record's existence.
  case exists
  /// The record does not exist here.
  case absent
  /// The table, or the column, does not exist here.
  case unknown
}

extension Replica {
  /// Returns the present states of conflicts' places, in the same order, from one snapshot.
  ///
  /// ```swift
  /// let kept = try await replica.conflicts()
  /// let present = try await replica.presentSides(of: kept)
  /// ```
  public func presentSides(of conflicts: [KeptConflict]) async throws -> [PresentSide] {
    try await thread.call { try $0.conflictAnswers.presentSides(of: conflicts) }
  }

  /// Returns lost values, newest first.
  ///
  /// - Parameter openOnly: true to return only questions without an answer.
  public func conflicts(
    limit: Int = 1_000, openOnly: Bool = false
  ) async throws -> [KeptConflict] {
    try await conflicts(limit: limit, openOnly: openOnly) { _ in true }
  }

  /// Returns lost values in some tables, newest first.
  package func conflicts(
    limit: Int, openOnly: Bool, in isIncluded: @escaping @Sendable (Name) -> Bool
  ) async throws -> [KeptConflict] {
    try await thread.call {
      try $0.conflictLog.resolveQuestionsByOwnWrites()
      return try $0.conflicts.newest(
        limit, openOnly: openOnly, own: $0.ownNames(), in: isIncluded)
    }
  }

  /// Returns the conflict with this number; `nil` if there is none.
  package func conflict(_ number: Int64) async throws -> KeptConflict? {
    try await thread.call { try $0.conflicts.conflict(number, own: $0.ownNames()) }
  }

  /// Answers a conflict with an ordinary operation. The next sync sends it, and it closes the
  /// question on all devices. If you choose a write that lost against another device's delete, the
  /// whole record comes back.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if there is no such conflict;
  ///   ``ReplicaError/cannotAnswer(_:advice:)`` if the answer has no value for the conflict's
  ///   column, or a column missing from the table; ``ReplicaError/database(_:code:)`` if the table
  ///   rejects the value.
  public func resolve(_ number: Int64, _ answer: ConflictAnswer) async throws {
    _ = try await decide(number, answer)
  }

  /// Answers a conflict. Returns true if there is an operation to send: a record that stays deleted
  /// needs none.
  package func decide(_ number: Int64, _ answer: ConflictAnswer) async throws -> Bool {
    let isRecorded = try await thread.call { try $0.conflictAnswers.resolve(number, answer) }
    wakeWatchers()
    return isRecorded
  }

  /// Returns a stream of the open questions, then of each conflict found by a sync of this replica
  /// object. The stream ends when the consumer stops listening, or when the replica is closed.
  public func conflictUpdates() -> AsyncThrowingStream<KeptConflict, any Error> {
    AsyncThrowingStream { continuation in
      let listener = conflictListeners.add(continuation)
      continuation.onTermination = { [conflictListeners] _ in conflictListeners.remove(listener) }
      Task {
        do {
          let open = try await conflicts(openOnly: true)
          let newest = try await conflicts(limit: 1).first?.number ?? 0
          conflictListeners.start(listener, with: open.reversed(), newest: newest)
        } catch {
          continuation.finish(throwing: error)
        }
      }
    }
  }

  /// Sends the conflicts stored since the last call to the listeners.
  func notifyConflicts() async throws {
    guard let last = conflictListeners.oldest else { return }
    let noted = try await thread.run { try $0.conflicts.noted(after: last, own: $0.ownNames()) }
    conflictListeners.notify(noted)
  }
}

/// The listeners to conflicts, each with the last delivered conflict.
final class ConflictListeners: Sendable {
  private struct Listener {
    let continuation: AsyncThrowingStream<KeptConflict, any Error>.Continuation
    /// The last conflict delivered to the listener; `nil` before the open questions.
    var reported: Int64?
  }

  private let state = Mutex((next: 0, listeners: [Int: Listener]()))

  /// The lowest number of the listeners' last received conflicts; `nil` if there is no listener.
  var oldest: Int64? { state.withLock { $0.listeners.values.compactMap(\.reported).min() } }

  func add(_ continuation: AsyncThrowingStream<KeptConflict, any Error>.Continuation) -> Int {
    state.withLock { state in
      state.next += 1
      state.listeners[state.next] = Listener(continuation: continuation)
      return state.next
    }
  }

  /// Ends all streams.
  func close() {
    let listeners = state.withLock { Array($0.listeners.values) }
    for listener in listeners { listener.continuation.finish() }
  }

  func remove(_ number: Int) { state.withLock { _ = $0.listeners.removeValue(forKey: number) } }

  func start(_ number: Int, with open: [KeptConflict], newest: Int64) {
    state.withLock { state in
      for conflict in open { state.listeners[number]?.continuation.yield(conflict) }
      state.listeners[number]?.reported = newest
    }
  }

  func notify(_ conflicts: [KeptConflict]) {
    state.withLock { state in
      for number in state.listeners.keys.sorted() {
        guard let reported = state.listeners[number]?.reported else { continue }
        for conflict in conflicts where conflict.number > reported {
          state.listeners[number]?.continuation.yield(conflict)
          state.listeners[number]?.reported = conflict.number
        }
      }
    }
  }
}
