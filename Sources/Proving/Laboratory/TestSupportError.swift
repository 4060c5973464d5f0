import Foundation

/// An error in a test's surroundings, or a wait that timed out.
package struct TestSupportError: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }

  /// Returns the C library's reason for the last failed call.
  static func posix(_ what: String, _ code: Int32 = errno) -> TestSupportError {
    TestSupportError("\(what): \(String(cString: strerror(code)))")
  }
}
