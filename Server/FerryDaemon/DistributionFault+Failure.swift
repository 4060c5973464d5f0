import FerryCommandLine
import FerrySyncServer

extension DistributionFault: CommandFailureConvertible {
  /// The message for the user: what happened, why, and what to do.
  package var commandFailure: CommandFailure {
    switch self {
    case .noExtension:
      failure(
        "the database has no extension citus",
        next: "install Citus on all servers, run CREATE EXTENSION citus in this database on each, "
          + "and add the workers with citus_add_node", code: "no_citus")
    case .noWorkers:
      failure(
        "the coordinator has no worker that takes rows",
        next: "add each worker with SELECT citus_add_node('HOST', PORT)", code: "no_workers")
    case .notCoordinator:
      failure(
        "the database is on a worker", next: "name the coordinator's with --database",
        code: "not_coordinator")
    case .inUse(let count):
      failure(
        "ferryd uses the database at this moment, by \(count.counted("connection"))",
        next: "stop all servers and commands of this database; start them again afterwards",
        code: "database_in_use")
    }
  }

  /// The failure for the embedded store.
  static var embedded: CommandFailure {
    CommandFailure(
      "the store is not distributed", why: "the embedded store is one file",
      next: "name the coordinator of Citus with --database URL", status: .usage,
      code: "no_database")
  }

  private func failure(_ why: String, next: String, code: String) -> CommandFailure {
    CommandFailure("the store is not distributed", why: why, next: next, code: code)
  }
}
