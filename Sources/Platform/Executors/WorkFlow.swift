import Synchronization

/// The user of a piece of work, and the part of the data for it. Queues serve the flows in turns
/// (``FairQueue``), so no user's work waits for all of another's.
package struct WorkFlow: Sendable, Hashable {
  /// The user: an account, or an address before the user is known. Empty for the server's own work.
  package let user: String
  /// The part of the data, such as a space.
  package let part: String

  package init(user: String, part: String = "") {
    self.user = user
    self.part = part
  }

  /// The server's own work.
  package static let own = WorkFlow(user: "")

  /// The path in a fair queue.
  package var path: [String] { [user, part] }

  // MARK: The flow of a task

  private final class Holder: Sendable {
    let flow: Mutex<WorkFlow>

    init(_ flow: WorkFlow) { self.flow = Mutex(flow) }
  }

  @TaskLocal private static var holder: Holder?

  /// The flow of this task; work of no request is the server's own.
  package static var current: WorkFlow { holder?.flow.withLock { $0 } ?? .own }

  /// Runs a body whose work belongs to this flow, until ``assign()`` names another.
  package func run<Value>(_ body: () async -> Value) async -> Value {
    await Self.$holder.withValue(Holder(self), operation: body)
  }

  /// Makes this the flow of the running body, from now on.
  package func assign() { Self.holder?.flow.withLock { $0 = self } }
}
