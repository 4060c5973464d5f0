/// The protocol version of a client. Each request states it, so a space may require a minimum.
public enum ProtocolVersion {
  /// The version of SPEC.md for this code.
  public static let current = 1

  /// The request header with the version, a whole number from 1 up. Without it: 1.
  package static let header = "Ferry-Protocol"
}
