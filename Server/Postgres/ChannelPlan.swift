/// The channels requested of a listener, and those in force; pure.
///
/// Callers change the first while the listener's thread makes the second equal to it. Each change
/// is a statement, so channels that come and go between two statements cost nothing.
struct ChannelPlan {
  /// Statements to run on the connection, each list sorted.
  struct Changes: Equatable {
    /// For `UNLISTEN`, before the others.
    var ended: [String] = []
    /// For `LISTEN`.
    var begun: [String] = []

    var isEmpty: Bool { ended.isEmpty && begun.isEmpty }
  }

  private var wanted: Set<String>
  /// Channels in force on the present connection.
  private(set) var inForce: Set<String> = []

  init(_ wanted: Set<String> = []) { self.wanted = wanted }

  /// Reports whether the channel was not wanted before.
  mutating func listen(to channel: String) -> Bool { wanted.insert(channel).inserted }

  /// Reports whether the channel was wanted before.
  mutating func unlisten(from channel: String) -> Bool { wanted.remove(channel) != nil }

  /// Records the loss of the connection: the next one begins without channels.
  mutating func disconnected() { inForce = [] }

  /// The statements still to run.
  var changes: Changes {
    Changes(
      ended: inForce.subtracting(wanted).sorted(), begun: wanted.subtracting(inForce).sorted())
  }

  /// Records that the connection has run these statements.
  mutating func made(_ changes: Changes) {
    inForce.subtract(changes.ended)
    inForce.formUnion(changes.begun)
  }
}
