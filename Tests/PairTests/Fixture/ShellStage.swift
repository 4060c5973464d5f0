import Ferry
import FerryShell
import FerryTestSupport
import Foundation

/// A server, two devices, and a page of a shell on the first one.
struct ShellStage {
  static let cards = "CREATE TABLE cards(id TEXT PRIMARY KEY, title TEXT, lane TEXT)"

  let server: Server
  /// Holds the replica's file.
  private let device: Device
  let other: Device
  let replica: Replica
  let page: BridgePage
  private let shell: Shell
  private let folder: TemporaryDirectory

  init() async throws {
    server = try await Server.start()
    device = try await Self.joined(server)
    other = try await Self.joined(server)
    replica = try await device.open()
    folder = try TemporaryDirectory()
    try Data("<!doctype html><title>t</title>".utf8).write(to: folder.file("index.html"))
    let json =
      #"{"name":"probe","version":"1.2","services":[{"name":"data"},{"name":"missions"},{"name":"device"}]}"#
    try Data(json.utf8).write(to: folder.file("ferry-bundle.json"))
    let services =
      DataServices(replica).all
      + MissionServices(try await replica.missionManager(), replica: replica).all
      + DeviceServices(app: "probe", version: "7.1").all
    shell = try Self.start(folder, services)
    page = try await BridgePage.open(shell.makeAddress())
  }

  private static func joined(_ server: Server) async throws -> Device {
    try await Device.joined(server.url, schema: cards, tracking: ["cards"])
  }

  private static func start(_ folder: TemporaryDirectory, _ services: [Service]) throws -> Shell {
    try Shell.start(
      DirectoryBundle(folder.url.path),
      services: ServiceRegistry(services, granting: ["data", "missions", "device"]))
  }

  /// Runs `body` with the page of another shell, whose pages may use these tables.
  func withPage(of tables: [Name], _ body: (BridgePage) async throws -> Void) async throws {
    let shell = try Self.start(folder, DataServices(replica, tables: tables).all)
    defer { shell.stop() }
    try await body(try await BridgePage.open(shell.makeAddress()))
  }

  func end() async {
    shell.stop()
    await replica.close()
  }
}
