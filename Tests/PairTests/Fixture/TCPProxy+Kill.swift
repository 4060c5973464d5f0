import FerryTestSupport
import Foundation
import Testing

extension TCPProxy {
  /// Kills a process connected to this proxy alone, and waits until the process's connections end.
  /// Returns the bytes of responses really read by this and all earlier readers.
  func kill(
    _ reader: ChildProcess, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Int {
    try await reader.freeze()
    let read = try await readByteCountAtRest()
    reader.send(SIGKILL)
    let status = try await reader.exitStatus()
    #expect(status == .killed(signal: SIGKILL), sourceLocation: sourceLocation)
    set(LinkConditions())
    try await eventually("its connections to end") { connectionCount == 0 }
    return read
  }
}
