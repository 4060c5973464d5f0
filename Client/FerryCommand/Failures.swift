import Ferry
import FerryCommandLine
import FerryPersistence
import FerrySyncClient

extension ReplicaError: CommandFailureConvertible {
  package var commandFailure: CommandFailure { CommandFailure(explanation) }
}

extension Problem: CommandFailureConvertible {
  package var commandFailure: CommandFailure { CommandFailure(explanation) }
}

extension CommandFailure {
  /// Reports an error with its row in the table of errors.
  fileprivate init(_ error: Explanation) {
    let status: ExitStatus =
      switch error.remedy {
      case .later: .unreachable
      case .credentials: .needsUser
      case .usage: .usage
      case .correction: .failed
      }
    self.init(
      error.event, why: error.reason, next: error.next, status: status, code: error.code)
  }
}

extension ImportError: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    CommandFailure(
      "the file was not imported", why: reason, next: "correct it and try again",
      code: "import_failed")
  }
}
