import FerryNetworking
import FerryTestSupport
import Foundation
import Testing

@Suite("The machine's connectivity", .hangLimit)
struct SystemConnectivityTests {
  @Test("a request to this machine is never held back")
  func loopback() {
    for host in ["127.0.0.1", "::1", "localhost"] {
      #expect(SystemConnectivity().status(to: host) == .reachable)
    }
  }

  @Test("the status agrees with the kernel's answer to a sender")
  func agreement() {
    // An address never assigned to any host, so only a route matters.
    let couldSend = UnreachableNetwork.canSend(to: "198.51.100.1")
    let isReachable = SystemConnectivity(proxy: "").status(to: "198.51.100.1") == .reachable
    #expect(isReachable == couldSend)
  }

  @Test(
    "a missing network is reported at once",
    .enabled(if: UnreachableNetwork.isPossible, "needs the right to make a network namespace"))
  func none() async throws {
    let found = await UnreachableNetwork.run {
      ["example.org", "192.0.2.7", "2001:db8::7", "127.0.0.1", "localhost"].map {
        SystemConnectivity(proxy: "").status(to: $0) == .reachable
      }
    }
    // A name may be known to a name server of this machine, as in some containers.
    #expect(Array(found.dropFirst()) == [false, false, true, true])
  }
}

/// Threads without a network of any kind.
enum UnreachableNetwork {
  /// Whether the kernel lets this process make one.
  static let isPossible: Bool = {
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var isPossible = false
    // SAFETY: read after the thread is done with it.
    Thread.detachNewThread {
      isPossible = leaveNetwork()
      done.signal()
    }
    done.wait()
    return isPossible
  }()

  /// Runs `body` on a separate thread in an empty network.
  static func run<T: Sendable>(_ body: @escaping @Sendable () -> T) async -> T {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        #expect(leaveNetwork())
        continuation.resume(returning: body())
      }
    }
  }

  /// Returns whether a datagram to `address` finds a way out of this machine.
  static func canSend(to address: String) -> Bool {
    let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(socket) }
    var target = sockaddr_in()
    target.sin_family = sa_family_t(AF_INET)
    target.sin_port = UInt16(9).bigEndian
    target.sin_addr.s_addr = inet_addr(address)
    let sent = withUnsafePointer(to: &target) { target in
      target.withMemoryRebound(to: sockaddr.self, capacity: 1) { target in
        sendto(socket, "", 0, 0, target, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    return sent == 0
  }

  /// Moves the calling thread, and no other, into a new network namespace (unshare(2)). Swift does
  /// not see this function in the C library's headers.
  private static func leaveNetwork() -> Bool {
    typealias Unshare = @convention(c) (Int32) -> Int32
    let newNetwork: Int32 = 0x4000_0000  // CLONE_NEWNET
    return dlsym(nil, "unshare").map { unsafeBitCast($0, to: Unshare.self)(newNetwork) == 0 }
      ?? false
  }
}
