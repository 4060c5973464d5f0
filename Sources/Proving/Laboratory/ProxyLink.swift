import Foundation
import Synchronization

/// One client's connection through a `TCPProxy`: a thread each way.
final class ProxyLink: Sendable {
  private static let methods = ["GET ", "POST ", "PUT ", "HEAD ", "DELETE ", "PATCH ", "OPTIONS "]

  /// Never used again, unlike the object's address.
  let number: Int
  private let client: Int32
  private let server: Int32
  private let core: ProxyCore
  private let exchange: Mutex<ProxyTrap.Exchange?>
  /// Both sides see a reset instead of an end.
  private let isReset = Mutex(false)
  private var wasReset: Bool { isReset.withLock { $0 } }

  init(number: Int, client: Int32, server: Int32, core: ProxyCore) {
    (self.number, self.client, self.server, self.core) = (number, client, server, core)
    exchange = Mutex(nil)
  }

  // Runs when both threads have ended and no other object can shut them down any more.
  deinit {
    close(client)
    close(server)
  }

  func start() {
    ProxyCore.onThread("proxy-request") { [self] in pump(.request, from: client, to: server) }
    ProxyCore.onThread("proxy-answer") { [self] in pump(.answer, from: server, to: client) }
  }

  /// Closes both sides; bytes passed on already still arrive.
  func cut() {
    for descriptor in [client, server] { shutdown(descriptor, Int32(SHUT_RDWR)) }
  }

  /// Resets both sides: they see it when the threads have released the connection.
  func reset() {
    isReset.withLock { $0 = true }
    for descriptor in [client, server] {
      LoopbackSocket.resetOnClose(descriptor)
      // Wakes the reader, and sends no bytes.
      shutdown(descriptor, Int32(SHUT_RD))
    }
  }

  /// Returns the bytes of responses not read by the client's process, by the system's buffers; see
  /// `TCPProxy.readByteCount()`.
  func unread(_ queues: SocketQueues) -> Int { queues.unread(from: client) }

  private func pump(_ direction: TCPProxy.Direction, from source: Int32, to target: Int32) {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let bytes = LoopbackSocket.read(source, &buffer)
      if !wasReset { core.gate.wait(direction) }
      if bytes.isEmpty || wasReset { break }
      if direction == .request { recordRequest(bytes) }
      guard pass(bytes, direction, to: target) else { break }
    }
    if wasReset { reset() } else { cut() }
    core.forget(self)
  }

  /// Records a request, which begins at a method; clients do not pipeline.
  private func recordRequest(_ bytes: ArraySlice<UInt8>) {
    guard Self.methods.contains(where: { bytes.starts(with: $0.utf8) }) else { return }
    let line = String(decoding: bytes.prefix { $0 != 0x0D }, as: UTF8.self)
    exchange.withLock { exchange in
      exchange = ProxyTrap.Exchange(
        link: number, number: (exchange?.number ?? 0) + 1, requestLine: line)
    }
  }

  /// Sends bytes on, through the traps. Returns whether the connection continues.
  private func pass(
    _ bytes: ArraySlice<UInt8>, _ direction: TCPProxy.Direction, to target: Int32
  ) -> Bool {
    if bytes.isEmpty { return true }
    let current =
      exchange.withLock { $0 } ?? ProxyTrap.Exchange(link: number)
    guard let (trap, offset) = core.sprung(direction, current, count: bytes.count) else {
      return write(bytes, direction, to: target)
    }
    guard write(bytes.prefix(offset), direction, to: target) else { return false }
    let rest = bytes.dropFirst(offset)
    switch trap.action {
    case .tell:
      defer { trap.signal() }
      return pass(rest, direction, to: target)
    case .hold:
      return trap.waitUntilReleased() && pass(rest, direction, to: target)
    case .drop:
      trap.signal()
      return swallow(direction)
    case .cut:
      defer { trap.signal() }
      cut()
      return false
    case .delay(let duration):
      trap.signal()
      Thread.sleep(forTimeInterval: duration / .seconds(1))
      return pass(rest, direction, to: target)
    case .call(let closure):
      closure()
      trap.signal()
      return pass(rest, direction, to: target)
    }
  }

  private func write(
    _ bytes: ArraySlice<UInt8>, _ direction: TCPProxy.Direction, to target: Int32
  ) -> Bool {
    LoopbackSocket.write(target, bytes) { core.count($0, direction) }
  }

  /// Reads and forgets until the connection ends.
  private func swallow(_ direction: TCPProxy.Direction) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while !LoopbackSocket.read(direction == .request ? client : server, &buffer).isEmpty {}
    return false
  }
}
