import Foundation
import Synchronization

/// The operating system's randomness, fetched for many words at once. A system call for each
/// operation's id would take longer than recording the operation.
package final class EntropyPool: Sendable {
  /// The words of one call: getentropy(3) returns 256 bytes at most.
  private static let words = 32

  private let unused = Mutex<[UInt64]>([])

  package init() {}

  /// Returns a word different from those of all earlier calls.
  @Sendable package func next() -> UInt64 {
    unused.withLock { unused in
      if unused.isEmpty { unused = Self.fetch() }
      return unused.popLast() ?? UInt64.random(in: .min ... .max)
    }
  }

  private static func fetch() -> [UInt64] {
    [UInt64](unsafeUninitializedCapacity: words) { buffer, count in
      let bytes = UnsafeMutableRawBufferPointer(buffer)
      count = getentropy(bytes.baseAddress, bytes.count) == 0 ? words : 0
    }
  }
}
