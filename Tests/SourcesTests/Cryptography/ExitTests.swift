import FerryCryptography
import FerryTestSupport
import Foundation
import Testing

/// Processes that end while they use the module.
@Suite("The end of a process", .hangLimit)
struct ExitTests {
  @Test("a process exits while its other threads compute hashes", arguments: 1...3)
  func hashes(_ round: Int) async {
    await #expect(processExitsWith: .success) {
      let begun = DispatchSemaphore(value: 0)
      for _ in 0..<4 {
        Thread {
          _ = SHA256.digest(of: [1])
          begun.signal()
          while true { _ = SHA256.digest(of: [2]) }
        }.start()
      }
      for _ in 0..<4 { begun.wait() }
      exit(EXIT_SUCCESS)
    }
  }
}
