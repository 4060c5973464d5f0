import FerryTestSupport
import Foundation
import Testing

/// The example app `ferry-tasks`, as a user at a keyboard sees it.
@Suite(.hangLimit)
struct TasksExampleTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Runs commands to their end, and returns the lines printed by the app.
  private func run(
    _ file: String, _ server: Server?, as user: String = "household", token: String? = nil,
    _ commands: String...
  ) async throws -> [String] {
    let place = server.map { [$0.url, user] } ?? []
    let finished = try await ChildProcess.run(
      try Executables.ferryTasks(), [directory.file(file).path] + place,
      environment: token.map { ["FERRY_TOKEN": $0] } ?? [:],
      directory: directory.url, input: commands.map { $0 + "\n" }.joined())
    #expect(finished.status == .exited(0), "\(finished.error)")
    return finished.output.split(separator: "\n").map(String.init)
  }

  @Test("lists and tasks are kept without a server, and mistakes are explained")
  func offline() async throws {
    _ = try await run(
      "phone.db", nil, "list Groceries", "add 1 Buy two milks", "add 1 Buy bread", "done 1")
    let lines = try await run("phone.db", nil, "show", "done 7", "dance", "add 1", "sync")
    #expect(
      lines.prefix(3) == ["1. Groceries", "  1 [x] Buy two milks", "  2 [ ] Buy bread"])
    #expect(
      lines.suffix(4) == [
        "there is no task 7; type help for the commands",
        "there is no command dance; type help for the commands",
        "a name is missing; type help for the commands", "No server has been chosen yet.",
      ])
    // A server named later gets everything.
    let server = try await Server.start()
    let later = try await run("phone.db", server, "show", "sync")
    #expect(later == Array(lines.prefix(3)) + ["3 changes wait for the next sync", "3 pushed"])
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.url.path)
    #expect(names.allSatisfy { !$0.hasSuffix("-wal") }, "the app closes its replica")
  }

  @Test("two devices share lists, show both values of a conflict, and settle it")
  func conflict() async throws {
    let server = try await Server.start()
    _ = try await run("phone.db", server, "list Groceries", "add 1 Buy milk", "sync")
    #expect(try await run("laptop.db", server, "sync", "show").last == "  1 [ ] Buy milk")
    _ = try await run("phone.db", nil, "title 1 Buy oat milk")
    // Another column is no conflict.
    _ = try await run("laptop.db", server, "title 1 Buy two milks", "done 1", "sync")
    let phone = try await run("phone.db", server, "sync", "show", "conflicts", "keep 1 lost")
    #expect(phone.contains("  1 [x] Buy two milks"))
    #expect(
      phone.last == "1. title: this device lost \"Buy oat milk\"; now \"Buy two milks\"")
    _ = try await run("phone.db", server, "sync")
    let laptop = try await run("laptop.db", server, "sync", "show", "conflicts")
    #expect(laptop.suffix(2) == ["  1 [x] Buy oat milk", "no conflicts"])
    #expect(try await run("phone.db", server, "conflicts") == ["no conflicts"])
  }

  /// Makes a token of a user, with a space for the user's own lists.
  private func user(_ name: String, _ server: Server) async throws -> String {
    let made = try await server.ferryd(
      "token", "create", "--owner", name, "--space", name, "--role", "writer")
    try #require(made.status == .exited(0), "\(made.error)")
    return made.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Makes a list of Ada's in which Bob takes part by invitation. Returns the lines of Bob.
  private func share(_ server: Server) async throws -> [String] {
    let ada = try await run(
      "ada.db", server, as: "ada", token: try await user("ada", server), "list Books",
      "add 1 Return novel", "list Groceries", "add 2 Buy milk", "sync", "invite 2",
      "share 2 family", "sync", "invite 2")
    #expect(ada.contains("share list 2 first; type help for the commands"))
    let link = try #require(ada.last)
    return try await run(
      "bob.db", server, as: "bob", token: try await user("bob", server), "list Bikes",
      "accept \(link)", "sync", "show")
  }

  @Test("two people share a list by invitation, and keep the others for themselves")
  func shared() async throws {
    let server = try await Server.start(.embedded, "--create-spaces", "*")
    let joined = try await share(server)
    #expect(joined.contains("2. Groceries (shared as family)"))
    #expect(joined.allSatisfy { !$0.contains("Books") && !$0.contains("novel") })
    _ = try await run(
      "bob.db", server, as: "bob", "add 2 Buy tea", "title 1 Buy oat milk", "sync")
    // A conflict of the shared list.
    let ada = try await run(
      "ada.db", nil, "title 2 Buy two milks", "show")
    #expect(ada.contains("2. Groceries (shared as family)"))
    let lines = try await run("ada.db", server, as: "ada", "sync", "show", "conflicts")
    #expect(
      lines.dropFirst().prefix(5) == [
        "1. Books", "  1 [ ] Return novel", "2. Groceries (shared as family)",
        "  2 [ ] Buy two milks", "  3 [ ] Buy tea",
      ])
    #expect(
      lines.last == "1. title: another device lost \"Buy oat milk\"; now \"Buy two milks\"")
    let bob = try await run(
      "bob.db", server, as: "bob", "sync", "keep 1 lost", "sync", "show")
    #expect(bob.contains("  1 [ ] Buy oat milk"))
    #expect(
      try await run("ada.db", server, as: "ada", "sync", "show").contains("  2 [ ] Buy oat milk"))
  }

  @Test("a member leaves a shared list, which stays with the others")
  func left() async throws {
    let server = try await Server.start(.embedded, "--create-spaces", "*")
    _ = try await share(server)
    let before = try await run("ada.db", server, as: "ada", "members 2", "leave 2")
    #expect(before.prefix(2) == ["ada (admin)", "bob (writer)"])
    #expect(before.last?.contains("make another member an admin first") == true)
    #expect(try await run("bob.db", nil, "leave 2", "show") == ["1. Bikes"])
    let after = try await run("ada.db", server, as: "ada", "sync", "members 2", "show")
    #expect(after.contains("ada (admin)") && !after.contains("bob (writer)"))
    #expect(after.contains("  2 [ ] Buy milk"))
  }

  @Test("the live view shows another device's change without a command")
  func live() async throws {
    let server = try await Server.start()
    let terminal = try TerminalProcess(
      try Executables.ferryTasks(), [directory.file("phone.db").path, server.url, "household"])
    try terminal.type("live\r")
    try await eventually("the empty view", from: terminal) {
      terminal.screen.contains("no lists yet")
    }
    _ = try await run("laptop.db", server, "list Groceries", "add 1 Buy milk", "sync")
    try await eventually("the task", from: terminal) {
      terminal.screen.contains("  1 [ ] Buy milk")
    }
    try terminal.type("done 1\r")
    try await eventually("the checked task", from: terminal) {
      terminal.screen.contains("  1 [x] Buy milk")
    }
    try await eventually("the change on the other device", from: terminal) {
      try await run("laptop.db", server, "sync", "show").contains("  1 [x] Buy milk")
    }
    try terminal.type("quit\r")
    #expect(try await terminal.exitStatus() == .exited(0))
  }
}
