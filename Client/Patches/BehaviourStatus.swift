/// A behaviour, its patch, and how its calls went since the app started.
public struct BehaviourStatus: Sendable, Equatable {
  public let name: String
  /// The sequence of the patch in force; `nil` while the native code runs.
  public internal(set) var patch: Int64?
  /// When the patch ends, in milliseconds since 1970.
  public internal(set) var expires: Int64?
  /// Whether the patch failed too often, so that the native code runs.
  public internal(set) var isDisabled = false
  /// Calls that a patch answered.
  public internal(set) var patchedCalls = 0
  /// Calls that the native code answered because the patch failed.
  public internal(set) var failedCalls = 0
  /// The last reason for that.
  public internal(set) var lastFailure: PatchFailure?
}

/// A call for which a patch failed.
public struct PatchFallback: Sendable, Equatable {
  public let behaviour: String
  /// The patch's sequence.
  public let sequence: Int64
  public let reason: PatchFailure
  /// Milliseconds since 1970.
  public let time: Int64
}

/// The patches that came into force, and those that did not.
public struct PatchReport: Sendable, Equatable {
  public struct Loaded: Sendable, Equatable {
    public let behaviour: String
    public let sequence: Int64
    /// Milliseconds since 1970.
    public let expires: Int64
    /// The file, or the place in the list, that it came from.
    public let source: String
    /// Whether it failed too often before: the native code runs.
    public let isDisabled: Bool
  }

  public struct Refused: Sendable, Equatable {
    /// The file, or the place in the list, that it came from.
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
