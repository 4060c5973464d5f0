import FerryPlatform
import Synchronization

/// The turns of calls to assign places in a space's order: one at a time in each space.
final class SpaceTurns: Sendable {
  private struct Entry {
    let turn = AsyncTurn()
    var callers = 0
  }

  private let entries = Mutex<[Int64: Entry]>([:])

  /// Runs `body` when all earlier calls of the space have ended.
  func perform<Value, Failure: Error>(
    _ space: Int64, _ body: () async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    let turn = entries.withLock { entries in
      entries[space, default: Entry()].callers += 1
      return entries[space]?.turn ?? AsyncTurn()
    }
    defer { leave(space) }
    let result = await turn.perform { () async -> Result<Value, Failure> in
      do throws(Failure) {
        return .success(try await body())
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  private func leave(_ space: Int64) {
    entries.withLock { entries in
      entries[space]?.callers -= 1
      if entries[space]?.callers == 0 { entries[space] = nil }
    }
  }
}
