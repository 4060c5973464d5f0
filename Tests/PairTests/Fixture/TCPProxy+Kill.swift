import FerryTestSupport
import Foundation
import Testing

extension TCPProxy {
  /// Kills a process that reads from this proxy alone, and waits for the end of its connections.
  /// Returns the bytes of responses that it and all earlier readers have really read.
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
