/// A behaviour, the patch, and how calls went since the app started.
public struct BehaviourStatus: Sendable, Equatable {
  public let name: String
  /// The sequence of the patch in force; `nil` while the native code runs.
  public internal(set) var patch: Int64?
  /// When the patch ends, in milliseconds since 1970.
  public internal(set) var expires: Int64?
  /// True if the patch failed too often: the native code runs.
  public internal(set) var isDisabled = false
  /// Calls answered by a patch.
  public internal(set) var patchedCalls = 0
  /// Calls answered by the native code because the patch failed.
  public internal(set) var failedCalls = 0
  /// The last reason of a failed call.
  public internal(set) var lastFailure: PatchFailure?
}

/// A call with a failed patch.
public struct PatchFallback: Sendable, Equatable {
  public let behaviour: String
  /// The patch's sequence.
  public let sequence: Int64
  public let reason: PatchFailure
  /// Milliseconds since 1970.
  public let time: Int64
}

/// The patches now in force, and the rejected ones.
public struct PatchReport: Sendable, Equatable {
  public struct Loaded: Sendable, Equatable {
    public let behaviour: String
    public let sequence: Int64
    /// Milliseconds since 1970.
    public let expires: Int64
    /// The patch's file, or the place in the list.
    public let source: String
    /// True if it failed too often before: the native code runs.
    public let isDisabled: Bool
  }

  public struct Refused: Sendable, Equatable {
    /// The patch's file, or the place in the list.
    public let source: String
    public let reason: PatchRefusal
  }

  public internal(set) var loaded: [Loaded] = []
  public internal(set) var refused: [Refused] = []
}

/// The reason why patches could not be loaded at all.
public enum PatchError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The ledger could not be read or written. Without it, an older patch could return.
  case ledger(path: String, reason: String)
  /// The folder with patches could not be read.
  case folder(path: String, reason: String)

  public var description: String {
    switch self {
    case .ledger(let path, let reason): "the ledger of patches, \(path): \(reason)"
    case .folder(let path, let reason): "the folder of patches, \(path): \(reason)"
    }
  }
}
