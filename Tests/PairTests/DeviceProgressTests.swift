import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The progress of devices as the server reports it: the changes they have applied (S1.13).
@Suite("Progress of devices", .hangLimit)
struct DeviceProgressTests {
  private func behind(_ server: Server) async throws -> [String: String] {
    let answer = try await Wire.send(.get, "\(server.url)/v1/spaces/\(Device.space)/devices")
    let list = try #require(answer.json["devices"] as? [[String: Any]], "\(answer.text)")
    let pairs = list.compactMap { device in
      (device["device"] as? String).map { ($0, device["behind"] as? String ?? "unknown") }
    }
    return Dictionary(uniqueKeysWithValues: pairs)
  }

  @Test("a device that got all changes and has applied none is behind; one that syncs is not")
  func applied() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'x', 1), ('b', 'y', 2), ('c', 'z', 3)")
    try await one.exchange()
    // It is killed as soon as it has the page.
    let killed = "0199c306-6400-7000-800a-11ce000000fe"
    let page = try await Wire.send(
      .get, "\(server.url)/v1/spaces/\(Device.space)/changes?limit=100&device=\(killed)")
    #expect(page.text.contains("\"c\""))
    #expect(try await behind(server)[killed] == "3")
    let cursor = try #require(page.json["cursor"] as? String)
    _ = try await Wire.send(
      .get,
      "\(server.url)/v1/spaces/\(Device.space)/changes?limit=100&device=\(killed)&cursor=\(cursor)")
    #expect(try await behind(server)[killed] == "0")
    let two = try await Device.joined(server.url)
    #expect(try await two.exchange().pulled == 3)
    let progress = try await behind(server)
    #expect(progress.count == 3 && progress.values.allSatisfy { $0 == "0" }, "\(progress)")
    try await one.write("UPDATE notes SET n = 9 WHERE id = 'a'")
    try await one.exchange()
    #expect(try await behind(server).values.filter { $0 == "1" }.count == 2)
  }
}
