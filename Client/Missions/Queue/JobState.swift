/// The state of a job: a mission, or a download (SPEC.md §21).
public enum JobState: String, Sendable, CaseIterable {
  /// It waits for its turn, for another job, or for the next attempt.
  case ready
  /// The content is being fetched; it may wait for a connection.
  case downloading
  /// Paused with all fetched parts until the user resumes it.
  case paused
  /// Cancelled by the user: the fetched parts are gone.
  case cancelled
  /// The content could not be fetched: the fetched parts are gone.
  case failed
  /// Complete and checked.
  case done

  /// True if the job neither continues nor waits for the user.
  public var isFinal: Bool { self == .cancelled || self == .failed || self == .done }
}

/// The state of a mission on this device.
public typealias MissionState = JobState

/// The state of a download.
public typealias DownloadState = JobState
