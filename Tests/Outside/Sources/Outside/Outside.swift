import Ferry
import Foundation
import Synchronization

/// Runs Ferry with parts of another package: `Outside SERVER SPACE FOLDER FILE`. The space has a
/// mission `guide` with one item, which has the content of FILE.
@main
struct Outside {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 5 else { fail("Outside SERVER SPACE FOLDER FILE") }
    let expected = [UInt8](try Data(contentsOf: URL(fileURLWithPath: arguments[4])))
    try await missions(arguments[1], arguments[2], arguments[3], expected)
    try await caches(arguments[1])
    try await downloads(arguments[1], arguments[3])
    print("Each replaced part was used.")
  }

  /// Downloads a mission with another file store, mission store, downloader and catalogue.
  private static func missions(
    _ server: String, _ space: String, _ folder: String, _ expected: [UInt8]
  ) async throws {
    let replica = try await Replica.open(folder + "/replica.db", server: server, space: space)
    try await replica.sync()
    let files = MemoryFiles(folder: folder)
    let store = MemoryStore()
    let downloader = Mutex<OwnDownloader?>(nil)
    guard let name = SpaceName(space) else { fail("“\(space)” is no space") }
    let catalogue = OwnCatalogue(replica, space: name)
    var parts = MissionParts()
    parts.files = files
    parts.store = store
    parts.downloader = { open in
      let own = OwnDownloader(open)
      downloader.withLock { $0 = own }
      return own
    }
    parts.catalogue = catalogue
    let manager = try await replica.missionManager(parts: parts)
    try await manager.download("guide")
    let states = try await manager.waitUntilIdle("guide")
    check(states.first?.state == .done, "the mission is \(states)")
    guard let id = MissionID("guide") else { fail("“guide” is no identifier") }
    let item = try await manager.items(id).first?.path ?? ""
    let content = try await manager.content(of: item, in: id)
    check(try await content.readAll() == expected, "the mission has another content")
    check(try await content.read(from: 2, count: 3) == Array(expected[2..<5]), "a wrong range")
    check(files.contents.contains(expected), "the file store was not used")
    check(await store.missions().first?.isActive == true, "the mission store was not used")
    check((downloader.withLock { $0 }?.count ?? 0) > 0, "the downloader was not used")
    check(catalogue.count > 0, "the catalogue was not used")
    try await manager.remove(id)
    check(files.contents.isEmpty, "the content was not removed")
    await replica.close()
    check(!FileManager.default.fileExists(atPath: folder + "/replica.db.missions"), "a folder")
  }

  /// Requests data and images through other caches, and an image of other content.
  private static func caches(_ server: String) async throws {
    let (requests, images) = (OwnCache(), OwnCache())
    let manager = DataManager(
      NetworkConfiguration(BaseURL(server)), requests: requests, images: images,
      pinned: OwnContent())
    let request = NetworkRequest("/healthz", cache: .use())
    let first = try await manager.data(for: request)
    let second = try await manager.data(for: request)
    check(first.body == second.body && requests.hits == 1, "the cache was not used")
    await manager.requests.put([1], for: "own")
    check(await manager.requests.get("own")?.body == [1], "the key was not found")
    await manager.requests.remove("own")
    check(await manager.requests.get("own") == nil, "the key was not removed")
    let gif = Array("GIF89a".utf8)
    let url = "http://127.0.0.1:9/image.gif"
    await manager.images.put(gif, for: url)
    let image = try await manager.image(for: url)
    check(image.content == .bytes(gif), "the cache of images was not used")
    check(await images.size == gif.count, "the image is elsewhere")
    let pinned = try await manager.image(for: OwnContent.url)
    check(pinned.content == .bytes([1, 2, 3]), "the content was not used")
    await manager.removeAll()
    check(await requests.size + images.size == 0, "the caches are not empty")
  }

  /// Fetches a file through a queue with another downloader.
  private static func downloads(_ server: String, _ folder: String) async throws {
    let open = ChunkedDownloader.requests(over: SystemTransport(), server: server)
    let downloader = OwnDownloader(open)
    let queue = try await DownloadQueue.open(folder + "/downloads.db", downloader: downloader)
    let download = Download(server + "/healthz", to: folder + "/health")
    try await queue.add(download)
    let file = try await download.finished()
    check(file.size > 0 && downloader.count == 1, "the downloader was not used")
    await queue.close()
  }

  private static func check(_ isRight: Bool, _ why: String) { if !isRight { fail(why) } }

  private static func fail(_ why: String) -> Never {
    FileHandle.standardError.write(Data("Outside: \(why)\n".utf8))
    exit(1)
  }
}
