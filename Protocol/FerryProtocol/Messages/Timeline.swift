/// A stretch of a space's history written by one run of a server while the history did not go back,
/// as PostgreSQL's timelines are. It has sixteen hexadecimal digits on the wire.
///
/// Each run of a server begins one with the first operation added, and remembers its place. A
/// server restored from a backup does not know the timelines begun after the backup. It ends the
/// backup's own timeline if it goes on by itself. So it recognises a cursor of the lost history,
/// even if the operations at it have been pruned (SPEC.md §18).
public struct Timeline: Hashable, Sendable, CustomStringConvertible {
  /// A random number.
  public let value: UInt64

  /// Wraps the number.
  public init(_ value: UInt64) { self.value = value }

  /// Parses sixteen hexadecimal digits.
  public init?(_ text: some StringProtocol) {
    guard let value = HistoryHash.parse(text) else { return nil }
    self.value = value
  }

  public var description: String { HistoryHash.text(value) }
}
