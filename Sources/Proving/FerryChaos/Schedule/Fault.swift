import FerryCommandLine

/// One fault of a schedule.
struct Fault: Sendable, Equatable {
  /// The position in the schedule.
  var ordinal: Int
  /// Milliseconds since the start of the round.
  var at: Int
  var kind: FaultKind
  /// Places among the devices or among the nodes, as the kind requires; ascending.
  var targets: [Int]
  /// Milliseconds until the fault ends; 0 for an event of a moment.
  var lasting: Int
  /// A number with a meaning for each kind. For a slow link: milliseconds of delay. For a cut: the
  /// bytes that still pass. For paused processes: one in so many. For a choice of one process: a
  /// number to choose it by.
  var amount: Int

  /// In words.
  var text: String {
    var parts = [kind.rawValue]
    if let noun = kind.targetNoun {
      parts.append("\(noun) \(targets.map { String($0 + 1) }.joined(separator: ","))")
    }
    switch kind {
    case .slowLink: parts.append("by \(amount) ms")
    case .pauseBackends: parts.append("one in \(amount)")
    case .cutRequest, .cutAnswer: parts.append("after \(amount) bytes")
    default: break
    }
    if lasting > 0 { parts.append("for \(lasting) ms") }
    return parts.joined(separator: " ")
  }

  var json: JSONText {
    .object([
      ("at", .int(at)), ("kind", .string(kind.rawValue)),
      ("targets", .array(targets.map { .int($0 + 1) })), ("lasting", .int(lasting)),
      ("amount", .int(amount)),
    ])
  }
}

extension FaultKind {
  /// The noun of the targets; `nil` if there is only one target.
  var targetNoun: String? {
    switch self {
    case .pauseDevice, .killDevice, .partition, .stallRequests, .stallAnswers, .slowLink, .reset,
      .cutRequest, .cutAnswer, .moveDevice:
      "device"
    case .pauseServer, .killServer, .stallDatabase, .resetDatabase: "node"
    case .pauseBackends, .killBackend, .restartDatabase, .crashDatabase, .pauseMirror, .killMirror,
      .stallMirror, .resetMirror, .pauseProgram, .killProgram, .stallProgram, .resetProgram:
      nil
    }
  }
}
