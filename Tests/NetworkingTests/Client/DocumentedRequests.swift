import FerryNetworking

/// The example of requests in Documentation/library.md, line by line. Only the addresses and files
/// are a test's; `DocumentedRequestsTests` compares the lines.
func documentedRequests(main: BaseURL, media: BaseURL, photo file: String, to target: String)
  async throws
{
  var configuration = NetworkConfiguration(main)
  configuration.alternatives["media"] = media
  configuration.headers = ["Accept-Language": "de"]
  let client = NetworkClient(configuration)

  let list = NetworkRequest("/tasks", query: [QueryItem("page", "2")], timeout: .seconds(20))
  print(try await client.send(list).body.count)

  let photo = NetworkRequest(
    "/photos/7", method: .put, body: .file(file, contentType: "image/jpeg"))
  try await client.send(photo) { print("sent \($0.sent) of \($0.sentTotal ?? 0)") }

  let film = NetworkRequest("/films/7", base: .alternative("media"))
  do throws(NetworkError) {
    try await client.download(film, to: target) { print("received \($0.received)") }
  } catch {
    print(error.kind == .offline ? "later, then" : "\(error)")
  }
}
