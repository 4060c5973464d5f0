/// Why a file cannot be imported. Nothing has been written when it is thrown.
package struct ImportError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What is wrong, with the row or byte where it is.
  package let reason: String

  package init(_ reason: String) { self.reason = reason }

  package var description: String { reason }
}
