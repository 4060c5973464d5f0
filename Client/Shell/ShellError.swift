/// The shell cannot start.
public enum ShellError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The port cannot be used, with the system's reason.
  case cannotListen(UInt16, String)

  public var description: String {
    switch self {
    case .cannotListen(let port, let reason): "port \(port) of 127.0.0.1: \(reason)"
    }
  }
}
