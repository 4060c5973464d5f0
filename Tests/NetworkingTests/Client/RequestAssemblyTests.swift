import FerryTestSupport
import Testing

@testable import FerryNetworking

@Suite("Assembling a request", .hangLimit)
struct RequestAssemblyTests {
  private static let configuration: NetworkConfiguration = {
    var configuration = NetworkConfiguration(
      BaseURL("https://api.example/v1", headers: ["Authorization": "Bearer main"]))
    configuration.alternatives["test"] = BaseURL(
      "http://[::1]:8080/", headers: ["Authorization": "Bearer test"])
    configuration.alternatives["queried"] = "http://host/?a=b"
    configuration.alternatives["no address"] = "ftp://host"
    configuration.headers = ["X-App": "ferry", "Accept": "*/*"]
    return configuration
  }()
  private let assembly = RequestAssembly(configuration: configuration)

  @Test(
    "an address consists of a base and a path, with one slash between",
    arguments: [
      (BaseAddress.main, "", "https://api.example/v1"),
      (.main, "/tasks", "https://api.example/v1/tasks"),
      (.main, "tasks/1", "https://api.example/v1/tasks/1"),
      (.main, "/a//b/", "https://api.example/v1/a//b/"),
      (.main, "/caf%C3%A9/...", "https://api.example/v1/caf%C3%A9/..."),
      (.alternative("test"), "/tasks", "http://[::1]:8080/tasks"),
      (.alternative("test"), "", "http://[::1]:8080/"),
      (.absolute("http://other/x?y=1#part"), "", "http://other/x?y=1"),
    ])
  func addresses(base: BaseAddress, path: String, url: String) throws {
    #expect(try assembly.assemble(NetworkRequest(path, base: base)).transport.url == url)
  }

