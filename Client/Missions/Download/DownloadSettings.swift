import FerryNetworking
import FerryPlatform
import Foundation

/// The settings of a downloader.
public struct DownloadSettings: Sendable {
  /// The number of concurrent requests for one file.
  public var connections = 4
  /// Bytes of one request's range, at most.
  public var rangeBytes: Int64 = 32 << 20
  /// A file up to this size, in bytes, is requested at once without a range.
  public var wholeBytes: Int64 = 8 << 20
  /// When to repeat a request after a temporary failure. Failures are counted only until a new byte
  /// stays in the file; then the count restarts.
  public var retry = RetryPolicy()
  /// True if a file with hashes of chunks is also checked as a whole at the end. Without it, only
  /// the chunks' hashes prove it.
  public var checksWhole = true
  /// True if a complete file must be on the disk, and not only in the operating system's memory. A
  /// caller that makes many files durable together turns it off.
  public var endsDurable = true
  /// A file smaller than this, in bytes, is fetched again from scratch after an interrupted
  /// download.
  package var marksFrom: Int64 = 1 << 20

  /// Creates the defaults.
  public init() {}
}

/// Opens the transfer of a source with these header fields in the request.
///
/// It returns answers of any status; it follows redirects and limits silence itself. A request with
/// `Accept-Encoding` gets the body as it is on the wire.
public typealias DownloadOpening =
  @Sendable (DownloadSource, TransportHeaders) async throws(TransportError) -> TransportStream

/// The services of the machine for a downloader; a simulation replaces them.
package struct DownloadSurroundings: Sendable {
  /// A clock that never goes back.
  package var steadyClock: @Sendable () -> Duration
  /// Seconds since 1970, for the dates in answers. May jump.
  package var wallClock: @Sendable () -> Int64
  /// The source of the jitter of retries.
  package var random: @Sendable () -> UInt64
  /// Waits; throws when the task is cancelled.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// Identifies one run of the operating system; `nil` if this is impossible.
  package var bootID: @Sendable () -> String?
  /// Makes an executor for blocking work; debuggers show the name.
  package var makeExecutor: @Sendable (String) -> any WorkExecutor
  /// The calls on the file during the download.
  package var files: any FileCalls

  package init(
    steadyClock: @escaping @Sendable () -> Duration, wallClock: @escaping @Sendable () -> Int64,
    random: @escaping @Sendable () -> UInt64,
    sleep: @escaping @Sendable (Duration) async throws -> Void,
    bootID: @escaping @Sendable () -> String?,
    makeExecutor: @escaping @Sendable (String) -> any WorkExecutor,
    files: any FileCalls = SystemFileCalls()
  ) {
    self.steadyClock = steadyClock
    self.wallClock = wallClock
    self.random = random
    self.sleep = sleep
    self.bootID = bootID
    self.makeExecutor = makeExecutor
    self.files = files
  }

  /// The real machine.
  package static var system: DownloadSurroundings {
    DownloadSurroundings(
      steadyClock: { seconds(CLOCK_MONOTONIC) },
      wallClock: { seconds(CLOCK_REALTIME).components.seconds },
      random: { UInt64.random(in: .min ... .max) }, sleep: { try await Task.sleep(for: $0) },
      bootID: Platform.bootIdentifier,
      makeExecutor: { ThreadExecutor(name: $0) })
  }

  private static func seconds(_ clock: clockid_t) -> Duration {
    var now = timespec()
    clock_gettime(clock, &now)
    return .seconds(Int64(now.tv_sec)) + .nanoseconds(Int64(now.tv_nsec))
  }
}
