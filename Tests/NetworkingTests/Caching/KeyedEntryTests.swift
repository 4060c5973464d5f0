import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryCaching

@Suite("Cached entries by key", .hangLimit)
struct KeyedEntryTests {
  private let folder = Folder()
  private static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

  private func cache(
    _ clock: HandClock = HandClock(), limits: CacheLimits = CacheLimits(),
    partition: CachePartition = .credentials
  ) -> RequestCache {
    RequestCache(
      store: CacheStore(folder: folder.path, limits: limits), limits: limits, partition: partition,
      now: { clock.now })
  }

  @Test("bytes are found under their key, also by another process, until they are removed")
  func roundTrip() async throws {
    #expect(await cache().get("a") == nil)
    #expect(await cache().put([1, 2], for: "a", contentType: "text/plain"))
    let found = try #require(await cache().get("a"))
    #expect(found.body == [1, 2] && found.headers["Content-Type"] == "text/plain")
    #expect(found.origin == .cache(age: .zero, isStale: false))
    await cache().put([3], for: "a")
    #expect(await cache().get("a")?.body == [3])
    await cache().remove("b")
    #expect(await cache().get("a") != nil)
    await cache().remove("a")
    #expect(await cache().get("a") == nil)
  }

  @Test("an entry becomes stale after its lifetime, and says so")
  func lifetime() async throws {
    let clock = HandClock()
    await cache(clock).put([1], for: "a", lifetime: .seconds(10))
    clock.advance(11)
    #expect(
      await cache(clock).get("a")?.origin == .cache(age: .seconds(11), isStale: true))
    await cache(clock).put([1], for: "b")
    clock.advance(24 * 3600)
    #expect(
      await cache(clock).get("b")?.origin == .cache(age: .seconds(24 * 3600), isStale: false))
  }

  @Test("partitions have their own keys, and keys are no addresses")
  func partitions() async {
    let (ada, bob) = (cache(partition: .named("ada")), cache(partition: .named("bob")))
    await ada.put([1], for: "http://host/a")
    #expect(await bob.get("http://host/a") == nil)
    let request = CacheableRequest(endpoint: "http://host/a")
    #expect(await ada.lookup(request) == .none)
  }

  @Test("bytes beyond the limit are not kept, and an earlier entry goes")
  func limit() async {
    let small = CacheLimits(bodyBytesMax: 4)
    let cache = cache(limits: small)
    #expect(await cache.put([1], for: "a"))
    #expect(await cache.put([UInt8](repeating: 0, count: 5), for: "a") == false)
    #expect(await cache.get("a") == nil)
  }

  @Test("an image that was put under its address serves requests, and the other way around")
  func images() async throws {
    let transport = AnsweringTransport { _ async throws(TransportError) in
      TransportResponse(
        status: 200, headers: ["Content-Type": "image/gif", "Cache-Control": "max-age=60"],
        body: [9])
    }
    let images = ImageCache(
      folder: folder.path, transport: transport, connectivity: AssumedConnectivity())
    let url = "http://host/logo.png?size=2"
    #expect(await images.put(Self.png, for: url))
    let image = try await images.image(for: "HTTP://host:80/logo.png?size=2#part")
    #expect(image.mediaType == "image/png" && image.content == .bytes(Self.png))
    #expect(transport.requests.isEmpty)
    #expect(await images.put([1, 2, 3], for: url) == false)
    await images.remove(url)
    #expect(await images.get(url) == nil)
    _ = try await images.image(for: url)
    #expect(await images.get(url)?.content == .bytes([9]))
    #expect(await images.get(url)?.mediaType == "image/gif")
  }
}
