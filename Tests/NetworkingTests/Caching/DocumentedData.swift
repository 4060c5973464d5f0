import FerryCaching
import FerryNetworking

/// The example of a data manager in Documentation/library.md, line by line. Only the addresses and
/// the folder are a test's; `DocumentedDataTests` compares the lines.
func documentedData(main: BaseURL, image: String, folder: String) async throws {
  var configuration = NetworkConfiguration(main)
  configuration.cache = .use(CacheOptions(staleWhenOffline: true))
  let manager = DataManager(configuration, folder: folder, partition: .named("ada"))

  let shops = NetworkRequest(
    "/shops", query: [QueryItem("page", "2"), QueryItem("trace", "77", identifies: false)],
    cache: .use(CacheOptions(lifetime: .seconds(600), staleWhenOffline: true)))
  let answer = try await manager.data(for: shops)
  print("\(answer.body.count) bytes from \(answer.origin)")

  let logo = try await manager.image(for: image)
  print(logo.mediaType)
}
