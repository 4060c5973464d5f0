import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerrySQLite

/// The frame of each call: the errors, and the end when the replica is suspended or closed.
extension Replica {
  /// Runs requests. They end as cancelled when the replica is suspended or closed.
  func exchange<T: Sendable>(
    _ body: @escaping @Sendable () async throws -> T
  ) async throws -> T {
    try await typed {
      try thread.gate.check()
      do {
        return try await thread.gate.whileOpen(body)
      } catch is StoppedWork {
        throw ReplicaError.cancelled
      }
    }
  }

  /// Runs `body`; turns errors into ``ReplicaError``, except errors thrown by the caller's closure.
  func typed<T: Sendable>(_ body: () async throws -> T) async throws -> T {
    do {
      return try await body()
    } catch let error as SQLiteError {
      throw ReplicaError(error)
    } catch let error as DatabaseError {
      throw ReplicaError(error)
    } catch let error as MalformedMessage {
      throw ReplicaError(error)
    } catch let error as ForeignAnswer {
      throw ReplicaError(error)
    } catch let error as TransportError {
      throw ReplicaError(error)
    } catch let error as NetworkError {
      throw ReplicaError(error)
    } catch let error as StoppedWork {
      throw ReplicaError(error)
    } catch is CancellationError {
      throw ReplicaError.cancelled
    }
  }
}
