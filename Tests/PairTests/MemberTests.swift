import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Spaces shared by invitation, with real programs.
@Suite("Members", .hangLimit)
struct MemberTests {
  private static let options = ["--create-spaces", "*"]

  /// A device of a user with a token without spaces.
  private func user(_ name: String, _ server: Server) async throws -> (Device, token: String) {
    let made = try await server.ferryd("token", "create", "--owner", name)
    try #require(made.status == .exited(0), "\(made.error)")
    let token = made.output.trimmingCharacters(in: .whitespacesAndNewlines)
    let device = try Device()
    try Data(token.utf8).write(to: device.directory.file("token"))
    return (device, device.directory.file("token").path)
  }

  /// Creates a shared list, and invites others to it. Returns the link.
  private func share(
    _ device: Device, _ token: String, _ server: Server, role: String = "writer"
  ) async throws -> String {
    try await device.ferry(
      "space", "create", "groceries", "--title", "Our groceries", "--server", server.url,
      "--token-file", token)
    try await device.write(Device.notes)
    try await device.ferry("track", "notes")
    try await device.write("INSERT INTO notes VALUES ('a', 'milk', 1)")
    try await device.ferry("sync")
    let invited = try await device.ferry("invite", "--role", role, "--json")
    return try #require(JSONLine.all(invited.output).first?.text("link"))
  }

  /// Runs a command that fails.
  private func run(_ device: Device, _ arguments: [String]) async throws -> ChildProcess.Finished {
    let finished = try await ChildProcess.run(
      try Executables.ferry(), ["--replica", device.path] + arguments,
      directory: device.directory.url)
    #expect([.exited(1), .exited(4)].contains(finished.status), "\(arguments)")
    return finished
  }

  @Test(
    "a user creates a list and invites two others, of whom one has other spaces already",
    arguments: StoreKind.allCases)
  func household(_ store: StoreKind) async throws {
    let server = try await Server.start(store, Self.options)
    let (ada, adaToken) = try await user("ada", server)
    let (bea, beaToken) = try await user("bea", server)
    let (cid, cidToken) = try await user("cid", server)
    let link = try await share(ada, adaToken, server)
    #expect(link.hasPrefix(server.url + "/join#"))
    // Without a file, and with one of another space.
    try await bea.ferry("accept", link, "--token-file", beaToken)
    try await bea.write(Device.notes)
    try await bea.ferry("track", "notes")
    try await bea.ferry("sync")
    #expect(try await bea.rows() == [["a", "milk", 1]])
    try await cid.ferry(
      "space", "create", "cid", "--server", server.url, "--token-file", cidToken)
    let code = try #require(link.split(separator: "#").last)
    try await cid.ferry("accept", String(code).lowercased())
    try await cid.write(Device.notes)
    try await cid.ferry("track", "notes", "--in", "groceries")
    try await cid.write("INSERT INTO notes VALUES ('c', 'tea', 2)")
    try await cid.ferry("sync")
    try await ada.ferry("sync")
    #expect(try await ada.rows() == [["a", "milk", 1], ["c", "tea", 2]])
    let members = try JSONLine.all(await bea.ferry("members", "list", "--json").output)
    #expect(members.map { $0.text("user") } == ["owner:ada", "owner:bea", "owner:cid"])
    #expect(members.map { $0.text("role") } == ["admin", "writer", "writer"])
    let mine = try JSONLine.all(await cid.ferry("spaces", "--mine", "--json").output)
    #expect(mine.map { $0.text("space") } == ["cid", "groceries"])
    #expect(mine.map { $0.text("title") } == ["", "Our groceries"])
    // One who leaves sees the list no more, and the others keep it.
    try await cid.ferry("leave", "groceries", "--member")
    let left = try await cid.ferry("spaces", "--mine", "--json")
    #expect(try JSONLine.all(left.output).map { $0.text("space") } == ["cid"])
  }

