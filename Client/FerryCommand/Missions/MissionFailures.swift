import Ferry
import FerryCommandLine

/// Describes every error about missions: what happened, why, and what to do next.
extension MissionError: CommandFailureConvertible {
  package var commandFailure: CommandFailure { failure(of: nil) }

  /// Returns the failure for the command line.
  ///
  /// - Parameter mission: the mission of the error, if it is known.
  func failure(of mission: MissionID?) -> CommandFailure {
    let bundle = mission.flatMap { BundleID(mission: $0) }
    let name = bundle.map { "bundle \($0)" } ?? mission.map { "mission \($0)" } ?? "the mission"
    let resume = bundle.map { "ferry bundle fetch \($0.name)" } ?? "ferry mission resume"
    let code = "mission_\(kind.code)"
    func failure(
      _ what: String, _ next: String, _ status: ExitStatus = .failed
    ) -> CommandFailure {
      CommandFailure(what, why: description, next: next, status: status, code: code)
    }
    switch kind {
    case .notFound:
      return failure(
        "this is not possible for \(name)",
        "`ferry pull` fetches the catalogue, `ferry mission list` lists published and stored "
          + "missions, and `ferry mission download ID` fetches a mission")
    case .offline:
      return failure(
        "\(name) waits for a connection",
        "run `\(resume)` when there is a connection; the fetched content is kept",
        .unreachable)
    case .diskFull:
      return failure(
        "there is not enough disk space for \(name)",
        "free some disk space, then run `\(resume)`; the fetched content is kept")
    case .busy:
      return failure(
        "another process is fetching \(name)",
        "`ferry mission list --watch` shows its progress, and `ferry mission cancel ID` cancels it",
        .unreachable)
    case .waiting:
      return failure("\(name) waits for another mission", "`ferry mission list` shows the reason")
    case .dependency:
      return failure(
        "\(name) cannot be fetched before another mission",
        "run `ferry pull` and `ferry mission list`. If they list the mission named above, download "
          + "it first; else inform the publisher of \(name)")
    case .retracted:
      return failure(
        "\(name) was retracted",
        "its partial content was removed, and a complete version stays. If it is published again, "
          + "`ferry mission download` starts again")
    case .refused:
      return failure(
        "\(name) could not be fetched as it was published",
        "run `ferry pull` and `ferry mission list`. If it was not retracted and has no later "
          + "version, inform its publisher. `ferry mission download` starts again")
    case .wrongContent:
      return failure(
        "\(name) could not be fetched as it was published",
        "inform its publisher; `ferry mission download` starts again")
    case .forbidden:
      return failure(
        "this device has no permission to fetch \(name)",
        "if the space's server refuses, give a token for the space with `ferry init`; if another "
          + "server refuses, ask its publisher for access. Then run `\(resume)`; the "
          + "fetched content is kept", .needsUser)
    case .badManifest, .badSignature:
      return failure(
        "\(name) has an invalid manifest or signature",
        "Ferry kept no content of it; inform the server's administrator")
    case .untrustedSigner:
      return failure(
        "\(name) is signed with a key that this device does not trust",
        "if the server has a new key, run `ferry mission trust KEY` and `\(resume)`; the "
          + "fetched content is kept. Else do not trust the server",
        .needsUser)
    case .damaged:
      return failure(
        "the stored content of \(name) is damaged",
        "run `ferry mission verify \(mission.map { "\($0)" } ?? "ID") --repair`")
    case .wrongKey:
      return failure(
        "\(name) cannot be read",
        "give the key of the stored content (--key-file), or no key if it is not encrypted. If the "
          + "key is lost, remove the folder `REPLICA.missions` and download again")
    case .files:
      return failure("a file could not be read or written", "check the folder named above")
    case .database:
      return failure(
        "the missions' database could not be used",
        "check that the disk has free space and `REPLICA.missions` is writable, then try again")
    case .cancelled:
      guard let mission else {
        return failure("interrupted", "run `ferry mission resume` to continue")
      }
      return failure("\(name) was cancelled", "`ferry mission download \(mission)` starts again")
    }
  }
}

extension MissionError.Kind {
  /// The kind in `snake_case`, for scripts.
  fileprivate var code: String {
    rawValue.map { $0.isUppercase ? "_" + $0.lowercased() : String($0) }.joined()
  }
}

/// The results of a download for all missions in it.
struct MissionEndings {
  let missions: [MissionStatus]

  init(_ missions: [MissionStatus]) { self.missions = missions }

  /// Prints each mission's result; throws the failure of the first incomplete one.
  func report(asJSON: Bool) throws -> ExitStatus {
    let output = TextOutput.standardOutput
    if asJSON {
      try output.lines(missions.map { MissionPresentation.json($0).text })
    } else {
      try output.lines(missions.filter { $0.state == .done && $0.reason == nil }.map(Self.line))
    }
    let failures = missions.filter {
      $0.state != .paused && ($0.state != .done || $0.reason != nil)
    }
    let rested = missions.filter { $0.state == .paused }
    for mission in rested where mission.reason == nil {
      try TextOutput.standardError.line("ferry: mission \(mission.id) is paused")
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
      "mission \(mission.id) is not complete",
      why: "its state is \(mission.state?.rawValue ?? "not requested")",
      next: "run `ferry mission resume`; the fetched content is kept", code: "mission_unfinished")
  }

  private static func rank(_ failure: CommandFailure, _ order: [ExitStatus]) -> Int {
    order.firstIndex(of: failure.status) ?? 0
  }

  private static func line(_ mission: MissionStatus) -> String {
    let size = ByteSize(bytes: Int(mission.bytesTotal)).text
    let title = mission.title.isEmpty ? "" : ", \"\(mission.title)\""
    return "mission \(mission.id)\(title): version \(mission.version) is complete, "
      .escapedForTerminal + "\(mission.items.counted("file")), \(size)"
  }
}
