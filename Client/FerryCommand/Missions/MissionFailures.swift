import CommandLineKit
import Ferry

/// Describes every error about missions: what happened, why, and what to do next.
extension MissionError: CommandFailureConvertible {
  package var commandFailure: CommandFailure { failure(of: nil) }

  /// Returns the failure for the command line.
  ///
  /// - Parameter mission: the mission of the error, if it is known.
  func failure(of mission: MissionID?) -> CommandFailure {
    let name = mission.map { "mission \($0)" } ?? "the mission"
    let code = "mission_\(kind.code)"
    func failure(
      _ what: String, _ next: String, _ status: ExitStatus = .failed
    ) -> CommandFailure {
      CommandFailure(what, why: description, next: next, status: status, code: code)
    }
    switch kind {
    case .notFound:
      return failure(
        "that cannot be done",
        "`ferry pull` brings the catalogue, `ferry mission list` shows it and what is here, `ferry "
          + "mission download ID` fetches what is not")
    case .offline:
      return failure(
        "\(name) waits for a connection",
        "what was fetched is kept: `ferry mission resume` goes on", .unreachable)
    case .diskFull:
      return failure(
        "there is no room for \(name)",
        "free some disk space, then `ferry mission resume`: what was fetched is kept")
    case .busy:
      return failure(
        "another process is at \(name)",
        "`ferry mission list --watch` shows how far it is, `ferry mission cancel ID` ends it",
        .unreachable)
    case .waiting:
      return failure("\(name) waits for another one", "`ferry mission list` shows why")
    case .dependency:
      return failure(
        "\(name) cannot be fetched before another one",
        "`ferry pull`, then `ferry mission list` tells whether the one named above is published: "
          + "if so, download it first, else tell whoever published \(name)")
    case .retracted:
      return failure(
        "\(name) was retracted",
        "nobody can fetch the rest of it, and what was fetched is gone; a version that is here stays, "
          + "and `ferry mission download` begins again when it is published again")
    case .refused:
      return failure(
        "\(name) could not be fetched as it was published",
        "`ferry pull`, then `ferry mission list` tells whether it was retracted or has a later "
          + "version; else tell whoever published it. `ferry mission download` begins again")
    case .wrongContent:
      return failure(
        "\(name) could not be fetched as it was published",
        "tell whoever published it; `ferry mission download` begins again")
    case .forbidden:
      return failure(
        "this device may not have \(name)",
        "where the space's server refuses, give a token that opens the space with `ferry init`; "
          + "what lies elsewhere is its publisher's to open. Then `ferry mission resume`: what was "
          + "fetched is kept", .needsUser)
    case .badManifest, .badSignature:
      return failure(
        "\(name) was not published by who it says, or was altered",
        "nothing of it was kept; tell whoever runs the server")
    case .untrustedSigner:
      return failure(
        "\(name) was signed with another key than the one trusted here",
        "if the server has a new key, `ferry mission trust KEY` and `ferry mission resume`: what was "
          + "fetched is kept; else do not trust the server",
        .needsUser)
    case .damaged:
      return failure(
        "what lies here of \(name) is damaged",
        mission.map { "`ferry mission verify \($0) --repair`" }
          ?? "`ferry mission verify ID --repair`")
    case .wrongKey:
      return failure(
        "\(name) cannot be read",
        "give the key that what is here was sealed with (--key-file), or none where none was; where "
          + "the key is lost, remove the folder `REPLICA.missions` and download anew")
    case .files:
      return failure("a file could not be read or written", "look at the folder named above")
    case .database:
      return failure(
        "the missions' database could not be used",
        "see that the disk has room and that `REPLICA.missions` can be written, then try again")
    case .cancelled:
      guard let mission else {
        return failure("interrupted", "`ferry mission resume` goes on where it was")
      }
      return failure("\(name) was given up", "`ferry mission download \(mission)` begins again")
    }
  }
}

extension MissionError.Kind {
  /// The kind in `snake_case`, for scripts.
  fileprivate var code: String {
    rawValue.map { $0.isUppercase ? "_" + $0.lowercased() : String($0) }.joined()
  }
}

/// The results of a download for all its missions.
struct MissionEndings {
  let missions: [MissionStatus]

  init(_ missions: [MissionStatus]) { self.missions = missions }

  /// Prints each mission's result; throws the failure of the first incomplete one.
  func tell(asJSON: Bool) throws -> ExitStatus {
    let output = TextOutput.standardOutput
    if asJSON {
      try output.lines(missions.map { MissionPresentation.json($0).text })
    } else {
      try output.lines(missions.filter { $0.state == .done }.map(Self.line))
    }
    let failures = missions.filter { $0.state != .done && $0.state != .paused }
    let rested = missions.filter { $0.state == .paused }
    for mission in rested where mission.reason == nil {
      try TextOutput.standardError.line("ferry: mission \(mission.id) rests")
    }
    let explained =
      failures.map { $0.reason?.failure(of: $0.id) ?? Self.unexplained($0) }
      + rested.compactMap { mission in mission.reason.map { $0.failure(of: mission.id) } }
    // Problems that only the user can solve come last, and decide.
    let order: [ExitStatus] = [.unreachable, .failed, .needsUser]
    guard let last = explained.max(by: { Self.rank($0, order) < Self.rank($1, order) }) else {
      return .done
    }
    for failure in explained where failure != last && !asJSON {
      try TextOutput.standardError.line(failure.text(program: "ferry"))
    }
    throw last
  }

  private static func unexplained(_ mission: MissionStatus) -> CommandFailure {
    CommandFailure(
      "mission \(mission.id) is not here as a whole",
      why: "it was left \(mission.state?.rawValue ?? "unasked for")",
      next: "what was fetched is kept: `ferry mission resume` goes on", code: "mission_unfinished")
  }

  private static func rank(_ failure: CommandFailure, _ order: [ExitStatus]) -> Int {
    order.firstIndex(of: failure.status) ?? 0
  }

  private static func line(_ mission: MissionStatus) -> String {
    let size = ByteSize(bytes: Int(mission.bytesTotal)).text
    let title = mission.title.isEmpty ? "" : ", “\(mission.title)”"
    return "mission \(mission.id)\(title): version \(mission.version) is here whole, "
      .escapedForTerminal + "\(mission.items.counted("file")), \(size)"
  }
}
