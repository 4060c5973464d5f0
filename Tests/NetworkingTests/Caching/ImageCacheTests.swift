import FerryNetworking
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryCaching

@Suite("Images", .hangLimit)
struct ImageCacheTests {
  private static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 1]

  private func images(
    _ transport: AnsweringTransport, pinned: (any PinnedContent)? = nil, clock: HandClock
  ) -> ImageCache {
    let cache = RequestCache(
      store: CacheStore(folder: nil, limits: .images), limits: .images, pinned: pinned,
      now: { clock.now })
    var configuration = NetworkConfiguration()
    configuration.retry = .never
    return ImageCache(
      cache: cache, pinned: pinned,
      client: NetworkClient(
        configuration, transport: transport, connectivity: AssumedConnectivity(), cache: cache))
  }

  @Test("images are fetched once, kept, and answered stale without a network")
  func kept() async throws {
    let clock = HandClock()
    let box = OfflineSwitch()
    let transport = AnsweringTransport { _ async throws(TransportError) in
      if box.isOffline { throw TransportError(.offline, "") }
      return TransportResponse(
        status: 200, headers: ["Content-Type": "image/png; x=y", "Cache-Control": "max-age=60"],
        body: Self.png)
    }
    let images = images(transport, clock: clock)
    let first = try await images.image(for: "http://host/a.png")
    #expect(first.content == .bytes(Self.png) && first.mediaType == "image/png")
    #expect(try await images.image(for: "http://HOST/a.png#x").origin != .network)
    clock.advance(100)
    box.isOffline = true
    let stale = try await images.image(for: "http://host/a.png")
    #expect(stale.origin == .cache(age: .seconds(100), isStale: true))
    #expect(await images.size > 0)
    await images.removeAll()
    await #expect(throws: NetworkError.self) { try await images.image(for: "http://host/a.png") }
  }

  @Test(
    "an image is known by its type or its first bytes; other content is refused and not kept",
    arguments: [
      ("image/svg+xml", Array("<svg/>".utf8), "image/svg+xml"), (nil, png, "image/png"),
      ("application/octet-stream", [0xFF, 0xD8, 0xFF, 0xE0], "image/jpeg"),
      (nil, Array("GIF89a..".utf8), "image/gif"),
      (nil, Array("RIFF....WEBPVP8 ".utf8), "image/webp"),
      (nil, Array("....ftypavif".utf8), "image/avif"), (nil, [], nil),
      ("text/html", png, nil), ("application/octet-stream", Array("<html>".utf8), nil),
    ] as [(String?, [UInt8], String?)])
  func kinds(type: String?, body: [UInt8], expected: String?) async throws {
    let transport = AnsweringTransport { _ async throws(TransportError) in
      var headers: TransportHeaders = ["Cache-Control": "max-age=60"]
      headers["Content-Type"] = type
      return TransportResponse(status: 200, headers: headers, body: body)
    }
    let images = images(transport, clock: HandClock())
    for attempt in 1...2 {
      do throws(NetworkError) {
        let image = try await images.image(for: "http://host/x")
        #expect(image.mediaType == expected)
      } catch {
        #expect(expected == nil && error.kind == .rejected(status: 200, reason: error.message))
        #expect(transport.requests.count == attempt)
      }
    }
  }

  @Test("images of missions come first, as a file if there is one")
  func pinned() async throws {
    let transport = AnsweringTransport { _ async throws(TransportError) in
      throw TransportError(.offline, "")
    }
    let images = images(
      transport,
      pinned: Brought(files: [
        "http://host/a.png": PinnedFile(
          content: .file("/missions/a"), mediaType: "image/png", size: 9),
        "http://host/b.png": PinnedFile(content: .bytes { [7] }, mediaType: "image/png", size: 1),
      ]), clock: HandClock())
    #expect(try await images.image(for: "http://host:80/a.png").content == .file("/missions/a"))
    #expect(try await images.image(for: "http://host/b.png").content == .bytes([7]))
    #expect(transport.requests.isEmpty)
  }
}

/// Whether there is no network.
final class OfflineSwitch: Sendable {
  private let state = Mutex(false)

  var isOffline: Bool {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}
