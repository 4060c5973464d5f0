import FerryProtocol

/// An event of a run, as the oracles receive it while the run goes on. Devices are named by the
/// harness: a name stays while the device's identity may change.
package enum RunEvent: Sendable {
  /// A local transaction was committed, with its recorded operations, in order.
  ///
  /// The harness reports it best before the next `read` of the device. Some operations are never
  /// reported: a process may die after a commit, or a pull may delete rows with their parent. Each
  /// of them costs the oracles some sharpness.
  case committed(device: String, [LocalOperation])
  /// The harness read the replica. Reads come at any moment: while offline, between two steps of a
  /// sync, after a restart.
  case read(device: String, ReplicaEvidence)
  /// The device no longer has to send these operations. They are confirmed by the server, merged
  /// away, or in quarantine, as the `read` before shows. Each was reported as committed.
  case confirmed(device: String, [OperationID])
  /// The file went back to an earlier state.
  ///
  /// The machine lost power, so the newest commits are gone, as SQLite documents for
  /// synchronous=NORMAL in WAL mode. Or the file was restored from an earlier copy. `survivors` is
  /// the file's content now. Operations confirmed before remain obligations; lost unconfirmed ones
  /// do not.
  case lostPower(device: String, survivors: ReplicaEvidence)
  /// `device` continues from now on with a copy of `original`'s file, made as `evidence` shows.
  case copied(device: String, from: String, ReplicaEvidence)
  /// The server's data was restored from a backup: the history before and after the restore.
  /// Devices re-upload the lost operations that they have.
  case serverWentBack(from: [OperationID], to: [OperationID])
  /// A hostile server answers devices now and then. It is reported once, before all other events.
  case serverLies
}

/// The state of one space at the end of a run, when everything has drained.
package struct FinalEvidence: Sendable {
  package var server: ServerEvidence
  /// By the harness's names.
  package var replicas: [String: ReplicaEvidence]

  package init(server: ServerEvidence, replicas: [String: ReplicaEvidence]) {
    self.server = server
    self.replicas = replicas
  }
}

/// An observation that a correct system never allows.
package struct Violation: Sendable, Equatable, CustomStringConvertible {
  /// The oracle's name.
  package var oracle: String
  /// The finding and the place, in a sentence or two.
  package var detail: String

  package init(oracle: String, _ detail: String) {
    self.oracle = oracle
    self.detail = detail
  }

  package var description: String { "\(oracle): \(detail)" }
}

/// Judges one property of a run.
package protocol Oracle {
  /// A name of the property: `whole-transactions`.
  static var name: String { get }
  /// Reads an event while the run goes on.
  mutating func see(_ event: RunEvent) -> [Violation]
  /// Reads the state at the end, when everything has drained.
  mutating func judge(_ final: FinalEvidence) -> [Violation]
}
