import FerryPlatform

/// A module's error type. It converts the errors of files and indexes, and keeps their meaning.
package protocol ConvertingError: Error {
  init(converting error: any Error)
}

extension ConvertingError {
  /// Runs `body` with errors of this type.
  package static func converting<T>(_ body: () throws -> T) throws(Self) -> T {
    do { return try body() } catch { throw Self(converting: error) }
  }
}

extension WorkExecutor {
  /// Runs one blocking closure in turn, with errors of one type.
  package func perform<T: Sendable, Failure: ConvertingError>(
    _ failure: Failure.Type, _ body: @escaping @Sendable () throws -> T
  ) async throws(Failure) -> T {
    do { return try await run(body) } catch { throw Failure(converting: error) }
  }
}
