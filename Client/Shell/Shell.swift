import FerryMissions
import FerryProtocol

/// Shows a bundle's pages in a browser or a web view of this machine, and answers their calls.
///
/// The pages come from a server on 127.0.0.1 for one browser: each start has new secrets, and other
/// pages, programs and hosts get nothing (SPEC.md §33).
///
/// ```swift
/// let registry = ServiceRegistry(DataServices(replica).all, granting: ["data"])
/// let shell = try Shell.start(DirectoryBundle("board"), services: registry)
/// print("open \(shell.makeAddress())")
/// ```
public final class Shell: Sendable {
  /// The version of the shell, for comparison with the oldest one named by a bundle. Bundles
  /// published by a space are compared with the same version, unless ``BundleOptions/shell``
  /// differs.
  public static let version = BundleVersion.shell

  /// The TypeScript declarations of the pages' script, `ferry.d.ts`.
  public static var declarations: String {
    String(decoding: PackageResources.ferry_d_ts, as: UTF8.self)
  }

  private let server: LoopbackServer
  private let core: ShellCore

  /// Starts a shell.
  ///
  /// - Parameters:
  ///   - source: the versions of the bundle.
  ///   - services: the services that the bundle's pages may call.
  ///   - port: the port on 127.0.0.1; 0 for a free one.
  ///   - log: gets each event; it may be called on any thread.
  public static func start(
    _ source: any BundleSource, services: ServiceRegistry, port: UInt16 = 0,
    log: @escaping @Sendable (ShellEvent) -> Void = { _ in }
  ) throws(ShellError) -> Shell {
    try start(source, services: services, port: port, log: log, limits: .init(), in: .system)
  }

  /// Starts a shell in the caller's surroundings.
  static func start(
    _ source: any BundleSource, services: ServiceRegistry, port: UInt16 = 0,
    log: @escaping @Sendable (ShellEvent) -> Void = { _ in }, limits: LoopbackServer.Limits,
    in surroundings: ShellSurroundings
  ) throws(ShellError) -> Shell {
    var core: ShellCore?
    let server = try LoopbackServer(port: port, limits: limits) { port in
      let made = ShellCore(port, source, services, log, surroundings)
      core = made
      return made
    }
    guard let core else { preconditionFailure("a server makes its handler") }
    server.start()
    return Shell(server, core)
  }

  private init(_ server: LoopbackServer, _ core: ShellCore) {
    (self.server, self.core) = (server, core)
  }

  deinit { stop() }

  /// The port on 127.0.0.1.
  public var port: UInt16 { server.port }

  /// Returns an address that opens the page once, in one browser.
  public func makeAddress() -> String { core.makeAddress() }

  /// Reports the end of the process of the page's web view: the version may be at fault.
  public func reportCrash(_ detail: String) async { await core.reportCrash(detail) }

  /// Ends all pages. The shell cannot be used any more.
  public func stop() {
    core.stop()
    server.stop()
  }
}
