/// The reason why a file cannot be imported. Nothing is written if it is thrown.
package struct ImportError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A description of the problem, with the row or byte.
  package let reason: String

  package init(_ reason: String) { self.reason = reason }

  package var description: String { reason }
}
