import FerryNetworking

/// The example of tokens and forms in Documentation/library.md, line by line. Only the address,
/// files and functions are a test's; `DocumentedInterceptorsTests` compares the lines.
func documentedInterceptors(
  main: BaseURL, photo: String, film: String,
  storedToken: @escaping @Sendable () -> String?,
  newToken: @escaping @Sendable (String) async throws -> String?
) async throws {
  let session = TokenInterceptor(user: "ada") { rejected in
    guard let rejected else { return storedToken() }
    return try await newToken(rejected)
  }
  var configuration = NetworkConfiguration(main)
  configuration.query = [QueryItem("app", "album")]
  configuration.accepts = ["application/json"]
  configuration.interceptors = [session]
  configuration.log = { record in print(record) }
  let client = NetworkClient(configuration)

  var form = MultipartForm()
  form.add("title", "Summer")
  form.addFile("photo", path: photo, contentType: "image/jpeg")
  form.addFile("photo", path: film, contentType: "video/mp4")
  try await client.send(NetworkRequest("/albums", method: .post, body: .form(form)))
}
