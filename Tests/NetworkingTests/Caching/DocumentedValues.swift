import FerryCaching
import FerryNetworking

struct User: Codable, Sendable {
  var name: String
}

struct Shop: Codable, Sendable {
  var title: String
}

/// The example of values in Documentation/library.md, line by line. Only the address and the folder
/// are a test's; `DocumentedValuesTests` compares the lines.
func documentedValues(main: BaseURL, folder: String) async throws {
  var configuration = NetworkConfiguration(main)
  configuration.cache = .use(CacheOptions(staleWhenOffline: true))
  let manager = DataManager(
    configuration, folder: folder, partition: .named("ada"),
    envelope: Envelope(payload: "data", code: "code", success: ["0"], message: "message"))

  let user: User = try await manager.value(for: NetworkRequest("/me"))
  print(user.name)

  let shops = NetworkRequest("/shops", cache: .use(CacheOptions(key: "shops")))
  do throws(NetworkError) {
    let (me, all) = try await manager.values(
      NetworkRequest("/me").answer(User.self), shops.answer([Shop].self))
    print(me.name, all.map(\.title))
  } catch {
    if case .business(let code) = error.kind { print("the server's error \(code)") }
  }

  print(await manager.requests.get("shops")?.body.count ?? 0)
  await manager.requests.put(Array("Buy milk".utf8), for: "draft", contentType: "text/plain")
  await manager.requests.remove("draft")
}
