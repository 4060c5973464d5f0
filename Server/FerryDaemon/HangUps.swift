import Foundation

/// The SIGHUP signals of this process, until ``end()``. They do not end the process.
struct HangUps {
  /// Several signals during the handling of one count as one.
  let stream: AsyncStream<Void>
  private let source: any DispatchSourceSignal

  init() {
    let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    self.stream = stream
    #if canImport(Darwin)
      // Sources only observe signals there.
      signal(SIGHUP, SIG_IGN)
    #endif
    source = DispatchSource.makeSignalSource(
      signal: SIGHUP, queue: DispatchQueue(label: "HangUps"))
    source.setEventHandler { @Sendable in continuation.yield() }
    source.resume()
  }

  func end() { source.cancel() }
}
