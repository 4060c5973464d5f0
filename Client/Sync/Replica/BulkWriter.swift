import FerryPersistence
import FerryPlatform

/// Runs transactions one after another. Valid only inside the closure it is passed to.
///
/// ```swift
/// try await replica.writeInBulk { writer in
///   for file in files where !writer.isCancelled {
///     try writer.transaction { try $0.execute("INSERT INTO files(path) VALUES (?)", [.text(file)]) }
///   }
/// }
/// ```
public final class BulkWriter {
  private let file: ReplicaFile
  private let cancelled: CancellationFlag

  init(file: ReplicaFile, cancelled: CancellationFlag) {
    self.file = file
    self.cancelled = cancelled
  }

  /// True after the waiting task was cancelled.
  public var isCancelled: Bool { cancelled.isSet }

  /// Runs `body` in one transaction, as ``Replica/write(_:)`` does.
  ///
  /// - Returns: the result of `body`.
  /// - Throws: the error of `body`, after the transaction was rolled back; ``DatabaseError``.
  @discardableResult
  public func transaction<T>(_ body: (Database) throws -> T) throws -> T {
    defer { file.reporter.report() }
    return try file.write(body)
  }
}
