/// The set of faults of a round.
enum Nemesis: String, Sendable, CaseIterable {
  case none
  case pause
  case kill
  case partition
  case all

  /// The kinds of fault it draws from.
  var kinds: [FaultKind] {
    switch self {
    case .none: []
    case .pause: [.pauseDevice, .pauseServer, .pauseBackends]
    case .kill: [.killDevice, .killServer, .killBackend, .restartDatabase, .crashDatabase]
    case .partition:
      [
        .partition, .stallRequests, .stallAnswers, .slowLink, .reset, .cutRequest, .cutAnswer,
        .stallDatabase, .resetDatabase, .moveDevice,
      ]
    case .all: Nemesis.allCases.filter { $0 != .all }.flatMap(\.kinds)
    }
  }
}

/// A fault of a real process or a real connection.
enum FaultKind: String, Sendable, CaseIterable {
  /// SIGSTOP for all processes of devices, later SIGCONT; one may hold the file's lock.
  case pauseDevice = "pause-device"
  case pauseServer = "pause-server"
  /// SIGSTOP for PostgreSQL's processes of the nodes; one may hold the space's lock.
  case pauseBackends = "pause-backends"
  /// SIGKILL for all processes of devices, in whatever they are.
  case killDevice = "kill-device"
  case killServer = "kill-server"
  /// SIGKILL for one of PostgreSQL's processes: it restarts the others and recovers.
  case killBackend = "kill-backend"
  /// PostgreSQL is shut down in order, and started again.
  case restartDatabase = "restart-database"
  /// PostgreSQL is shut down as in a crash, and recovers.
  case crashDatabase = "crash-database"
  /// Nothing passes between devices and their server, either way; connections stay.
  case partition
  /// Nothing passes from devices to the server; responses do.
  case stallRequests = "stall-requests"
  /// Nothing passes from the server to devices; requests do, and take effect.
  case stallAnswers = "stall-answers"
  case slowLink = "slow-link"
  /// Devices' connections are reset.
  case reset
  /// The connection ends within a request's body.
  case cutRequest = "cut-request"
  /// The connection ends within a response.
  case cutAnswer = "cut-answer"
  /// Nothing passes between a node and PostgreSQL.
  case stallDatabase = "stall-database"
  /// A node's connections to PostgreSQL are reset.
  case resetDatabase = "reset-database"
  /// Devices continue at the other node.
  case moveDevice = "move-device"
  /// SIGSTOP for the process of a mirror, which may hold rows of the tables.
  case pauseMirror = "pause-mirror"
  case killMirror = "kill-mirror"
  /// Nothing passes between a mirror and the two sides of it.
  case stallMirror = "stall-mirror"
  /// A mirror's connections to both sides are reset.
  case resetMirror = "reset-mirror"
  /// SIGSTOP for the program on a mirror's tables, within transactions.
  case pauseProgram = "pause-program"
  case killProgram = "kill-program"
  /// Nothing passes between the program and PostgreSQL.
  case stallProgram = "stall-program"
  /// The program's connections are reset; it does not know if the last commits succeeded.
  case resetProgram = "reset-program"

  /// Returns the kinds of fault beside a mirror and a program: those of one node and its database,
  /// and those of the mirror and the program.
  static func besideMirror(_ store: RoundPlan.Store) -> [FaultKind] {
    let kinds: [FaultKind] = [
      .pauseDevice, .pauseServer, .pauseBackends, .killDevice, .killServer, .killBackend,
      .restartDatabase, .crashDatabase, .partition, .slowLink, .reset, .cutRequest, .cutAnswer,
      .pauseMirror, .killMirror, .stallMirror, .resetMirror,
      .pauseProgram, .killProgram, .stallProgram, .resetProgram,
    ]
    return store == .postgres ? kinds + [.stallDatabase, .resetDatabase] : kinds
  }

  /// True if PostgreSQL is down for a while, so faults of the kind keep a distance.
  var stopsDatabase: Bool {
    [.killBackend, .restartDatabase, .crashDatabase].contains(self)
  }
}