  @Test(
    "an invalid address, or a path that leads out of the base, is refused",
    arguments: [
      (BaseAddress.alternative("none"), "/x"), (.alternative("queried"), "/x"),
      (.alternative("no address"), "/x"), (.absolute("http://other"), "/x"),
      (.absolute("/x"), ""), (.main, "/../admin"), (.main, "/a/%2E%2e/b"), (.main, "."),
      (.main, "/a?b=c"), (.main, "/a#b"), (.main, "/a b"), (.main, "/é"), (.main, "/a\r\nb"),
    ])
  func badAddresses(base: BaseAddress, path: String) {
    #expect(throws: NetworkError.self) {
      do throws(NetworkError) {
        _ = try assembly.assemble(NetworkRequest(path, base: base))
      } catch {
        #expect(error.kind == .badAddress)
        throw error
      }
    }
  }

  @Test("a path without a main base is refused")
  func noMain() {
    let assembly = RequestAssembly(configuration: NetworkConfiguration())
    #expect(throws: NetworkError.self) { try assembly.assemble(NetworkRequest("/x")) }
    #expect(throws: Never.self) { try assembly.assemble(NetworkRequest(url: "http://host/x")) }
  }

  @Test("segments can contain any characters")
  func segments() throws {
    let request = NetworkRequest(segments: ["a/b", "?#", "ü ", "~-._", ""])
    #expect(
      try assembly.assemble(request).transport.url
        == "https://api.example/v1/a%2Fb/%3F%23/%C3%BC%20/~-._/")
    #expect(throws: NetworkError.self) {
      try assembly.assemble(NetworkRequest(segments: ["..", "admin"]))
    }
  }

  @Test("common parameters come first, yield to a request's own, and reach the bases alone")
  func commonQuery() throws {
    var configuration = Self.configuration
    configuration.query = [QueryItem("app", "board"), QueryItem("lang", "de", identifies: false)]
    configuration.cache = .use()
    let assembly = RequestAssembly(configuration: configuration)
    let own = NetworkRequest("/a", query: [QueryItem("lang", "en"), QueryItem("p", "1")])
    let assembled = try assembly.assemble(own)
    #expect(assembled.transport.url == "https://api.example/v1/a?app=board&lang=en&p=1")
    #expect(assembled.cacheable?.query.map(\.name) == ["app", "lang", "p"])
    let other = try assembly.assemble(NetworkRequest(url: "http://other/x")).transport.url
    #expect(other == "http://other/x")
  }

  @Test("parameters keep their order, and are encoded so that no value becomes syntax")
  func query() throws {
    var request = NetworkRequest(
      "/find", query: [QueryItem("q", "a&b=c d+e%"), QueryItem("ü", ""), QueryItem("q", "2")])
    #expect(
      try assembly.assemble(request).transport.url
        == "https://api.example/v1/find?q=a%26b%3Dc%20d%2Be%25&%C3%BC=&q=2")
    request = NetworkRequest(url: "http://other/x?y=1")
    request.query = [QueryItem("z", "2")]
    #expect(try assembly.assemble(request).transport.url == "http://other/x?y=1&z=2")
  }

  @Test("the request's fields precede those of the base, and those precede the client's")
  func headers() throws {
    var request = NetworkRequest(
      "/x", method: .post, headers: ["accept": "a", "Accept": "b"],
      body: .bytes([1], contentType: "text/plain"))
    #expect(
      try assembly.assemble(request).transport.headers == [
        "X-App": "ferry", "Authorization": "Bearer main", "Content-Type": "text/plain",
        "Accept": "a", "Accept": "b",
      ])
    request.headers = ["Content-Type": "text/html", "Authorization": "none"]
    #expect(
      try assembly.assemble(request).transport.headers == [
        "X-App": "ferry", "Accept": "*/*", "Content-Type": "text/html", "Authorization": "none",
      ])
  }

  @Test("a base's credentials are sent to that base only")
  func credentials() throws {
    for (base, seen) in [
      (BaseAddress.main, "Bearer main"), (.alternative("test"), "Bearer test"),
      (.absolute("https://api.example/v1/x"), nil),
    ] {
      let headers = try assembly.assemble(NetworkRequest("", base: base)).transport.headers
      #expect(headers["Authorization"] == seen)
      #expect(headers["X-App"] == "ferry")
    }
  }

  @Test("a request's own settings override the client's defaults")
  func defaults() throws {
    var configuration = Self.configuration
    configuration.timeout = .seconds(1)
    configuration.connectTimeout = .seconds(2)
    configuration.responseLimit = 3
    configuration.retry = RetryPolicy(attemptsMax: 4)
    let assembly = RequestAssembly(configuration: configuration)
    let plain = try assembly.assemble(NetworkRequest("/x"))
    #expect(plain.transport.timeout == .seconds(1))
    #expect(plain.transport.connectTimeout == .seconds(2))
    #expect(plain.transport.responseLimit == 3)
    #expect(plain.retry.attemptsMax == 4)
    let own = try assembly.assemble(
      NetworkRequest(
        "/x", timeout: .seconds(5), connectTimeout: .seconds(6), responseLimit: 7, retry: .never))
    #expect(own.transport.timeout == .seconds(5))
    #expect(own.transport.connectTimeout == .seconds(6))
    #expect(own.transport.responseLimit == 7)
    #expect(own.retry == .never)
  }

  @Test("a request can be repeated if the method or the caller allows it")
  func repeating() throws {
    for (method, may) in [
      (TransportMethod.get, true), (.head, true), (.put, true), (.delete, true), (.post, false),
      (.patch, false),
    ] {
      #expect(try assembly.assemble(NetworkRequest("/x", method: method)).mayRepeat == may)
      let request = NetworkRequest("/x", method: method, isRepeatable: !may)
      #expect(try assembly.assemble(request).mayRepeat == !may)
    }
  }

  @Test("a body comes from memory or from a part of a file")
  func bodies() throws {
    let bytes = NetworkRequest("/x", method: .post, body: .bytes([1, 2]))
    #expect(try assembly.assemble(bytes).transport.body == [1, 2])
    let file = NetworkRequest("/x", method: .put, body: .file("/tmp/f", range: 3..<5))
    #expect(
      try assembly.assemble(file).transport.file == FileSlice(path: "/tmp/f", range: 3..<5))
  }

  @Test("a cache is used only for whole answers to unconditional requests")
  func caching() throws {
    let options = CacheOptions(lifetime: .seconds(1))
    var request = NetworkRequest(
      "/x", query: [QueryItem("a", "1"), QueryItem("t", "2", identifies: false)],
      cache: .use(options))
    let cacheable = try #require(try assembly.assemble(request).cacheable)
    #expect(cacheable.endpoint == "https://api.example/v1/x")
    #expect(cacheable.query == request.query)
    #expect(cacheable.options == options)
    #expect(cacheable.headers["Authorization"] == "Bearer main")
    for name in ["If-None-Match", "If-Modified-Since", "Range"] {
      request.headers = [name: "x"]
      #expect(try assembly.assemble(request).cacheable == nil)
    }
    request.headers = [:]
    request.method = .post
    #expect(try assembly.assemble(request).cacheable == nil)
    #expect(try assembly.assemble(NetworkRequest("/x")).cacheable == nil)
  }
}
