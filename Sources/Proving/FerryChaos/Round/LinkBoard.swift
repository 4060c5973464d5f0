import FerryLaboratory
import Synchronization

/// The conditions of one proxy, made of those of several faults at once.
final class LinkBoard: Sendable {
  let proxy: TCPProxy
  private let active = Mutex<[Int: LinkConditions]>([:])

  init(_ proxy: TCPProxy) { self.proxy = proxy }

  /// Sets the conditions of a fault; `nil` ends it.
  func set(_ conditions: LinkConditions?, by fault: Int) {
    active.withLock { active in
      active[fault] = conditions
      proxy.set(active.values.reduce(LinkConditions()) { $0.joined(with: $1) })
    }
  }
}