  @Test("unsent work of a removed member stays, and is sent after the next invitation")
  func removed() async throws {
    let server = try await Server.start(.embedded, Self.options)
    let (ada, adaToken) = try await user("ada", server)
    let (bea, beaToken) = try await user("bea", server)
    let link = try await share(ada, adaToken, server)
    try await bea.ferry("accept", link, "--token-file", beaToken)
    try await bea.write(Device.notes)
    try await bea.ferry("track", "notes")
    try await bea.ferry("sync")
    try await ada.ferry("members", "remove", "bea")
    try await bea.write("UPDATE notes SET body = 'oat milk' WHERE id = 'a'")
    let refused = try await bea.ferry("sync", exits: 4)
    #expect(refused.error.contains("you are not a member of space groceries"))
    #expect(try await bea.status().pending == 1)
    #expect(try await bea.rows() == [["a", "oat milk", 1]])
    try await ada.ferry("sync")
    #expect(try await ada.rows() == [["a", "milk", 1]])
    // A reader may not send it either. The former link has ended.
    let former = try await run(bea, ["accept", link, "--token-file", beaToken])
    #expect(former.error.contains("there is no such invitation"))
    let invited = try await ada.ferry("invite", "--role", "reader", "--json")
    let next = try #require(JSONLine.all(invited.output).first?.text("link"))
    try await bea.ferry("accept", next)
    let reading = try await bea.ferry("sync", exits: 4)
    #expect(reading.error.contains("your role is reader"))
    try await ada.ferry("members", "set", "bea", "--role", "writer")
    try await bea.ferry("sync")
    try await ada.ferry("sync")
    #expect(try await ada.rows() == [["a", "oat milk", 1]])
  }

  @Test("what a user may not do ends with the server's reason, and changes nothing")
  func refusals() async throws {
    let server = try await Server.start(.embedded, Self.options)
    let (ada, adaToken) = try await user("ada", server)
    let (bea, beaToken) = try await user("bea", server)
    let link = try await share(ada, adaToken, server, role: "reader")
    try await bea.ferry("accept", link, "--token-file", beaToken)
    for (arguments, reason) in [
      (["invite"], "your role is reader"),
      (["members", "set", "bea", "--role", "admin"], "reader"),
      (["members", "remove", "ada"], "reader"), (["invitations", "list"], "reader"),
      (["accept", "00000-00000-00000-00000-00000"], "there is no such invitation"),
      (["space", "create", "groceries"], "there is a space groceries"),
    ] {
      let finished = try await run(bea, arguments)
      #expect(finished.error.contains(reason), "\(finished.error)")
    }
    let last = try await run(ada, ["members", "remove", "ada"])
    #expect(last.error.contains("the space would have members and no admin"))
    let lines = try JSONLine.all(await ada.ferry("invitations", "list", "--json").output)
    let id = try #require(lines.first?.text("id"))
    try await ada.ferry("invitations", "revoke", id)
    let (cid, cidToken) = try await user("cid", server)
    let late = try await run(cid, ["accept", link, "--token-file", cidToken])
    #expect(late.error.contains("there is no such invitation"))
    // A link chooses the server, and the file's token goes to its own one only.
    let link2 = InvitationLink(server: "http://127.0.0.1:1", code: "x")
    let away = try await run(ada, ["accept", link2.description])
    #expect(away.error.contains("no token is given for http://127.0.0.1:1"))
    // The membership stays if the file cannot leave.
    let first = try await run(ada, ["leave", "groceries", "--member"])
    #expect(first.error.contains("the first space of a file cannot be left"))
    let mine = try JSONLine.all(await ada.ferry("spaces", "--mine", "--json").output)
    #expect(mine.map { $0.text("space") } == ["groceries"])
    // A server without the option.
    let strict = try await Server.start(.embedded)
    let (dan, danToken) = try await user("dan", strict)
    let denied = try await run(
      dan, ["space", "create", "list", "--server", strict.url, "--token-file", danToken])
    #expect(denied.error.contains("only admins create spaces"))
  }
}
