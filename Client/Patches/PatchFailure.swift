/// The reason why a call ran the native code although the behaviour has a patch.
public enum PatchFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// The script threw this, rejected the promise, or could not be read.
  case threw(String)
  /// The call took longer than ``PatchLimits/time``.
  case timeUsedUp
  /// The script used more than ``PatchLimits/memoryBytes``.
  case memoryUsedUp
  /// The script wrote more than ``PatchLimits/outputBytes``.
  case outputTooLarge
  /// The script called services more often than ``PatchLimits/serviceCalls``.
  case tooManyServiceCalls
  /// The result is not the behaviour's.
  case wrongShape(String)
  /// The host ended, or violated the protocol.
  case hostEnded(String)
  /// There is no host, or it could not be started.
  case hostMissing(String)
  /// The host could not confine itself on this system, and ran nothing.
  case notConfined(String)
  /// JavaScript cannot hold the input exactly, or it is larger than ``PatchLimits/inputBytes``.
  case unsuitableInput(String)

  /// True if the patch is to blame. Three such failures in a row disable it.
  public var isFaultOfPatch: Bool {
    switch self {
    case .threw, .timeUsedUp, .memoryUsedUp, .outputTooLarge, .tooManyServiceCalls, .wrongShape,
      .hostEnded:
      true
    case .hostMissing, .notConfined, .unsuitableInput: false
    }
  }

  public var description: String {
    switch self {
    case .threw(let text): "the patch threw “\(text)”"
    case .timeUsedUp: "the patch used up its time"
    case .memoryUsedUp: "the patch used up its memory"
    case .outputTooLarge: "the patch wrote too much"
    case .tooManyServiceCalls: "the patch called services too often"
    case .wrongShape(let text): "the patch's result is not the behaviour's: \(text)"
    case .hostEnded(let text): "the patch's process ended: \(text)"
    case .hostMissing(let text): "there is no ferry-patch to run patches: \(text)"
    case .notConfined(let text): "patches cannot be confined on this system: \(text)"
    case .unsuitableInput(let text): "the input cannot go to a patch: \(text)"
    }
  }
}

/// The limits of one call of a patch.
public struct PatchLimits: Sendable, Equatable {
  /// The time of a call with all service calls.
  public var time: Duration = .seconds(1)
  /// Bytes of the patch's process. The engine itself uses about 23 MiB.
  public var memoryBytes = 96 << 20
  /// Bytes of the input.
  public var inputBytes = 1 << 20
  /// The most bytes that the script may write: the result and the arguments of service calls.
  public var outputBytes = 1 << 20
  /// Service calls.
  public var serviceCalls = 100
  /// The failures in a row that disable a patch.
  public var failuresInARow = 3

  public init() {}
}
