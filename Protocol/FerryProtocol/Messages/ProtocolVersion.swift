/// The version of the protocol that a client speaks. Each request states it, so that a space may
/// require a minimum.
public enum ProtocolVersion {
  /// The version of SPEC.md that this code speaks.
  public static let current = 1

  /// The request header that states it, a whole number from 1 up. Without it: 1.
  package static let header = "Ferry-Protocol"
}
