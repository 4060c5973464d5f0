import FerryProtocol

/// What happens in a run, as the oracles are told of it while it goes on. Devices are named by the
/// harness: a name stays while the device's identity may change.
package enum RunEvent: Sendable {
  /// A local transaction was committed, with what it recorded, in order. Best told before the next
  /// `read` of the device; operations that are never told (of a process that died after its commit,
  /// or rows that went with a parent while a pull was applied) cost the oracles some sharpness.
  case committed(device: String, [LocalOperation])
  /// Somebody read the replica. Reads come at any moment: while offline, between two steps of a
  /// sync, after a restart.
  case read(device: String, ReplicaEvidence)
  /// These operations are off the device's hands: confirmed by the server, merged away, or in
  /// quarantine, as the `read` before shows. Each was told as committed.
  case confirmed(device: String, [OperationID])
  /// The file went back to an earlier state: the machine lost its power, so that the newest
  /// commits are gone, as SQLite documents for synchronous=NORMAL in WAL mode; or an earlier copy
  /// of it was put in its place. `survivors`: what it holds now. Operations confirmed before stay
  /// obligations; unconfirmed ones that are gone do not.
  case lostPower(device: String, survivors: ReplicaEvidence)
  /// `device` goes on from now on with a copy of `original`'s file, made as `evidence` shows.
  case copied(device: String, from: String, ReplicaEvidence)
  /// An earlier copy of the server's data was put in its place. With its history as
  /// it was and as it is now. Whoever has others gives them back.
  case serverWentBack(from: [OperationID], to: [OperationID])
}

/// What a run left behind once everything had drained, for one space.
package struct FinalEvidence: Sendable {
  package var server: ServerEvidence
  /// By the harness's names.
  package var replicas: [String: ReplicaEvidence]

  package init(server: ServerEvidence, replicas: [String: ReplicaEvidence]) {
    self.server = server
    self.replicas = replicas
  }
}

/// Something that a correct system never shows.
package struct Violation: Sendable, Equatable, CustomStringConvertible {
  /// The oracle's name.
  package var oracle: String
  /// What was found where, in a sentence or two.
  package var detail: String

  package init(oracle: String, _ detail: String) {
    self.oracle = oracle
    self.detail = detail
  }

  package var description: String { "\(oracle): \(detail)" }
}

/// Judges one property of a run.
package protocol Oracle {
  /// In words of the property: `whole-transactions`.
  static var name: String { get }
  /// Looks at what happens while the run goes on.
  mutating func see(_ event: RunEvent) -> [Violation]
  /// Looks at what is left when all has drained.
  mutating func judge(_ final: FinalEvidence) -> [Violation]
}
