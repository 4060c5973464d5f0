import Ferry
import FerryCommandLine
import FerryShell
import Foundation

/// `ferry shell`: a web app beside its replica.
enum ShellCommand {
  static let shell = CommandSpec(
    "shell", summary: "Show a web app that works on the replica.",
    discussion: """
      A bundle is a folder of HTML, CSS and JavaScript with a file ferry-bundle.json. Its pages call \
      native services by the script ferry.js, which the shell adds to them. The pages are served on \
      127.0.0.1 for one browser: the printed address opens them once, and other pages and programs \
      get nothing.

      The name of a bundle that the space publishes shows the version in use on this device (`ferry \
      bundle fetch`). With --sync, later versions are fetched, and show with the next page load. If \
      a folder here has the name of such a bundle, write ./NAME or --published.

      A page may use a service that its bundle declares and --grant names: data.query, or data \
      for all of a group. The groups are data (tables of the replica), missions, net (requests to \
      the servers that --origin names) and device.

      An edited folder shows with the next page load. A page that does not call ferry.ready() within \
      10 s, crashes or violates its policy falls back to the last version that worked.
      """,
    options: [
      OptionSpec(
        "port", value: "PORT", help: "The port on 127.0.0.1; 0 for a free one.",
        kind: .integer(0...65_535), default: "0"),
      OptionSpec(
        "grant", short: "g", value: "SERVICE",
        help: "A service that the bundle may use, or all of a group, such as data.", repeated: true),
      OptionSpec(
        "table", value: "TABLE", help: "A table that pages may use; without it, all tables.",
        repeated: true),
      OptionSpec(
        "origin", value: "URL", help: "A server that net.request may reach: https://example.org.",
        repeated: true),
      MissionCommands.missionKeyFile,
    ],
    flags: [
      MissionCommands.allowPrivateAddresses,
      FlagSpec("sync", help: "Sync continuously while the page is open."),
      FlagSpec("published", help: "Show the space's bundle, although a folder has its name."),
      FlagSpec("no-open", help: "Print the address, and open no browser."),
      FlagSpec("window", help: "Open a window of its own instead of a browser; see `make window`."),
      FlagSpec("declarations", help: "Print the TypeScript declarations of ferry.js, and end."),
    ],
    arguments: [
      ArgumentSpec(
        "bundle", help: "The bundle's folder, or the name of a published bundle.",
        kind: .directory, arity: .optional)
    ],
    examples: [
      ExampleSpec(
        "Show a folder that reads and writes tables", "ferry shell ./board --grant data"),
      ExampleSpec("Only the address, for scripts", "ferry shell ./board --no-open --json"),
    ]
  ) { arguments in
    if arguments.flag("declarations") {
      try TextOutput.standardOutput.write(FerryShell.Shell.declarations)
      return .done
    }
    guard let path = arguments.stringIfPresent("bundle") else {
      throw CommandFailure(
        "no bundle was named", why: "the shell shows the pages of a bundle",
        next: "name its folder, or a published bundle: `ferry shell DIR`", status: .usage,
        code: "no_bundle")
    }
    let isFolder = FileAccess.exists(path)
    guard let name = BundleName(path), FileAccess.exists(try arguments.string("replica")) else {
      return try await ShellRun(arguments).show(bundle(at: path, arguments))
    }
    let replica = try await FerryCommand.open(arguments)
    let manager = try await MissionCommands.missions(of: replica, arguments)
    let bundles = try await replica.bundles(missions: manager)
    if isFolder, !arguments.flag("published") {
      guard try await bundles.versions(of: name).isEmpty else { throw ambiguity(name) }
      await manager.close()
      return try await ShellRun(arguments).show(bundle(at: path, arguments))
    }
    return try await ShellRun(arguments, on: replica, with: manager).show(
      PublishedBundle(name, in: bundles)
    ) {
      _ = try? await bundles.update(name)
    }
  }

  private static func ambiguity(_ name: BundleName) -> UsageError {
    UsageError(
      .invalidValue, "\(name) is a folder here, and a bundle of the space",
      why: "both could be meant",
      next: "`ferry shell ./\(name)` shows the folder, `ferry shell --published \(name)` the bundle"
    )
  }

  /// Returns the source of a folder, after a first look at it.
  private static func bundle(
    at path: String, _ arguments: ParsedArguments
  ) async throws -> DirectoryBundle {
    let source = DirectoryBundle(path)
    await source.left(try await source.next())
    return source
  }
}

extension BundleSourceError: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    CommandFailure(event, why: reason, next: next, code: "no_bundle")
  }
}

extension ShellError: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    switch self {
    case .cannotListen(let port, let reason):
      CommandFailure(
        "port \(port) cannot be used", why: reason,
        next: "leave out --port, or name another one", code: "cannot_listen")
    }
  }
}
