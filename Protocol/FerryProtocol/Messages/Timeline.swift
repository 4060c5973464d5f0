/// A stretch of a space's history that was written without the server going back in between, as
/// PostgreSQL's timelines are. Sixteen hexadecimal digits on the wire.
///
/// Each run of a server begins one with the first operation that it adds, and remembers where. A
/// server that was set back to an earlier copy does not know the timelines that began after the copy,
/// and ends the copy's own where it goes on by itself: by that a cursor of the history that is gone is
/// known, also where the operations at it have been pruned (SPEC.md §18).
public struct Timeline: Hashable, Sendable, CustomStringConvertible {
  /// A random number.
  public let value: UInt64

  /// Wraps the number.
  public init(_ value: UInt64) { self.value = value }

  /// Parses sixteen hexadecimal digits.
  public init?(_ text: some StringProtocol) {
    guard let value = HistoryPrint.parse(text) else { return nil }
    self.value = value
  }

  public var description: String { HistoryPrint.text(value) }
}
