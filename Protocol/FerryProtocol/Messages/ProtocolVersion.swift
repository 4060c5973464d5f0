/// Which version of the protocol a client speaks. It says so with each request, so that a space
/// may ask for a minimum.
public enum ProtocolVersion {
  /// The version of SPEC.md that this code speaks.
  public static let current = 1

  /// The request header that states it, a whole number from 1 up. Without it: 1.
  package static let header = "Ferry-Protocol"
}
