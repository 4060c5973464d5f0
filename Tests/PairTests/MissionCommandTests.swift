import FerryTestSupport
import Foundation
import Testing

/// The output and exit status of `ferry mission …`.
@Suite("The missions' commands on a device", .hangLimit)
struct MissionCommandTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  /// Publishes a folder with one file.
  private func publish(
    _ id: String, on server: Server, _ more: String...
  ) async throws {
    let draft = folder.file(id).path
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    try Data("content of \(id)".utf8).write(to: URL(filePath: draft + "/a.txt"))
    let finished = try await ChildProcess.run(
      try Executables.ferryd(),
      ["mission", "publish", draft, "--space", Device.space, "--data"]
        + [server.directory.file("data").path] + more)
    try #require(finished.status == .exited(0), "\(finished.error)")
  }

  @Test("an empty list is reported with the next command to run")
  func none() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let all = try await device.ferry("mission", "list").output
    #expect(all.hasPrefix("there is no mission: `ferry pull`"))
    #expect(try await device.ferry("mission", "list", "--json").output.isEmpty)
    try await publish("m", on: server)
    try await device.ferry("pull")
    let here = try await device.ferry("mission", "list", "--downloaded").output
    #expect(here.hasPrefix("no mission is complete"))
    #expect(try await device.ferry("mission", "list").output.contains("m"))
  }

  @Test("a mission with an absent predecessor fails with the reason; others are downloaded")
  func all() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await publish("a", on: server, "--after", "gone")
    try await publish("b", on: server)
    let ended = try await device.ferry("mission", "download", "--all", exits: 1)
    #expect(ended.output.contains("mission b: version 1 is complete, 1 file, 12 B"))
    #expect(ended.error.contains("mission a cannot be fetched before another mission"))
    #expect(ended.error.contains("mission gone"))
    #expect(ended.error.contains("next: run `ferry pull`"))
    let listed = try await device.ferry("mission", "list").output.split(separator: "\n")
    let title = try #require(listed.first)
    #expect(title.contains("state") && !title.contains("why"))
    #expect(listed.last?.hasPrefix("a: its predecessor, mission gone, is neither") == true)
  }

  @Test("a complete mission is neither paused nor cancelled, and the command says so")
  func complete() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await publish("m", on: server)
    try await device.ferry("mission", "download", "--all")
    for (command, change) in [("pause", "paused"), ("cancel", "cancelled")] {
      let ended = try await device.ferry("mission", command, "m", exits: 1)
      #expect(ended.error.contains("mission m is not \(change)"), "\(ended.error)")
      #expect(ended.error.contains("why: all of it is on this device"))
      #expect(ended.error.contains("next: `ferry mission remove m` removes its files"))
      let unknown = try await device.ferry("mission", command, "x", exits: 1)
      #expect(unknown.error.contains("mission x was not requested"), "\(unknown.error)")
    }
    #expect(try await device.ferry("mission", "list", "--downloaded").output.contains("done"))
  }

  @Test("a check names each damaged file with the next step, and a repair fetches it again")
  func verify() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await publish("m", on: server)
    try await device.ferry("mission", "download", "--all")
    let intact = "mission m, version 1: 12 B are intact\n"
    #expect(try await device.ferry("mission", "verify", "m").output == intact)
    let path = try await device.ferry("mission", "path", "m", "a.txt").output
      .trimmingCharacters(in: .newlines)
    chmod(path, 0o600)
    let file = try #require(FileHandle(forUpdatingAtPath: path))
    try file.write(contentsOf: Data("C".utf8))
    try file.close()
    let damaged = try await device.ferry("mission", "verify", "m", exits: 4)
    #expect(damaged.output == "a.txt is missing, or differs from the downloaded file\n")
    #expect(damaged.error.contains("mission m is damaged"), "\(damaged.error)")
    #expect(damaged.error.contains("why: files are missing, or differ from the downloaded ones"))
    #expect(damaged.error.contains("next: `ferry mission verify m --repair` fetches them again"))
    let report = try await device.ferry("mission", "verify", "m", "--json", exits: 4)
    let line = try #require(try JSONLine.all(report.output).first, "\(report.output)")
    #expect(line.members["mission"] as? String == "m")
    #expect(line.members["intact"] as? Bool == false)
    #expect(line.members["damaged"] as? [String] == ["a.txt"])
    #expect(line.members["repaired"] as? Bool == false)
    let repaired = try await device.ferry("mission", "verify", "m", "--repair").output
    #expect(repaired == "a.txt was missing or damaged, and is repaired\n")
    #expect(FileManager.default.contents(atPath: path) == Data("content of m".utf8))
    #expect(try await device.ferry("mission", "verify", "m").output == intact)
    let unknown = try await device.ferry("mission", "verify", "x", exits: 1)
    #expect(unknown.error.contains("mission x was not downloaded"), "\(unknown.error)")
  }

  @Test("the path of a file is absolute, for any path of the replica")
  func paths() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await publish("m", on: server)
    try await device.ferry("mission", "download", "--all")
    let shown = try await ChildProcess.run(
      try Executables.ferry(), ["--replica", "./replica.db", "mission", "show", "m", "--json"],
      directory: device.directory.url)
    let line = try #require(try JSONLine.all(shown.output).first, "\(shown.error)")
    let files = try #require(line.members["files"] as? [[String: Any]])
    let path = try #require(files.first?["file"] as? String)
    #expect(path.hasPrefix("/") && !path.contains("/./"))
    #expect(FileManager.default.contents(atPath: path) == Data("content of m".utf8))
  }
}
