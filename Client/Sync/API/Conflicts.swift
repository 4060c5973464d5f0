import FerryProtocol
import Synchronization

/// How a conflict is answered.
public enum ConflictAnswer: Sendable, Equatable {
  /// What this device wrote.
  case keepLocal
  /// What the others wrote.
  case keepRemote
  /// Something else.
  case set([Column])
}

/// A value that lost against another and is kept.
public struct KeptConflict: Sendable, Equatable, Identifiable {
  /// Names the conflict on this replica.
  public var number: Int64
  /// When this device learnt of it, milliseconds since 1970.
  public var noticedAt: Int64
  /// The operation that decided it, or took part in it.
  public var operation: OperationID
  /// The record.
  public var key: RecordKey
  /// The column and value that lost, and the stamps of both sides.
  public var conflict: Conflict
  /// Whether this replica wrote the value that lost, under whatever name it had.
  public var isLosersOwn: Bool
  /// Whether this replica wrote what stood against it.
  public var isWinnersOwn: Bool
  /// When a question was answered, here or elsewhere, milliseconds since 1970.
  public var settledAt: Int64?

  public var id: Int64 { number }

  /// Whether the user is to decide, and nobody has.
  public var isOpen: Bool { conflict.isQuestion && settledAt == nil }
}

extension Replica {
  /// Values that lost against others, newest first.
  ///
  /// - Parameter openOnly: only questions that nobody has answered.
  public func conflicts(
    limit: Int = 1_000, openOnly: Bool = false
  ) async throws -> [KeptConflict] {
    try await typed {
      try await thread.run { try $0.conflicts(limit: limit, openOnly: openOnly) }
    }
  }

  /// Answers a conflict. The answer is an ordinary operation, sent with the next sync, and ends the
  /// question on all devices.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` where there is no such conflict, or a column that the
  ///   table does not have; ``ReplicaError/database(_:code:)`` where the table refuses the value.
  public func resolve(_ number: Int64, _ answer: ConflictAnswer) async throws {
    try await typed { try await thread.run { try $0.resolve(number, answer) } }
    wakeWatchers()
  }

  /// Open questions first, then each conflict as syncs of this replica object bring it. Ends when
  /// nobody listens any more.
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

  /// Hands what has been noted since to those that listen.
  func tellConflicts() async throws {
    guard let last = conflictListeners.oldest else { return }
    conflictListeners.tell(try await thread.run { try $0.conflicts(after: last) })
  }
}

/// Who listens to conflicts, and up to which each has been told.
final class ConflictListeners: Sendable {
  private struct Listener {
    let continuation: AsyncThrowingStream<KeptConflict, any Error>.Continuation
    /// `nil` until its open questions have been told.
    var told: Int64?
  }

  private let state = Mutex((next: 0, listeners: [Int: Listener]()))

  /// The earliest conflict up to which somebody has been told; `nil` when nobody listens.
  var oldest: Int64? { state.withLock { $0.listeners.values.compactMap(\.told).min() } }

  func add(_ continuation: AsyncThrowingStream<KeptConflict, any Error>.Continuation) -> Int {
    state.withLock { state in
      state.next += 1
      state.listeners[state.next] = Listener(continuation: continuation)
      return state.next
    }
  }

  func remove(_ number: Int) { state.withLock { _ = $0.listeners.removeValue(forKey: number) } }

  func start(_ number: Int, with open: [KeptConflict], newest: Int64) {
    state.withLock { state in
      for conflict in open { state.listeners[number]?.continuation.yield(conflict) }
      state.listeners[number]?.told = newest
    }
  }

  func tell(_ conflicts: [KeptConflict]) {
    state.withLock { state in
      for number in state.listeners.keys.sorted() {
        guard let told = state.listeners[number]?.told else { continue }
        for conflict in conflicts where conflict.number > told {
          state.listeners[number]?.continuation.yield(conflict)
          state.listeners[number]?.told = conflict.number
        }
      }
    }
  }
}
