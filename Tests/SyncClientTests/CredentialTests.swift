import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncClient

@Suite("The token", .hangLimit)
struct CredentialTests {
  private func address(
    _ url: String = "https://sync.example.org", _ space: String = "team"
  ) throws -> ServerAddress {
    ServerAddress(url: url, space: try #require(SpaceName(space)))
  }

  @Test("the token is for one server and one space, and a replica that lost it reports that")
  func bound() throws {
    let fixture = try ReplicaFixture.withTasks()
    let file = fixture.file
    #expect(try file.settings.access() == nil)
    try file.settings.configure(address(), token: "secret")
    #expect(try file.settings.access()?.stored == "secret")
    for change in ["server = 'https://evil.example'", "space = 'other'"] {
      try file.connection.execute("SAVEPOINT s; UPDATE ferry_replica SET \(change)")
      #expect {
        try file.settings.access()
      } throws: {
        guard case .tokenMissing(let why) = $0 as? ReplicaError else { return false }
        return why.contains("sends it to no other server") && !why.contains("secret")
      }
      try file.connection.execute("ROLLBACK TO s; RELEASE s")
    }
    fixture.credentials.store(nil, of: fixture.path)
    #expect(throws: ReplicaError.self) { try file.settings.access() }
    try file.settings.configure(address(), token: nil)
    #expect(try file.settings.access()?.stored == nil)
  }

  @Test("the token is stored in a file of its own mode, replaced whole, and removed")
  func file() throws {
    let directory = try TemporaryDirectory()
    let (store, path) = (FileCredentialStore(), directory.file("r.db").path)
    #expect(try store.credential(of: path) == nil)
    let space = try #require(SpaceName("team"))
    for token in ["one", "two \"quoted\""] {
      let credential = Credential(server: "https://a", space: space, token: token)
      try store.store(credential, of: path)
      #expect(try store.credential(of: path) == credential)
      #expect(!"\(credential)".contains(token))
    }
    let name = FileCredentialStore.file(of: path)
    #expect(
      try String(contentsOfFile: name, encoding: .utf8)
        == #"{"server":"https://a","space":"team","token":"two \"quoted\""}"# + "\n")
    chmod(name, 0o644)
    _ = try store.credential(of: path)
    let mode = try FileManager.default.attributesOfItem(atPath: name)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["r.db-token"])
    try Data("{}".utf8).write(to: URL(filePath: name))
    #expect(throws: ReplicaError.self) { try store.credential(of: path) }
    try store.store(nil, of: path)
    #expect(try store.credential(of: path) == nil)
  }

  @Test(
    "a token over http to another machine causes a warning",
    arguments: [
      ("http://192.0.2.1:8080", 1), ("http://sync.example.org", 1), ("HTTP://[2001:db8::1]/x", 1),
      ("https://sync.example.org", 0), ("http://127.0.0.1:8080", 0), ("http://localhost", 0),
      ("http://[::1]:80", 0),
    ])
  func exposed(url: String, count: Int) throws {
    let fixture = try ReplicaFixture.withTasks()
    try fixture.file.settings.configure(address(url), token: "secret")
    #expect(try fixture.file.settings.warnings().count == count)
    #expect(try fixture.file.log.newest(10).count { $0.event == "warning" } == count)
    try fixture.file.settings.configure(address(url), token: nil)
    #expect(try fixture.file.settings.warnings().isEmpty)
  }
}
